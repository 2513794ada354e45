//! `keep`: keeps copies of other agents' sessions, which they delete or rewrite.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use scrollback::model::regular_file::{self, Links};
use scrollback::session::Source;
use scrollback::view::SessionRow;
use scrollback::view::find::SessionName;
use scrollback::write::{Kept, replace_private_file};
use serde_json::json;

use crate::args::Global;
use crate::config::Key;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::session::keeping::keep_all;
use crate::session::located::Located;
use crate::session::{name, scope};
use crate::terminal::{ask, clean};

/// Keep copies of what agents delete
///
/// Agents delete old sessions (Claude Code after 30 days), or rewrite them. While this is on, every command that looks at all sessions
/// (`list`, `search`, `index`) first keeps copies of those that have changed, with their file histories: second names of the same files
/// where that is safe, which take no space, else files of their own. What an agent has deleted stays in `list`, marked as kept, and can
/// be shown, searched and undone; `remove`, `trash empty` and `redact` reach the copies too. Sessions in databases are not kept.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct KeepArgs {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  scrollback keep on
  scrollback keep status
  scrollback keep restore 3f8a";

#[derive(Subcommand, Debug)]
enum Action {
    /// Keep copies from now on, and of every session that is there
    ///
    /// Also prints a timer for systemd, which keeps them every hour even if you run nothing, and on a terminal offers to write it.
    On {
        /// Write the timer without asking
        #[arg(long)]
        timer: bool,
    },
    /// Keep no more copies; those that are there stay
    Off,
    /// Show whether copies are kept, how many there are, and which sessions exist only as copies
    Status,
    /// Put a kept session back where its agent finds it
    Restore {
        /// Session id, or a unique prefix
        session: SessionName,
    },
}

impl KeepArgs {
    /// Whether it changes anything.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.action, Action::Status)
    }
}

pub(crate) fn run(args: &KeepArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if global.store.is_some() {
        let failure = Failure::new(FailureKind::Usage, "only the sessions of your agents are kept");
        return Err(failure.hint("leave out --store"));
    }
    match &args.action {
        Action::On { timer } => on(*timer, global, ctx)?,
        Action::Off => off(ctx)?,
        Action::Status => status(global, ctx)?,
        Action::Restore { session } => restore(session, global, ctx)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What to say, once, to somebody whose sessions will be deleted.
pub(crate) fn mention(rows: &[SessionRow], global: &Global, ctx: &Ctx) -> Option<String> {
    let is_concerned = !ctx.demo
        && global.store.is_none()
        && ctx.config.get("keep").is_none()
        && rows.iter().any(|row| row.dialect == "claude-code");
    let mark = ctx.home.cache().join("keep-mentioned");
    if !is_concerned || !mark.is_absolute() || mark.exists() {
        return None;
    }
    // If it cannot be remembered that it was said, it is not said.
    replace_private_file(&mark, b"", Links::Refuse, &ctx.host()).ok()?;
    Some("Claude Code deletes sessions after 30 days; run `scrollback keep on` to keep them.".to_owned())
}

fn on(timer: bool, global: &Global, ctx: &mut Ctx) -> Result<(), Failure> {
    switch(true, ctx)?;
    let sources = live_sources(global, ctx)?;
    let counts = keep_all(sources.iter(), ctx)?;
    let kept = counts.new + counts.grown + counts.rewritten + counts.unchanged;
    let folder = Kept::open(&ctx.home, ctx.host()).root().display().to_string();
    if ctx.json {
        ctx.print_json(&json!({"keep": true, "kept": kept, "failed": counts.failed, "path": folder}))?;
    } else {
        ctx.line(&format!("Keeping {} in {folder}.", plural(kept as u64, "session")))?;
    }
    offer_timer(timer, ctx)
}

fn off(ctx: &mut Ctx) -> Result<(), Failure> {
    switch(false, ctx)?;
    match ctx.json {
        true => ctx.print_json(&json!({"keep": false})),
        false => ctx.line("No more copies are kept; those that are there stay."),
    }
}

fn switch(is_on: bool, ctx: &mut Ctx) -> Result<(), Failure> {
    let host = ctx.host();
    ctx.check_home(ctx.config.path.clone(), "XDG_CONFIG_HOME or SCROLLBACK_HOME")?;
    ctx.check_home(ctx.home.data(), "XDG_DATA_HOME or SCROLLBACK_HOME")?;
    ctx.config.set(Key::named("keep")?, if is_on { "true" } else { "false" }, &host)
}

/// The sessions that their agents still have.
fn live_sources(global: &Global, ctx: &mut Ctx) -> Result<Vec<Source>, Failure> {
    let (mut sources, _) = scope::readable(scope::places(global, ctx)?.sources(), ctx)?;
    sources.retain(|source| source.kept_from().is_none());
    Ok(sources)
}

fn status(global: &Global, ctx: &mut Ctx) -> Result<(), Failure> {
    let places = scope::places(global, ctx)?;
    let (sources, _) = scope::readable(places.sources(), ctx)?;
    let only_kept: Vec<String> =
        sources.iter().filter(|source| source.kept_from().is_some()).map(Source::name).collect();
    let older = places.older_generations().len();
    let copies = sources.iter().filter(|source| !places.kept_copies(source).is_empty()).count();
    let path = Kept::open(&ctx.home, ctx.host()).root().display().to_string();
    let is_on = ctx.config.is_keeping();
    if ctx.json {
        return ctx.print_json(&json!({
            "keep": is_on, "path": path, "kept": copies, "onlyKept": only_kept, "olderGenerations": older,
        }));
    }
    ctx.line(&format!("keep is {}; copies are in {path}", if is_on { "on" } else { "off" }))?;
    ctx.line(&format!(
        "{} kept; {} deleted by their agents; {} rewritten",
        plural(copies as u64, "session"),
        only_kept.len(),
        older
    ))?;
    if !is_on {
        ctx.note("Run `scrollback keep on` to keep what agents delete.")?;
    } else if !only_kept.is_empty() {
        ctx.note("Run `scrollback keep restore SESSION` to give one back to its agent.")?;
    }
    Ok(())
}

fn restore(session: &SessionName, global: &Global, ctx: &mut Ctx) -> Result<(), Failure> {
    let named = name::resolve(session, global, ctx)?;
    let places = scope::places(global, ctx)?;
    let Located::Source(source) = named.located else {
        return Err(Failure::new(FailureKind::Usage, "piped input is not kept").hint("name a session"));
    };
    // A session that was named by its path does not know what it is a copy of.
    let kept =
        if source.kept_from().is_some() { Some(*source) } else { places.kept_copies(&source).into_iter().next() };
    let Some(kept) = kept else {
        let failure =
            Failure::new(FailureKind::NotFound, format!("{}: no copy was kept", clean::line(session.typed())));
        return Err(failure.hint("run `scrollback keep status`"));
    };
    let path = Kept::open(&ctx.home, ctx.host()).restore(&kept)?;
    match ctx.json {
        true => ctx.print_json(&json!({"session": kept.name(), "path": path.display().to_string()})),
        false => ctx.line(&format!("restored {} to {}", clean::line(&kept.name()), path.display())),
    }
}

/// The unit files of a timer that keeps sessions every hour.
fn timer_files(ctx: &Ctx) -> Option<[(PathBuf, String); 2]> {
    let config = ctx.home.vars.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = config.unwrap_or_else(|| ctx.home.dir.join(".config")).join("systemd/user");
    let program = std::env::current_exe().ok()?.display().to_string().replace('%', "%%");
    let service = format!(
        "[Unit]\nDescription=Keep the sessions of AI agents\n\n[Service]\nType=oneshot\nExecStart=\"{program}\" index\n"
    );
    let timer = "[Unit]\nDescription=Keep the sessions of AI agents every hour\n\n[Timer]\nOnCalendar=hourly\n\
                 Persistent=true\n\n[Install]\nWantedBy=timers.target\n";
    let file = |ending: &str| folder.join(format!("scrollback-keep.{ending}"));
    folder.is_absolute().then(|| [(file("service"), service), (file("timer"), timer.to_owned())])
}

/// Prints the timer, and writes it if somebody wants it. A file that is there and says something else stays.
fn offer_timer(is_wanted: bool, ctx: &mut Ctx) -> Result<(), Failure> {
    /// A unit file is a few lines.
    const UNIT_LIMIT_BYTES: u64 = 64 * 1024;
    let Some(files) = timer_files(ctx).filter(|_| cfg!(target_os = "linux") && (is_wanted || !ctx.json)) else {
        return Ok(());
    };
    let is_there = |(path, text): &(PathBuf, String)| {
        regular_file::read(path, UNIT_LIMIT_BYTES, Links::Follow).is_ok_and(|there| there == text.as_bytes())
    };
    if files.iter().all(is_there) {
        return Ok(());
    }
    if !ctx.json {
        ctx.line("\nCopies are made when you run scrollback. To make them every hour, a timer of systemd:")?;
        for (path, text) in &files {
            ctx.line(&format!("\n# {}\n{}", path.display(), text.trim_end()))?;
        }
        ctx.line("")?;
    }
    let is_agreed = is_wanted || ask::is_possible(ctx) && ask::is_agreed("Write these two files?", ctx)?;
    if !is_agreed {
        return ctx.note("Run `scrollback keep on --timer` to write them.");
    }
    if let Some((path, _)) = files.iter().find(|file| file.0.exists() && !is_there(file)) {
        let failure =
            Failure::new(FailureKind::Usage, format!("{}: already there, with other content", path.display()));
        return Err(failure.hint("remove it first, or copy what is printed above"));
    }
    for (path, text) in &files {
        replace_private_file(path, text.as_bytes(), Links::Refuse, &ctx.host())?;
    }
    ctx.note("Run `systemctl --user enable --now scrollback-keep.timer` to start it.")
}
