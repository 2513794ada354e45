//! `index`: reads what has changed into the index, so that `list` and `search` answer at once.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use scrollback::session::Source;
use scrollback::view::find::Places;
use scrollback::view::stream::{Wake, Watch, WatchBy};
use scrollback_index::{Archive, Depth, Pending, Refreshed, SqliteIndex, Verified};
use serde_json::json;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::session::keeping::keep_all;
use crate::session::{archive, scope};
use crate::terminal::interrupt::on_interrupt;

/// Read new sessions into the index
///
/// `list` and `search` do this by themselves for a few sessions; this command does it for all of every project. Stop it at any time: the
/// next one continues. The index is a cache in one file, masked as everything that leaves a session: delete it, and nothing is lost.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct IndexArgs {
    /// Forget everything first
    #[arg(long)]
    rebuild: bool,
    /// Index all of long tool outputs, not only the first 4 KB
    #[arg(long)]
    everything: bool,
    /// Compare what the index has with the sessions themselves, and change nothing; exits with 1 if they differ
    #[arg(long, conflicts_with_all = ["rebuild", "everything", "watch"])]
    verify: bool,
    /// Continue: read what is appended as soon as it is written, until Ctrl-C
    #[arg(long, conflicts_with = "rebuild")]
    watch: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback index
  scrollback index --rebuild --everything
  scrollback index --verify";

pub(crate) fn run(args: &IndexArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if ctx.demo || global.store.is_some() || ctx.is_not_redacting() {
        let failure = Failure::new(FailureKind::Usage, "only your own sessions are indexed, and only masked");
        return Err(failure.hint("leave out --demo, --store and --no-redact"));
    }
    let places = scope::places(global, ctx)?;
    let (mut sources, unreadable) = scope::readable(places.sources(), ctx)?;
    if sources.is_empty() && args.watch {
        ctx.note("No session yet; waiting for one. Press Ctrl-C to stop.")?;
        sources = first_sessions(&places)?;
    }
    if sources.is_empty() {
        if args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        let is_whole = !args.verify && global.dialect.is_none();
        let forgotten = if is_whole { forget_gone(places.clone(), args.rebuild, global, ctx)? } else { 0 };
        if forgotten > 0 {
            ctx.note(&format!("The index has forgotten {}.", plural(forgotten as u64, "session")))?;
        }
        let failure = Failure::new(FailureKind::NotFound, "no session found");
        return Err(
            failure.hint(format!("{}; run `scrollback --demo search tide` to try it", scope::searched(&places)))
        );
    }
    if args.verify {
        return verify(archive::open_known(places, global, ctx), &sources, ctx);
    }
    keep_all(sources.iter(), ctx)?;
    let depth = if args.everything { Depth::Everything } else { Depth::Text };
    let mut archive = archive::open(places.clone(), &sources, global, ctx)?;
    let had_index = archive.has_index();
    let mut updated = update(&mut archive, &sources, depth, args, ctx);
    archive::warn_about_index(&mut archive, ctx)?;
    if had_index && !archive.has_index() {
        // Its damage came to light on the way, and it was moved aside.
        archive = archive::open(places, &sources, global, ctx)?;
        updated = update(&mut archive, &sources, depth, args, ctx);
        archive::warn_about_index(&mut archive, ctx)?;
    }
    let Updated { refreshed: Refreshed { read, unreadable: unread, is_stopped }, known, forgotten } = updated;
    let unreadable = unreadable + unread.len();
    for error in unread {
        ctx.warn(&error.into())?;
    }
    if !archive.has_index() {
        return Err(Failure::new(FailureKind::Io, "the index cannot be used").hint("see the warning above"));
    }
    // An index that is closed has everything in one file.
    let watched = (args.watch && !is_stopped).then_some(archive);
    if ctx.json {
        let path = archive::path(ctx);
        let bytes = path.as_ref().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
        ctx.print_json(&json!({
            "path": path.map(|path| path.display().to_string()), "sizeBytes": bytes, "read": read, "unchanged": known,
            "forgotten": forgotten, "unreadable": unreadable, "stopped": is_stopped,
        }))?;
    } else {
        report(read, known, forgotten, is_stopped, ctx)?;
    }
    if let Some(mut archive) = watched {
        watch(&mut archive, depth, ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What an update of the index did.
struct Updated {
    refreshed: Refreshed,
    /// How many sessions were unchanged.
    known: usize,
    forgotten: usize,
}

/// Reads what has changed into the index, and forgets what is gone.
fn update(archive: &mut Archive, sources: &[Source], depth: Depth, args: &IndexArgs, ctx: &Ctx) -> Updated {
    archive.look(sources);
    if args.rebuild {
        archive.clear();
    }
    let excluded = archive.forget_excluded();
    let pending = archive.pending(sources, depth);
    let known = sources.len() - pending.len();
    let refreshed = refresh(archive, pending, depth, ctx);
    Updated { refreshed, known, forgotten: excluded + archive.forget_missing() }
}

/// Leaves no word of sessions that are gone in an index that is there. Returns how many.
fn forget_gone(places: Places, is_rebuilt: bool, global: &Global, ctx: &mut Ctx) -> Result<usize, Failure> {
    let mut archive = archive::open_known(places, global, ctx);
    let forgotten = archive.forget_missing();
    if is_rebuilt {
        archive.clear();
    }
    if is_rebuilt || forgotten > 0 {
        archive.optimize();
    }
    archive::warn_about_index(&mut archive, ctx)?;
    Ok(forgotten)
}

fn report(read: usize, known: usize, forgotten: usize, is_stopped: bool, ctx: &mut Ctx) -> Result<(), Failure> {
    let gone = if forgotten > 0 { format!(", {} gone", plural(forgotten as u64, "session")) } else { String::new() };
    ctx.line(&format!("Indexed {}; {known} unchanged{gone}.", plural(read as u64, "session")))?;
    if is_stopped {
        ctx.note("Stopped; run `scrollback index` to continue.")?;
    }
    Ok(())
}

/// Compares the index with the sessions.
fn verify(mut archive: Archive, sources: &[Source], ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let unusable = |what: &str, ctx: &mut Ctx| {
        let failure = Failure::new(FailureKind::Io, format!("the index {what}"));
        ctx.warn(&failure.hint("run `scrollback index` to make it"))?;
        Ok(ExitCode::from(FOUND_PROBLEMS))
    };
    if !archive.has_index() {
        let is_there = archive::path(ctx).is_some_and(|path| path.exists());
        let missing = format!("does not exist; {} would be in it", plural(sources.len() as u64, "session"));
        return unusable(if is_there { "is damaged, or was made by other rules" } else { &missing }, ctx);
    }
    archive.look(sources);
    let bar = bar(
        "verifying",
        sources.iter().filter_map(|source| source.path.metadata().ok()).map(|file| file.len()).sum(),
        ctx,
    );
    let Verified { sessions, parts, wrong, left_over, unreadable } = archive.verify(sources, &|bytes| {
        bar.inc(bytes);
        true
    });
    bar.finish_and_clear();
    if let Some(problem) = archive.take_problems().first() {
        // Another program may have it just now.
        let what = if SqliteIndex::is_damaged(problem) { "is damaged" } else { "cannot be read" };
        return unusable(&format!("{what}: {problem}"), ctx);
    }
    for error in unreadable {
        ctx.warn(&error.into())?;
    }
    let is_right = wrong.is_empty() && left_over == 0;
    if ctx.json {
        let wrong: Vec<String> = wrong.iter().map(|source| source.path.display().to_string()).collect();
        ctx.print_json(&json!({"sessions": sessions, "parts": parts, "wrong": wrong, "leftOver": left_over}))?;
    } else {
        for source in &wrong {
            ctx.line(&format!("{}: the index says something else", source.path.display()))?;
        }
        let parts = plural(parts as u64, "part");
        ctx.line(&format!(
            "Compared {} with {parts}: {}.",
            plural(sessions as u64, "session"),
            match (wrong.len(), left_over) {
                (0, 0) => "all as they should be".to_owned(),
                (0, rows) => format!("{} of no session", plural(rows as u64, "row")),
                (wrong, _) => format!("{} wrong", plural(wrong as u64, "session")),
            }
        ))?;
        if !is_right {
            ctx.note("Run `scrollback index --rebuild`: the index is only a cache.")?;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(FOUND_PROBLEMS) })
}

/// Waits for the first session of a home that has none; none if somebody stops it.
fn first_sessions(places: &Places) -> Result<Vec<Source>, Failure> {
    let mut watch = Watch::new(WatchBy::Events);
    let interrupter = watch.interrupter();
    on_interrupt(move || interrupter.interrupt())?;
    loop {
        let sources: Vec<Source> = places.sources().into_iter().flatten().collect();
        if !sources.is_empty() {
            return Ok(sources);
        }
        places.roots().iter().for_each(|root| _ = watch.folder(root));
        if watch.wait() == Wake::Interrupted {
            return Ok(Vec::new());
        }
    }
}

/// Reads what is appended as soon as it is written, until somebody stops it.
fn watch(archive: &mut Archive, depth: Depth, ctx: &mut Ctx) -> Result<(), Failure> {
    let mut watch = Watch::new(WatchBy::Events);
    let interrupter = watch.interrupter();
    drop(on_interrupt(move || interrupter.interrupt()));
    ctx.out.flush()?;
    ctx.note("Watching; press Ctrl-C to stop.")?;
    loop {
        archive.places().roots().iter().for_each(|root| _ = watch.folder(root));
        if watch.wait() == Wake::Interrupted {
            return Ok(());
        }
        let sources: Vec<Source> = archive.places().sources().into_iter().flatten().collect();
        archive.look(&sources);
        let changed: Vec<Source> = archive.changed(&sources).into_iter().cloned().collect();
        keep_all(changed.iter(), ctx)?;
        let pending = archive.pending(&sources, depth);
        let Refreshed { read, unreadable, .. } = archive.read_texts(pending, depth, &|_| true);
        let forgotten = archive.forget_missing();
        for error in unreadable {
            ctx.warn(&error.into())?;
        }
        archive::warn_about_index(archive, ctx)?;
        if !archive.has_index() {
            return Err(Failure::new(FailureKind::Io, "the index cannot be used").hint("see the warning above"));
        }
        if (read > 0 || forgotten > 0) && !ctx.json {
            report(read, sources.len() - read, forgotten, false, ctx)?;
            ctx.out.flush()?;
        }
    }
}

/// A progress bar over bytes, for a person at a terminal.
fn bar(doing: &str, bytes: u64, ctx: &Ctx) -> ProgressBar {
    /// Less is done before a bar is seen.
    const WORTH_A_BAR: u64 = 8 * 1024 * 1024;
    let bar = if ctx.err_on_terminal && bytes > WORTH_A_BAR { ProgressBar::new(bytes) } else { ProgressBar::hidden() };
    let template = format!("{doing} {{bar:30}} {{bytes}} of {{total_bytes}}, {{bytes_per_sec}}, {{eta}} left");
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Reads sessions into the index behind a progress bar. Ctrl-C stops it after the sessions that are being read.
pub(crate) fn refresh(archive: &mut Archive, pending: Vec<Pending>, depth: Depth, ctx: &Ctx) -> Refreshed {
    /// More leaves many small pieces of an index behind.
    const WORTH_OPTIMIZING: u64 = 64 * 1024 * 1024;
    let bytes = pending.iter().map(|pending| pending.bytes).sum();
    let bar = bar("indexing", bytes, ctx);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stop = is_stopped.clone();
    // Without a handler, Ctrl-C ends the program, and what was stored stays.
    drop(on_interrupt(move || !stop.swap(true, Ordering::Relaxed)));
    let refreshed = archive.read_texts(pending, depth, &|bytes| {
        bar.inc(bytes);
        !is_stopped.load(Ordering::Relaxed)
    });
    if bytes > WORTH_OPTIMIZING && !refreshed.is_stopped {
        archive.optimize();
    }
    bar.finish_and_clear();
    refreshed
}
