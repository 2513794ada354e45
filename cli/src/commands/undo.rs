//! `undo` and `redo`: restore the files of a session to what they were at a message, and take that back.

use std::path::PathBuf;
use std::process::ExitCode;

use scrollback::model::{Error, RecordId, RestoredFile, Todo};
use scrollback::view::find::SessionName;
use scrollback::write::{
    Applied, Blocked, Goal, Plan, PlannedFile, Readiness, Recovered, Scope, Store, Undo, UndoHead, Warning,
    is_undo_interrupted,
};
use serde::Serialize;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::render::restore_plan;
use crate::session::name;
use crate::session::resume;
use crate::session::resume::quote;
use crate::session::warnings;
use crate::session::writable::Writable;
use crate::terminal::{ask, clean};

/// Restore files to what they were before a message
///
/// Without a record, undoes the last turn; a second undo goes one turn further. SESSION#RECORD restores the files to what they were before
/// that message, --to RECORD to what they were after it. The plan is shown first; nothing is changed unless every file is what the session
/// left. What is overwritten is kept, and `redo` takes the undo back.
///
/// A native session also continues from there, with its task list; a session of another agent stays as it is, unless you add --conversation.
#[derive(clap::Args, Debug)]
#[command(after_long_help = UNDO_EXAMPLES)]
pub(crate) struct UndoArgs {
    /// Session, or the message before which the files are restored
    #[arg(value_name = "SESSION[#RECORD]")]
    session: SessionName,
    /// Restore the files to what they were after this record
    #[arg(long, value_name = "RECORD")]
    to: Option<String>,
    #[command(flatten)]
    how: HowArgs,
}

const UNDO_EXAMPLES: &str = "\
Examples:
  scrollback undo @ --dry-run
  scrollback undo 3f8a#u2
  scrollback undo @ --to a1 --yes";

/// Take the last undo back
///
/// Takes back the newest undo, as long as the agent has not changed files since. Run it again to take back the one before.
#[derive(clap::Args, Debug)]
#[command(after_long_help = REDO_EXAMPLES)]
pub(crate) struct RedoArgs {
    /// Session id, unique prefix, @, or a path
    session: SessionName,
    #[command(flatten)]
    how: HowArgs,
}

const REDO_EXAMPLES: &str = "\
Examples:
  scrollback redo @
  scrollback redo 3f8a --yes";

#[derive(clap::Args, Debug)]
struct HowArgs {
    /// Show the plan, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    /// Restore files, and leave the conversation where it is
    #[arg(long)]
    files_only: bool,
    /// Let the conversation of another agent's session continue from there, too
    #[arg(long, conflicts_with = "files_only")]
    conversation: bool,
    /// Overwrite files that were changed since, and those of which nobody knows; their content is kept
    #[arg(long)]
    force: bool,
    /// Leave files that are not ready as they are
    #[arg(long)]
    skip_conflicts: bool,
    /// Directory of the project, if it has moved
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl HowArgs {
    /// The directory of `--root`, as it was typed.
    fn root_in(&self, ctx: &Ctx) -> Option<PathBuf> {
        self.root.as_ref().map(|root| ctx.typed_in.join(root))
    }
}

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    session: String,
    target: Option<&'a RecordId>,
    applied: bool,
    files: Vec<FileAnswer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<&'a Vec<Todo>>,
    /// The record that the conversation continues from, or `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
    /// The restore record, or its line in our journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    restore: Option<&'a RecordId>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileAnswer<'a> {
    path: &'a str,
    action: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rebuilt: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

pub(crate) fn run(args: &UndoArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let newest = args.to.is_none().then_some(Goal::LastTurn);
    let Some(found) = find(&args.session, newest.as_ref(), &args.how, global, ctx)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let writable = &found.writable;
    let record = |named: &str| name::record(&writable.session, named).map(|record| record.id().into_owned());
    let goal = match (&writable.record, &args.to) {
        (Some(_), Some(_)) => {
            let failure = Failure::new(FailureKind::Usage, "two records named");
            return Err(failure.hint("use either SESSION#RECORD or --to RECORD"));
        }
        (Some(before), None) => Goal::Before(record(before)?),
        (None, Some(after)) => Goal::After(record(after)?),
        (None, None) => Goal::LastTurn,
    };
    restore(&found, &goal, &args.how, global, ctx)
}

pub(crate) fn run_redo(args: &RedoArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let Some(found) = find(&args.session, Some(&Goal::Redo), &args.how, global, ctx)? else {
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(record) = &found.writable.record {
        let failure = Failure::new(FailureKind::Usage, format!("#{} is a record", clean::line(record)));
        return Err(failure.hint("redo takes back the newest undo of a session; name the session alone"));
    }
    restore(&found, &Goal::Redo, &args.how, global, ctx)
}

/// The session that a command names.
struct Found {
    writable: Writable,
    /// An operation that was interrupted has been finished or taken back.
    is_recovered: bool,
}

/// Finds the session. An undo that was interrupted is finished first, and the session read again; `None` if that is what is asked
/// for: `newest` is the goal, if no record is named.
fn find(
    name: &SessionName,
    newest: Option<&Goal>,
    how: &HowArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<Option<Found>, Failure> {
    let writable = Writable::find(name, global, ctx)?;
    let root = how.root_in(ctx);
    let data = Some(ctx.home.data()).filter(|data| data.is_absolute());
    if !is_undo_interrupted(&writable.session, data.as_deref(), root.as_deref()) {
        return Ok(Some(Found { writable, is_recovered: false }));
    }
    if how.dry_run {
        ctx.caution(
            "interrupted",
            "an undo of this project was interrupted; the next one finishes it or takes it back",
        )?;
        return Ok(Some(Found { writable, is_recovered: false }));
    }
    let undo = open(&writable, how, ctx)?;
    let newest = newest.filter(|_| writable.record.is_none());
    let is_repeated = newest.map_or(Ok(false), |goal| undo.is_interrupted_at(goal))?;
    let recovered = undo.recover()?;
    let found = Found { writable: Writable::find(name, global, ctx)?, is_recovered: recovered.is_some() };
    match recovered {
        Some(Recovered::Finished) if is_repeated => {
            print_finished(&open(&found.writable, how, ctx)?, ctx)?;
            return Ok(None);
        }
        Some(Recovered::Finished) => ctx.note("An undo that was interrupted is finished.")?,
        Some(Recovered::RolledBack) => {
            ctx.note("An undo that was interrupted is taken back: it could not be finished any more.")?
        }
        None => {}
    }
    Ok(Some(found))
}

/// Says what became of the command when it is repeated after it was interrupted.
fn print_finished(undo: &Undo<'_>, ctx: &mut Ctx) -> Result<(), Failure> {
    let Some((record, restore)) = undo.last_restore() else { return Ok(()) };
    let files = RestoredFile::read_all(&restore.files);
    if ctx.json {
        let answers = files.iter().map(|file| FileAnswer {
            path: &file.path,
            action: &file.action,
            state: file.state.as_deref().unwrap_or_default(),
            reason: None,
            rebuilt: false,
            diff: None,
        });
        ctx.print_json(&Answer {
            session: undo.session().id().to_string(),
            target: restore.target.as_ref(),
            applied: true,
            files: answers.collect(),
            todos: restore.todos.as_ref(),
            head: None,
            restore: Some(record),
        })?;
    }
    let (what, command) = if restore.takes_back.is_some() { ("A redo", "redo") } else { ("An undo", "undo") };
    let changed = files.iter().filter(|file| file.versions.is_some()).count();
    ctx.note(&format!(
        "{what} that was interrupted is finished: restored {}, and nothing else was changed. Run `{command}` again to go further.",
        plural(changed as u64, "file")
    ))
}

fn open<'w>(writable: &'w Writable, how: &HowArgs, ctx: &Ctx) -> Result<Undo<'w>, Failure> {
    let root = how.root_in(ctx);
    let data = ctx.check_home(ctx.home.data(), "XDG_DATA_HOME or SCROLLBACK_HOME")?;
    let mut host = writable.host().clone();
    host.data = Some(data);
    Undo::open(&writable.session, host, root.as_deref()).map_err(|error| {
        let failure = Failure::from(error);
        Failure { kind: FailureKind::Usage, ..failure }
            .hint("use --root DIR if the project is in another directory now")
    })
}

/// What came of a plan.
enum Outcome {
    /// There is nothing to restore.
    Empty,
    /// It was only to be shown.
    Shown,
    /// A file is not ready.
    Blocked,
    /// Of files that are not ready all were left out, and there is no other.
    AllLeftOut,
    /// Nobody agreed, the conversation cannot go back, or the disk failed.
    Refused(Failure),
    /// Somebody changed this file meanwhile.
    Overtaken(PathBuf),
    Applied(Applied),
}

fn restore(found: &Found, goal: &Goal, how: &HowArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let writable = &found.writable;
    let undo = open(writable, how, ctx)?;
    let is_moved = how.conversation || (undo.is_noted_in_session() && !how.files_only);
    let scope = if is_moved { Scope::Conversation } else { Scope::FilesOnly };
    let plan = undo.plan(goal, scope)?;
    if !ctx.json && !plan.is_empty() {
        // Whoever has agreed already wants to know what, not each line of it.
        let text = restore_plan::text(&undo, &plan, !how.yes, ctx);
        ctx.line(text.trim_end())?;
        // Notes come after it, also where both outputs are one terminal.
        ctx.end_page()?;
    }
    print_cautions(&undo, ctx)?;
    let outcome = carry_out(found, &undo, &plan, how, ctx)?;
    let applied = if let Outcome::Applied(applied) = &outcome { Some(applied) } else { None };
    print_answer(&undo, &plan, applied, ctx)?;
    match outcome {
        Outcome::Empty => nothing_to_do(&undo, &plan, how, ctx),
        Outcome::Shown => Ok(ExitCode::SUCCESS),
        Outcome::Blocked => {
            let force =
                if plan.is_ready(Blocked::Force) { "; --force overwrites them and keeps what they were" } else { "" };
            ctx.note(&format!(
                "Nothing was changed. --skip-conflicts leaves out the files that are not ready{force}."
            ))?;
            Ok(ExitCode::from(FOUND_PROBLEMS))
        }
        Outcome::AllLeftOut => {
            ctx.note("Nothing to do: no file is ready, so nothing was changed.")?;
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Refused(failure) => Err(failure),
        Outcome::Overtaken(path) => {
            let path = clean::line(&path.to_string_lossy()).into_owned();
            ctx.note(&format!("Nothing was changed: {path} was changed meanwhile."))?;
            Ok(ExitCode::from(FOUND_PROBLEMS))
        }
        Outcome::Applied(applied) => {
            move_conversation(writable, &undo, &plan, ctx)?;
            let place = if plan.is_redo { undo_place(writable, &plan, scope, how, global, ctx) } else { String::new() };
            print_done(writable, &plan, &applied, &place, how, global, ctx)
        }
    }
}

/// Says what the plan cannot know.
fn print_cautions(undo: &Undo<'_>, ctx: &mut Ctx) -> Result<(), Failure> {
    if undo.is_in_use() {
        warnings::print(&[Warning::InUse], ctx)?;
    }
    restore_plan::print_gaps(undo.history(), ctx)?;
    if undo.session().issues().iter().any(|issue| issue.kind.is_loss()) {
        let session = undo.session().id().to_string();
        let what = format!(
            "lines of the session are damaged: what they told of files is not known; `scrollback doctor {}` lists them",
            clean::line(&session)
        );
        ctx.caution("damaged-session", &what)?;
    }
    if let Some(record) = undo.unmoved_conversation() {
        let (session, record) = (undo.session().id().to_string(), record.to_string());
        let what = format!(
            "the last undo restored files and was interrupted before the conversation went back; run `scrollback rewind {}#{}`",
            clean::line(&session),
            clean::line(&record)
        );
        ctx.caution("interrupted", &what)?;
    }
    Ok(())
}

/// Applies a plan, if it is ready and somebody agrees.
fn carry_out(found: &Found, undo: &Undo<'_>, plan: &Plan, how: &HowArgs, ctx: &mut Ctx) -> Result<Outcome, Failure> {
    let blocked = match (how.force, how.skip_conflicts) {
        (true, true) => Blocked::ForceOrSkip,
        (true, false) => Blocked::Force,
        (false, true) => Blocked::Skip,
        (false, false) => Blocked::Stop,
    };
    if plan.is_empty() {
        return Ok(Outcome::Empty);
    }
    if let Err(refused) = check_rewind(&found.writable, undo, plan) {
        return Ok(Outcome::Refused(refused));
    }
    if !plan.is_ready(blocked) {
        return Ok(Outcome::Blocked);
    }
    if how.dry_run {
        return Ok(Outcome::Shown);
    }
    let is_left_out = |file: &PlannedFile| file.state != Readiness::Ready;
    if plan.changes(blocked) == 0 && plan.files.iter().any(is_left_out) {
        return Ok(Outcome::AllLeftOut);
    }
    if !how.yes && !is_agreed(plan, blocked, ctx)? {
        let what = if found.is_recovered { "nothing else was changed" } else { "nothing was changed" };
        let failure = Failure::new(FailureKind::Usage, what);
        return Ok(Outcome::Refused(failure.hint("answer y, or add --yes")));
    }
    Ok(match undo.apply(plan, blocked) {
        Ok(applied) => Outcome::Applied(applied),
        Err(Error::Changed(path)) => Outcome::Overtaken(path),
        Err(error) => Outcome::Refused(error.into()),
    })
}

fn is_agreed(plan: &Plan, blocked: Blocked, ctx: &mut Ctx) -> Result<bool, Failure> {
    if !ask::is_possible(ctx) {
        return Ok(false);
    }
    let question = match plan.changes(blocked) {
        0 => "Go back?".to_owned(),
        count => format!("Restore {}?", plural(count as u64, "file")),
    };
    ask::is_agreed(&question, ctx)
}

/// Fails before anything is changed if another agent's session cannot continue from there.
fn check_rewind(writable: &Writable, undo: &Undo<'_>, plan: &Plan) -> Result<(), Failure> {
    let Some(head) = plan.head.as_ref().filter(|_| !undo.is_noted_in_session()) else { return Ok(()) };
    let refused = |failure: Failure| failure.hint("leave out --conversation to restore only the files");
    match head {
        UndoHead::Record(record) => {
            let checked = writable.store()?.check_place(&writable.session, record.as_str());
            checked.map_err(|error| refused(Failure { kind: FailureKind::Usage, ..error.into() }))
        }
        UndoHead::Start => {
            let what = format!("{} sessions cannot go back to before the first prompt", writable.source.dialect.name());
            Err(refused(Failure::new(FailureKind::Usage, what)))
        }
    }
}

/// Another agent's session is rewound as `rewind` does it.
fn move_conversation(writable: &Writable, undo: &Undo<'_>, plan: &Plan, ctx: &mut Ctx) -> Result<(), Failure> {
    let Some(UndoHead::Record(record)) = plan.head.as_ref().filter(|_| !undo.is_noted_in_session()) else {
        return Ok(());
    };
    let reason = if plan.is_redo { "redo" } else { "undo" };
    let rewind = |store: &Store| store.rewind(&writable.source, record.as_str(), Some(reason.to_owned()));
    let rewound = writable.store().and_then(|store| rewind(&store).map_err(Failure::from));
    let rewound = rewound.map_err(|failure| {
        let message = format!("the files were restored, but the conversation did not go back: {}", failure.message);
        let (session, record) = (writable.id(), record.to_string());
        let again = format!("{}#{}", clean::line(&session), clean::line(&record));
        Failure { message, ..failure }.hint(format!("when that is mended, run `scrollback rewind {again}`"))
    })?;
    warnings::print(&rewound.warnings, ctx)
}

fn nothing_to_do(undo: &Undo<'_>, plan: &Plan, how: &HowArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let session = clean::line(plan.session.as_str()).into_owned();
    if let Some(root) = &how.root {
        let root = root.display().to_string();
        ctx.note(&format!("Only {} was looked at.", clean::line(&root)))?;
    }
    let left_out = undo.left_out();
    if let (false, Some(first)) = (plan.is_redo, left_out.first()) {
        let first = ctx.shown(first).into_owned();
        let more = match left_out.len() {
            1 => String::new(),
            count => format!(" and {}", plural(count as u64 - 1, "more file")),
        };
        let first = clean::line(&first).into_owned();
        ctx.note(&format!(
            "Nothing else to undo: the last undo left out {first}{more}. Run `scrollback redo {session}`, then `undo` again."
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if plan.is_redo {
        ctx.note("Nothing to redo: there is no undo that was not taken back, or the agent has changed files since.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if undo.history().changed().next().is_none() {
        ctx.note(&format!("Nothing to undo: session {session} has recorded no change of files."))?;
        return Ok(ExitCode::SUCCESS);
    }
    let last = undo.last_change()?.map(|record| clean::line(record.as_str()).into_owned());
    let root = how
        .root
        .as_ref()
        .map(|root| format!(" --root {}", clean::line(&quote(&root.display().to_string()))));
    let root = root.unwrap_or_default();
    match last.filter(|last| plan.target.as_ref().is_some_and(|target| target.as_str() != last)) {
        Some(last) => ctx.note(&format!(
            "Nothing to undo: no file has changed since then. `scrollback undo {session}#{last}{root}` undoes the last turn that changed files."
        ))?,
        None => ctx.note("Nothing to undo: the files are as they were then.")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What follows the session in the `undo` that takes a redo back: the record, unless that is the turn that is undone next.
fn undo_place(writable: &Writable, plan: &Plan, scope: Scope, how: &HowArgs, global: &Global, ctx: &mut Ctx) -> String {
    let Some(target) = &plan.target else { return String::new() };
    let shown = clean::line(target.as_str()).into_owned();
    if plan.is_after {
        return format!(" --to {shown}");
    }
    // The redo is done: what cannot be read now is no failure of it.
    let again = Writable::of(writable.source.clone(), None, global, ctx).ok();
    let undo = again.as_ref().and_then(|again| open(again, how, ctx).ok());
    let next = undo.and_then(|undo| undo.next_turn(scope).ok()).flatten();
    if next.as_ref() == Some(target) { String::new() } else { format!("#{shown}") }
}

fn print_done(
    writable: &Writable,
    plan: &Plan,
    applied: &Applied,
    place: &str,
    how: &HowArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let warnings: Vec<Warning> = applied.warnings.iter().copied().filter(|it| *it != Warning::InUse).collect();
    warnings::print(&warnings, ctx)?;
    if ctx.json {
        return Ok(ExitCode::SUCCESS);
    }
    let id = writable.id();
    let session = clean::line(&id).into_owned();
    ctx.line(&format!("restored {}", plural(applied.files as u64, "file")))?;
    ctx.end_page()?;
    let back = if plan.is_redo { "undo" } else { "redo" };
    // The copy of the demo is a store like any other now.
    let store = if ctx.demo { Some(ctx.home.data()) } else { global.store.clone() };
    let options = [("--root", how.root.as_ref()), ("--store", store.as_ref())];
    let typed = options.iter().filter_map(|(option, path)| Some(format!(" {option} {}", path.as_ref()?.display())));
    // Another agent's conversation moves only if that is typed.
    let conversation = if how.conversation { " --conversation" } else { "" };
    let again = clean::line(&(typed.collect::<String>() + conversation)).into_owned();
    ctx.note(&format!("Run `scrollback {back} {session}{place}{again}` to take it back."))?;
    if plan.head.is_some() {
        resume::print_resume_line(writable.resumable(&id), ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_answer(undo: &Undo<'_>, plan: &Plan, applied: Option<&Applied>, ctx: &mut Ctx) -> Result<(), Failure> {
    if !ctx.json {
        return Ok(());
    }
    let files = plan.files.iter().map(|file| FileAnswer {
        path: &file.path,
        action: file.action.name(),
        state: file.state.name(),
        reason: file.reason.as_deref(),
        rebuilt: file.is_rebuilt,
        // After the change there is no difference.
        diff: applied.is_none().then(|| restore_plan::whole_diff(undo, file, ctx)).flatten(),
    });
    let answer = Answer {
        session: plan.session.to_string(),
        target: plan.target.as_ref(),
        applied: applied.is_some(),
        files: files.collect(),
        todos: plan.todos.as_ref(),
        head: plan.head.as_ref().map(|head| match head {
            UndoHead::Start => "start",
            UndoHead::Record(record) => record.as_str(),
        }),
        restore: applied.map(|applied| &applied.restore),
    };
    ctx.print_json(&answer)
}
