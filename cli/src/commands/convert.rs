//! `convert`: writes a session in another agent's format, and reports what that format cannot store.

mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, Host, LossKind, Lost};
use scrollback::session::{Bridge, ReadOptions, Session, Source};
use scrollback::transfer::convert::{Conversion, Converted, LossRow, Target};
use scrollback::view::find::{Places, SessionName};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind, see_branches};
use crate::outlet::Secrets;
use crate::render::json;
use crate::render::table::{Cell, Column, Table};
use crate::session::name;
use crate::session::resume::{self, Resumable};
use crate::session::writable::{check_directory, is_with_somebody, usual_store, with_whom};
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Write a session in another agent's format
///
/// The new session is where that agent finds it, or where --store or -o puts it; nothing is overwritten, and the session itself is not changed. What is
/// not carried over is named, in detail with --explain, and with --json for each record. A copy of the original is kept beside the new file, so that converting back restores it. A format without branches gets the newest one, or the one that ends in RECORD.
#[derive(clap::Args, Debug)]
pub(crate) struct ConvertArgs {
    /// Session id, unique beginning, @, a path or -; #RECORD names the branch that ends there
    #[arg(value_name = "SESSION[#RECORD]")]
    session: SessionName,
    /// The dialect of the new session
    #[arg(long, value_name = "DIALECT")]
    to: String,
    /// Write to this file; - is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "store")]
    output: Option<PathBuf>,
    /// Convert the branch that ends in this record
    #[arg(long, value_name = "RECORD")]
    head: Option<String>,
    /// The person or room that the session is with; fluux requires it
    #[arg(long, value_name = "JID")]
    jid: Option<String>,
    /// List every difference between the session and the new file
    #[arg(long)]
    explain: bool,
}

impl ConvertArgs {
    /// Whether the new session goes to standard output.
    pub(crate) fn is_piped(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }
}

pub(crate) fn run(args: &ConvertArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let to = target_dialect(&args.to)?;
    let is_piped = args.is_piped();
    if is_piped {
        check_reader(ctx)?;
    }
    if ctx.demo && args.output.is_none() && global.store.is_none() {
        let failure = Failure::new(FailureKind::Usage, "the demo is read-only");
        return Err(failure.hint("write the converted session elsewhere with -o FILE or --store DIR"));
    }
    // --store is the store of the new session, not of the source.
    let from = Global { store: None, ..global.clone() };
    let named = name::resolve(&args.session, &from, ctx)?;
    let session = named.located.open(&from, ctx, Bridge::AsTheAgent, None, ctx.content_mask().as_ref())?;
    let head = args.head.as_deref().or(named.record.as_deref());
    let head = head.map(|record| name::record(&session, record)).transpose()?;
    let head = head.map(|record| record.id().into_owned());
    let with = person_or_room(to, args.jid.as_deref())?;
    let with = with.as_deref();
    let mut host = ctx.host();
    host.cwd.clone_from(&ctx.typed_in);
    if session.cwd().is_none() {
        check_directory(&host)?;
    }
    let root = global.store.clone().map_or_else(|| usual_store(to, ctx), Ok)?;
    let target = args.output.as_deref().map_or(Target::Store(&root), Target::File);
    let how = Conversion { to, target, head: head.as_deref(), with };
    check_folder(args.output.as_deref(), ctx)?;
    if is_piped {
        return to_stdout(&session, how, &host, args.explain, ctx);
    }
    let converted = restorable(&session, &how, &host, global, ctx).and_then(|()| session.convert(&how, &host));
    let converted = match converted {
        Err(Error::Exists(path)) if args.output.is_none() => {
            return Err(already_there(&session, to, path, global, ctx));
        }
        converted => converted.map_err(|error| not_converted(&session, &how, error))?,
    };
    Secrets::of_file(&converted.path, ctx)?.tell(ctx)?;
    remark(&converted, ctx)?;
    if ctx.json {
        ctx.print_json(&converted)?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&clean::line(&converted.path.to_string_lossy()))?;
    if args.explain {
        let table = table(&converted.losses, ctx.look.width, ctx.paint());
        write!(ctx.out, "{table}")?;
    }
    ctx.note(&summary::sentences(&converted, args.explain))?;
    if args.explain && converted.sidecar.is_some() {
        ctx.note("A copy of the original is kept beside it: converting back restores it.")?;
    }
    if converted.losses.iter().any(|row| row.what == Lost::Original) {
        ctx.note("No copy of the original is kept beside it: converting back gives only what was carried over.")?;
    }
    let (id, path) = (converted.session.as_str(), converted.path.as_path());
    resume::print_resume_line(Resumable { dialect: to, id, path, cwd: session.cwd() }, ctx)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if the original that a session becomes again is still in another store of its agent: two sessions would have one id.
fn restorable(session: &Session, how: &Conversion<'_>, host: &Host, global: &Global, ctx: &Ctx) -> Result<(), Error> {
    let is_usual = matches!(how.target, Target::Store(_)) && global.store.is_none();
    let restored = if is_usual { session.restored_id(how, host)? } else { None };
    let places = Places { home: ctx.home.clone(), store: None, dialect: Some(how.to), mask: None };
    let known = restored.and_then(|id| places.with_id(id.as_str(), ctx.now).into_iter().next());
    known.map_or(Ok(()), |known| Err(Error::Exists(known.path)))
}

/// The session that has the place of the new one: an earlier conversion, the original, or the session itself.
fn already_there(session: &Session, to: &'static dyn Dialect, path: PathBuf, global: &Global, ctx: &Ctx) -> Failure {
    let there = Source::file(to, &path);
    let id = Session::open(&there, &ReadOptions::plain(ctx.now)).map(|there| there.id().to_string());
    let Ok(id) = id else { return Error::Exists(path).into() };
    // A session of another store is found by its path.
    let name = if global.store.is_some() { path.to_string_lossy().into_owned() } else { id.clone() };
    let name = clean::line(&name).into_owned();
    let own = Source::file(session.dialect(), session.path());
    if to.name() == own.dialect.name() && id == session.id().as_str() && there.store() == own.store() {
        let message = format!("the session {} is already in the format of {}", clean::line(&id), to.name());
        // A format with one current session has no place for a fork.
        let can_fork = to.writer().is_some_and(|writer| writer.adopt.is_some() && writer.ended_path.is_none());
        let fork = if can_fork { format!("run `scrollback fork {name}` to copy it; ") } else { String::new() };
        return Failure::new(FailureKind::Usage, message).hint(format!("{fork}-o FILE writes it elsewhere"));
    }
    let message = format!("the {} session {} exists already: {}", to.name(), clean::line(&id), path.display());
    let hint = "to make place for the new one; -o FILE writes it elsewhere";
    Failure::new(FailureKind::Usage, message)
        .hint(format!("run `scrollback show {name}` to see it, or `scrollback remove {name}` {hint}"))
}

/// Refuses a file in a missing folder: a mistyped path creates nothing.
fn check_folder(output: Option<&Path>, ctx: &Ctx) -> Result<(), Failure> {
    let file = output.map(|output| ctx.typed_in.join(output));
    let Some(folder) = file.as_deref().and_then(Path::parent).filter(|folder| !folder.exists()) else { return Ok(()) };
    let failure = Failure::new(FailureKind::Usage, format!("{}: no such folder", folder.display()));
    Err(failure.hint("create it first, or use --store DIR, which creates a store"))
}

fn remark(converted: &Converted, ctx: &mut Ctx) -> Result<(), Failure> {
    converted.renamed.iter().try_for_each(|renamed| ctx.caution("renamed", renamed))?;
    converted.remarks.iter().try_for_each(|remark| ctx.caution("sidecar", remark))
}

/// Explains errors that have another cause than the library can know.
fn not_converted(session: &Session, how: &Conversion<'_>, error: Error) -> Failure {
    match error {
        Error::InvalidName { .. } | Error::CannotCreate { .. } if is_with_somebody(how.to) && how.with.is_none() => {
            let message = format!("a {} session needs the person or room that it is with", how.to.name());
            let failure = Failure::new(FailureKind::Usage, message);
            failure.hint("name it with --jid JID")
        }
        Error::EmptyBranch { ref session, ref left } => {
            let hint = format!("add --head {left} to convert the branch that was left; {}", see_branches(session));
            let message = format!("nothing to convert: {error}");
            Failure::new(FailureKind::NotFound, message).hint(hint)
        }
        Error::NothingToStore(_) if session.dialect().name() == "unknown" => {
            let failure = Failure::new(FailureKind::Usage, "unknown format");
            failure.hint("name its dialect with --dialect; `scrollback show` prints what can be read")
        }
        error => error.into(),
    }
}

fn target_dialect(name: &str) -> Result<&'static dyn Dialect, Failure> {
    let written: Vec<&str> = dialect::all()
        .iter()
        .filter(|dialect| dialect.writer().is_some())
        .map(|dialect| dialect.name())
        .collect();
    let found = dialect::named(name).filter(|dialect| dialect.writer().is_some());
    found.ok_or_else(|| {
        let failure = Failure::new(FailureKind::Usage, format!("cannot write the dialect {name:?}"));
        failure.hint(format!("known: {}", written.join(", ")))
    })
}

/// The person or room that the new session is with. Fluux requires it, unless the session was one before.
fn person_or_room(to: &dyn Dialect, jid: Option<&str>) -> Result<Option<String>, Failure> {
    match jid {
        Some(jid) if is_with_somebody(to) => with_whom(to, Some(jid)),
        Some(_) => {
            let failure = Failure::new(FailureKind::Usage, "--jid is only for fluux");
            Err(failure.hint("use --to fluux, or leave out --jid"))
        }
        None => Ok(None),
    }
}

/// Refuses a terminal: text for a terminal is escaped, and would no longer be a session.
fn check_reader(ctx: &Ctx) -> Result<(), Failure> {
    if !ctx.on_terminal {
        return Ok(());
    }
    let failure = Failure::new(FailureKind::Usage, "standard output is a terminal");
    Err(failure.hint("redirect it to a file or a program, or use -o FILE"))
}

/// Writes the new session to standard output, and the losses to standard error.
fn to_stdout(
    session: &Session,
    how: Conversion<'_>,
    host: &Host,
    explains: bool,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let scratch = std::env::temp_dir();
    let nowhere = scratch.join((host.new_id)());
    let how = Conversion { target: Target::File(&nowhere), ..how };
    let converted = session.rehearse(&how, host, &scratch);
    let (converted, bytes) = converted.map_err(|error| not_converted(session, &how, error))?;
    ctx.out.write_all(&bytes)?;
    ctx.out.flush()?;
    let mut secrets = Secrets::new(ctx)?;
    secrets.count_all(&bytes);
    secrets.tell(ctx)?;
    remark(&converted, ctx)?;
    if ctx.json {
        json::compact(&mut ctx.err, &Converted { path: "-".into(), ..converted })?;
        writeln!(ctx.err)?;
        return Ok(ExitCode::SUCCESS);
    }
    if explains {
        let table = table(&converted.losses, ctx.look.width, Paint { colour: false });
        write!(ctx.err, "{table}")?;
    }
    ctx.note(&summary::sentences(&converted, explains))?;
    Ok(ExitCode::SUCCESS)
}

/// Losses by name: how many, and the first record.
fn table(losses: &[LossRow], width: usize, paint: Paint) -> String {
    let mut groups: Vec<(&LossRow, u64)> = Vec::new();
    for row in losses {
        match groups.iter_mut().find(|(first, _)| first.what == row.what && first.kind == row.kind) {
            Some((_, count)) => *count += row.count,
            None => groups.push((row, row.count)),
        }
    }
    groups.sort_by_key(|(row, count)| (row.kind, std::cmp::Reverse(*count)));
    let columns = vec![
        Column::fixed(""),
        Column::right("COUNT"),
        Column::shrinking("WHAT", 12),
        Column::shrinking("FIRST RECORD", 8).spare(1),
    ];
    let mut table = Table::new(columns);
    let plain = |_: Paint, text: &str| text.to_owned();
    for (row, count) in groups {
        let kind = match row.kind {
            LossKind::Dropped => "dropped",
            LossKind::Renamed => "renamed",
            LossKind::Synthesised => "made up",
        };
        table.push(vec![
            Cell::new(kind, plain),
            Cell::new(count.to_string(), plain),
            Cell::new(clean::line(row.what.name()), plain),
            Cell::new(clean::line(&row.record), plain),
        ]);
    }
    table.render(width, paint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_lines_do_not_go_to_a_terminal() {
        for (on_terminal, is_refused) in [(true, true), (false, false)] {
            let mut ctx = Ctx::plain(false);
            ctx.on_terminal = on_terminal;
            assert_eq!(check_reader(&ctx).is_err(), is_refused);
        }
    }
}
