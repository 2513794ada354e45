//! `remove`: moves sessions to the trash.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::find::{Places, SessionName};
use scrollback::write::{Removed, Warning};
use serde::Serialize;

use super::{FOUND_PROBLEMS, trash};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::writable::{Done, Writable};
use crate::session::{scope, warnings};
use crate::terminal::clean;

/// Move sessions to the trash
///
/// Moves the files of each session to the trash, with its sidecar, its file history and its sub-agents' sessions. `trash` lists removed
/// sessions, `trash restore` restores one; nothing in the trash expires. Prints a warning if other sessions begin in the removed one, as
/// forks of Codex do. A session that `scrollback record` has open is refused. Close
/// other agents first: if one has the session open but has been idle for more than a minute, scrollback does not notice, and the
/// agent's next line creates the session again.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RemoveArgs {
    /// Session id, unique prefix, @, or a path (can be repeated)
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<SessionName>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback remove @
  scrollback remove 3f8a b27d";

/// How many sessions a warning lists.
const LISTED_DEPENDENTS: usize = 6;

/// What `--json` prints for each session.
#[derive(Serialize)]
struct RemovedSession {
    #[serde(flatten)]
    done: Done,
    /// Its id in the trash.
    trash: String,
    /// The sessions that began in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependents: Vec<String>,
}

pub(crate) fn run(args: &RemoveArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    // All are found before the first is moved: a typing error removes nothing.
    let (mut found, mut removed) = (Vec::new(), Vec::new());
    for name in &args.sessions {
        // A killed removal leaves files of sub-agents with the id of the session: they are none without it.
        match trash::finish_removal(name.typed(), global, ctx)? {
            Some(rest) => removed.push(finished(rest, ctx)?),
            None => found.push(Writable::find(name, global, ctx)?),
        }
    }
    if let Some(record) = found.iter().find_map(|writable| writable.record.as_ref()) {
        let failure = Failure::new(FailureKind::Usage, format!("#{record} is a record; only sessions can be removed"));
        return Err(failure.hint("run `scrollback rewind` to continue from an earlier record"));
    }
    let places = scope::places(global, ctx)?;
    let mut known = HashSet::new();
    found.retain(|writable| known.insert(writable.source.path.clone()));
    let mut failed = false;
    for writable in found {
        match remove(&writable, &known, &places, ctx) {
            Ok(one) => removed.push(one),
            Err(failure) if args.sessions.len() == 1 => return Err(failure),
            Err(failure) => {
                failed = true;
                ctx.warn(&failure)?;
            }
        }
    }
    if ctx.json {
        match &removed[..] {
            [one] if args.sessions.len() == 1 => ctx.print_json(one)?,
            all => ctx.print_json(&all)?,
        }
    }
    Ok(if failed { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// Reports a removal that was finished.
fn finished(removed: Removed, ctx: &mut Ctx) -> Result<RemovedSession, Failure> {
    let (session, path) = (removed.origin.session, removed.root.join(&removed.id));
    if !ctx.json {
        ctx.line(&format!("moved the rest of {} to the trash", clean::line(&session)))?;
        ctx.note(&format!("Run `scrollback trash restore {}` to undo.", removed.id))?;
    }
    Ok(RemovedSession { done: Done { session, record: None, path }, trash: removed.id, dependents: Vec::new() })
}

/// Moves one session to the trash; `removed` are the files of all that are removed.
fn remove(
    writable: &Writable,
    removed: &HashSet<PathBuf>,
    places: &Places,
    ctx: &mut Ctx,
) -> Result<RemovedSession, Failure> {
    let data = ctx.check_home(ctx.home.data(), "XDG_DATA_HOME or SCROLLBACK_HOME")?;
    let trash = writable.trash(&data)?;
    if trash.is_in_use(&writable.session) {
        warnings::print(&[Warning::InUse], ctx)?;
    }
    let mut dependents = writable.session.dependents();
    dependents.retain(|other| !removed.contains(&other.path));
    let dependents: Vec<String> = dependents.iter().map(Source::name).collect();
    if !dependents.is_empty() {
        let listed = dependents.iter().take(LISTED_DEPENDENTS).cloned().collect::<Vec<_>>().join(", ");
        let more = if dependents.len() > LISTED_DEPENDENTS { ", …" } else { "" };
        let what = format!("sessions that begin in {} lose their beginning: {listed}{more}", writable.id());
        ctx.caution("dependents", &what)?;
    }
    let mut copies = places.kept_copies(&writable.source);
    copies.extend(places.copies_under_other_names(&[&writable.source], ctx.now));
    let removed = trash.remove(&writable.session)?;
    // Else the session would be back in the next list.
    let mut known = HashSet::from([writable.source.path.clone()]);
    for copy in copies.into_iter().filter(|copy| known.insert(copy.path.clone())) {
        let copy = Session::open(&copy, &ReadOptions::plain(ctx.now))?;
        trash.remove(&copy)?;
    }
    if !ctx.json {
        ctx.line(&format!("moved {} to the trash", clean::line(&writable.id())))?;
        ctx.note(&format!("Run `scrollback trash restore {}` to undo.", removed.id))?;
    }
    let path = removed.root.join(&removed.id);
    Ok(RemovedSession { done: Done { session: writable.id(), record: None, path }, trash: removed.id, dependents })
}
