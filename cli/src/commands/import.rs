//! `import`: creates a native session for each session of an agent's database.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use scrollback::dialect;
use scrollback::model::LossKind;
use scrollback::transfer::convert::{Converted, LossRow};
use scrollback::transfer::import::{self, Imported, Run};
use serde::Serialize;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::session::scope;
use crate::session::writable;

/// How many rows are imported between two updates of the progress.
const ROWS_PER_UPDATE: usize = 100;

/// Import the sessions of a database into the native store
///
/// The database has an `agents` table, in which each row is a prompt and its result; a row that names a readable log is imported from the log. The database
/// is only read. Each row becomes a session in the usual store, or in the one of --store. Rows that were imported before are skipped: importing twice changes
/// nothing.
#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    /// The database
    #[arg(value_name = "FILE")]
    database: PathBuf,
    /// Only print what would be imported
    #[arg(long)]
    dry_run: bool,
}

/// The result of a row.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Imported,
    WouldImport,
    Known,
    Grown,
    Taken,
    Empty,
    Failed,
}

/// What `--json` prints of a row.
#[derive(Serialize)]
struct RowDone {
    row: String,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: &ImportArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    writable::refuse_demo(ctx)?;
    let native = scope::dialect(global)?.or_else(|| dialect::named("native"));
    let Some(native) = native.filter(|dialect| dialect.name() == "native") else {
        let failure = Failure::new(FailureKind::Usage, "only native sessions are imported");
        return Err(failure.hint("leave out --dialect; `scrollback convert` writes other dialects"));
    };
    let host = ctx.host();
    let given = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    let store = given.map_or_else(|| writable::usual_store(native, ctx), Ok)?;
    let rows = import::sessions(&ctx.home.cwd.join(&args.database))?;
    if rows.is_empty() {
        return Err(Failure::new(FailureKind::NotFound, "no sessions in this database"));
    }
    let scratch = std::env::temp_dir();
    let how = if args.dry_run { Run::Rehearsal(&scratch) } else { Run::Import };
    let shows_progress = ctx.err_on_terminal && !ctx.json;
    let mut done = Vec::with_capacity(rows.len());
    for some in rows.chunks(ROWS_PER_UPDATE) {
        if shows_progress {
            write!(ctx.err, "\r{} of {}", done.len(), rows.len())?;
        }
        let imported = import::import(some, &store, &host, how);
        done.extend(some.iter().zip(imported).map(|(row, imported)| one(row.name(), imported)));
    }
    if shows_progress {
        write!(ctx.err, "\r\x1b[K")?;
    }
    report(&done, ctx)
}

fn one(row: String, imported: scrollback::model::Result<Imported>) -> RowDone {
    let of =
        &|outcome, session, path| RowDone { row: row.clone(), outcome, session, path, losses: Vec::new(), error: None };
    let converted_as = |outcome, converted: Converted| RowDone {
        losses: converted.losses,
        ..of(outcome, Some(converted.session.to_string()), Some(converted.path))
    };
    match imported {
        Ok(Imported::New(converted)) => converted_as(Outcome::Imported, converted),
        Ok(Imported::Would(converted)) => converted_as(Outcome::WouldImport, converted),
        Ok(Imported::Known(path)) => of(Outcome::Known, None, Some(path)),
        Ok(Imported::Grown(path)) => of(Outcome::Grown, None, Some(path)),
        Ok(Imported::Taken(path)) => of(Outcome::Taken, None, Some(path)),
        Ok(Imported::Empty) => of(Outcome::Empty, None, None),
        Err(error) => RowDone { error: Some(error.to_string()), ..of(Outcome::Failed, None, None) },
    }
}

fn report(done: &[RowDone], ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let count = |outcome| done.iter().filter(|row| row.outcome == outcome).count() as u64;
    done.iter().try_for_each(|row| warn(row, ctx))?;
    if ctx.json {
        ctx.print_json(&done)?;
    } else {
        let first = match count(Outcome::WouldImport) {
            0 => format!("{} imported", plural(count(Outcome::Imported), "session")),
            would => format!("{} would be imported", plural(would, "session")),
        };
        let rest = [
            (Outcome::Known, "imported before"),
            (Outcome::Grown, "changed since"),
            (Outcome::Empty, "without messages"),
            (Outcome::Taken, "whose place is taken"),
            (Outcome::Failed, "failed"),
        ];
        let rest = rest.map(|(outcome, what)| (count(outcome), what)).into_iter().filter(|(count, _)| *count > 0);
        let counts: String = rest.map(|(count, what)| format!(", {count} {what}")).collect();
        ctx.line(&format!("{first}{counts}"))?;
        let is_lost = |row: &&RowDone| row.losses.iter().any(|loss| loss.kind == LossKind::Dropped);
        let lost = done.iter().filter(is_lost).count() as u64;
        if lost > 0 {
            let sessions = plural(lost, "session");
            ctx.note(&format!("A native session cannot store everything of {sessions}; --json lists what is lost."))?;
        }
    }
    let failed = count(Outcome::Failed) + count(Outcome::Taken) > 0;
    Ok(if failed { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

fn warn(row: &RowDone, ctx: &mut Ctx) -> Result<(), Failure> {
    let path = row.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let name = &row.row;
    match row.outcome {
        Outcome::Failed => {
            let why = row.error.as_deref().unwrap_or_default();
            ctx.warn(&Failure::new(FailureKind::Io, format!("row {name}: {why}")))
        }
        Outcome::Taken => ctx.caution("taken", &format!("row {name}: another session is in {path}")),
        Outcome::Grown => ctx.caution("grown", &format!("row {name} has changed since it was imported to {path}")),
        Outcome::Imported | Outcome::WouldImport | Outcome::Known | Outcome::Empty => Ok(()),
    }
}
