//! `files`: what a session changed, and what a file was at any message.

use std::io::Write;
use std::process::ExitCode;

use scrollback::dialect;
use scrollback::model::{ProjectPath, quoted};
use scrollback::session::RecordRef;
use scrollback::view::files::{
    ChangeAction, ChangeRow, FileHistory, FileRow, FileVersion, KnownVersion, kind_change, unified_diff,
};
use scrollback::view::find::SessionName;
use scrollback::view::tool_view::size_text;
use scrollback::write::{Store, file_history, is_undo_interrupted};
use serde::Serialize;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::outlet::Secrets;
use crate::render::short_ids::ShortIds;
use crate::render::table::{Cell, Column, Table};
use crate::render::{clock, plural, restore_plan};
use crate::session::name;
use crate::session::writable::{Writable, usual_store};
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Show which files a session changed
///
/// Lists every file with its changes; with PATH, the versions of one file. --at prints its content after a message, byte for byte; --diff
/// what changed between two messages. Known are snapshots and backups of the agent, and edits in its tool calls; what a shell command
/// changed is known only where the agent took a snapshot.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FilesArgs {
    /// Session id, unique prefix, @, or a path
    #[arg(required_unless_present = "disk")]
    session: Option<SessionName>,
    /// Show only this file: a path in the project, or an absolute one
    path: Option<String>,
    /// Print the file as it was after this record
    #[arg(long, value_name = "RECORD", requires = "path")]
    at: Option<String>,
    /// Show the difference between two records: A..B, A.. (to now) or ..B (from the beginning)
    #[arg(long, value_name = "A..B", conflicts_with = "at")]
    diff: Option<String>,
    /// Show how much the kept contents of files take on disk
    #[arg(long, conflicts_with_all = ["session", "at", "diff"])]
    disk: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback files @
  scrollback files 3f8a src/high.rs --at a1 > high.rs
  scrollback files @ --diff u1..";

/// Larger texts are not compared.
const DIFF_LIMIT_BYTES: usize = 4 * 1024 * 1024;

impl FilesArgs {
    /// Whether it prints the bytes of a file.
    pub(crate) fn is_exact(&self) -> bool {
        self.at.is_some()
    }
}

pub(crate) fn run(args: &FilesArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let Some(session) = &args.session else { return print_disk(global, ctx) };
    let writable = Writable::find(session, global, ctx)?;
    if let Some(record) = &writable.record {
        let failure = Failure::new(FailureKind::Usage, format!("#{} is a record", clean::line(record)));
        return Err(failure.hint("name the session alone; --at RECORD shows a file after a record"));
    }
    let data = Some(ctx.home.data()).filter(|data| data.is_absolute());
    let history = file_history(&writable.session, data.as_deref(), None)?;
    if is_undo_interrupted(&writable.session, data.as_deref(), None) {
        let what = "an undo of this project was interrupted; the next `undo` or `redo` finishes it or takes it back";
        ctx.caution("interrupted", what)?;
    }
    restore_plan::print_gaps(&history, ctx)?;
    let path = args.path.as_deref().map(|path| find(&history, path, &writable, ctx)).transpose()?;
    match (&args.at, &args.diff, path) {
        (Some(record), _, Some(path)) => print_content(&history, path, name::record(&writable.session, record)?, ctx),
        (_, Some(range), path) => print_diff(&writable, &history, range, path, ctx),
        (None, None, Some(path)) => print_versions(&writable, &history, path, ctx),
        (Some(_) | None, None, None) => print_files(&writable, &history, ctx),
    }
}

/// Prints what the blobs of the store hold.
fn print_disk(global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let Some(dialect) = dialect::named("native") else { return Ok(ExitCode::SUCCESS) };
    let given = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    let root = given.map_or_else(|| usual_store(dialect, ctx), Ok)?;
    let held = Store::open(dialect, &root, ctx.host())?.blob_use()?;
    if ctx.json {
        ctx.print_json(&held)?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = |count: u64, bytes: u64| format!("{} ({})", plural(count, "version"), size_text(bytes as usize));
    ctx.line(&format!("kept      {}", files(held.count, held.bytes)))?;
    ctx.line(&format!("needed    {}", files(held.referenced, held.referenced_bytes)))?;
    ctx.line(&format!("unneeded  {}", files(held.unreferenced, held.unreferenced_bytes)))?;
    if held.unreferenced > 0 {
        ctx.note(
            "Run `scrollback trash empty --blobs` to delete what no session needs, as soon as it is an hour old.",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that was typed: relative to the directory it was typed in, or to the project.
fn find<'h>(history: &'h FileHistory, typed: &str, writable: &Writable, ctx: &Ctx) -> Result<&'h ProjectPath, Failure> {
    history.find(typed, &ctx.typed_in).ok_or_else(|| {
        let what = match history.rows().iter().any(|row| row.path == typed) {
            true => format!("{} is outside of the project: no copy of it was kept", quoted(typed)),
            false => format!("session {} has not changed {}", writable.id(), quoted(typed)),
        };
        Failure::new(FailureKind::NotFound, clean::line(&what)).hint("run `scrollback files SESSION` to see every file")
    })
}

fn print_files(writable: &Writable, history: &FileHistory, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let mut rows = history.rows();
    mask(&mut rows, ctx);
    if ctx.json {
        // Its strings are masked, and beside the path of a file that is a secret as a whole, all of them would be.
        ctx.stream_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        ctx.note(&format!("Session {} has recorded no change of files.", clean::line(&writable.id())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids = ShortIds::of_records(&writable.session);
    let mut table = Table::new(vec![
        Column::fixed("CHANGE"),
        Column::shrinking("FILE", 16).roomy(40),
        Column::right("TIMES"),
        Column::right("SIZE").spare(2),
        Column::fixed("MESSAGE").spare(1),
        Column::shrinking("TOOL", 4).spare(3),
        Column::fixed("WHEN").spare(4),
    ]);
    for row in &rows {
        let (Some(first), Some(last)) = (row.changes.first(), row.changes.last()) else { continue };
        let action = match (first.action, last.action) {
            (_, ChangeAction::Deleted) => ChangeAction::Deleted,
            (ChangeAction::Created, _) => ChangeAction::Created,
            (_, last) => last,
        };
        let mut cells = vec![
            action_cell(action),
            Cell::new(clean::line(&row.path), Paint::plain),
            Cell::new(row.changes.len().to_string(), Paint::plain),
        ];
        cells.extend(about(last, &ids, ctx));
        table.push(cells);
    }
    let text = table.render(ctx.look.code, ctx.paint());
    ctx.line(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn print_versions(
    writable: &Writable,
    history: &FileHistory,
    path: &ProjectPath,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let mut rows: Vec<FileRow> = history.rows().into_iter().filter(|row| row.path == path.as_str()).collect();
    mask(&mut rows, ctx);
    if ctx.json {
        ctx.stream_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids = ShortIds::of_records(&writable.session);
    let mut table = Table::new(vec![
        Column::fixed("CHANGE"),
        Column::right("SIZE"),
        Column::fixed("MESSAGE"),
        Column::shrinking("TOOL", 4).spare(1),
        Column::fixed("WHEN").spare(2),
    ]);
    for change in rows.iter().flat_map(|row| &row.changes) {
        table.push(std::iter::once(action_cell(change.action)).chain(about(change, &ids, ctx)).collect());
    }
    let text = table.render(ctx.look.code, ctx.paint());
    ctx.line(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn action_cell(action: ChangeAction) -> Cell {
    let brush = match action {
        ChangeAction::Created => Paint::green,
        ChangeAction::Modified => Paint::yellow,
        ChangeAction::Deleted => Paint::red,
    };
    Cell::new(action.name(), brush)
}

/// Size, message, tool and time of a change.
fn about(change: &ChangeRow, ids: &ShortIds<'_>, ctx: &Ctx) -> Vec<Cell> {
    let when = change.at.map(|at| clock::ago(at, ctx.now)).unwrap_or_default();
    let tool = change.tool.as_deref().map(|tool| clean::line(&ctx.shown(tool)).into_owned()).unwrap_or_default();
    vec![
        Cell::new(change.size_bytes.map(|bytes| size_text(bytes as usize)).unwrap_or_default(), Paint::plain),
        Cell::new(clean::line(ids.short(change.message.as_str())), Paint::dim),
        Cell::new(tool, Paint::plain),
        Cell::new(when, Paint::dim),
    ]
}

/// Paths and names of tools come from the session, too.
fn mask(rows: &mut [FileRow], ctx: &Ctx) {
    for row in rows {
        row.path = ctx.shown(&row.path).into_owned();
        let tools = row.changes.iter_mut().filter_map(|change| change.tool.as_mut());
        tools.for_each(|tool| *tool = ctx.shown(tool).into_owned());
    }
}

/// Prints the bytes of a file after a record.
fn print_content(
    history: &FileHistory,
    path: &ProjectPath,
    record: RecordRef<'_>,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let nothing = || Failure::new(FailureKind::NotFound, format!("{} did not exist then", clean::line(path.as_str())));
    let version = history.version_after(path, record).ok_or_else(nothing)?;
    let bytes = match known(path, version)? {
        FileVersion::Absent => return Err(nothing()),
        FileVersion::Link(target) => target.into_bytes(),
        version => history.content(path, &version)?.ok_or_else(|| not_kept(path, "only its hash was recorded"))?,
    };
    let mut secrets = Secrets::new(ctx)?;
    secrets.count_file(path.as_str(), &bytes);
    let bytes = match &ctx.mask {
        Some(mask) if mask.is_sensitive_file(path.as_str()) => {
            (mask.placeholder("file", &String::from_utf8_lossy(&bytes)) + "\n").into_bytes()
        }
        Some(mask) => mask.document(&bytes).bytes.to_vec(),
        None => bytes,
    };
    ctx.out.write_all(&bytes)?;
    secrets.tell(ctx)?;
    Ok(ExitCode::SUCCESS)
}

fn known(path: &ProjectPath, version: KnownVersion) -> Result<FileVersion, Failure> {
    version.map_err(|unknown| not_kept(path, unknown.why()))
}

fn not_kept(path: &ProjectPath, why: &str) -> Failure {
    let what = format!("the content of {path} is not known: {why}");
    Failure::new(FailureKind::NotFound, clean::line(&what))
        .hint("run `scrollback files SESSION PATH` to see its versions")
}

/// Prints what changed between two records.
fn print_diff(
    writable: &Writable,
    history: &FileHistory,
    range: &str,
    path: Option<&ProjectPath>,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let Some((from, to)) = range.split_once("..") else {
        let failure = Failure::new(FailureKind::Usage, format!("{} is no range of records", quoted(range)));
        return Err(failure.hint("use A..B, A.. or ..B, with records of the session"));
    };
    let record = |named: &str| {
        Some(named)
            .filter(|named| !named.is_empty())
            .map(|named| name::record(&writable.session, named))
            .transpose()
    };
    let (from, to) = (record(from)?, record(to)?);
    let mut diffs = Vec::new();
    let is_asked = |known: &&ProjectPath| path.is_none_or(|path| path == *known);
    for path in history.changed().filter(is_asked).filter(|path| history.is_changed_between(path, from, to)) {
        let before = from.map_or_else(|| history.version_at_start(path), |from| history.version_after(path, from));
        let after = to.map_or_else(|| history.version_now(path), |to| history.version_after(path, to));
        diffs.extend(diff(history, path, before, after, ctx));
    }
    if ctx.json {
        ctx.stream_json(&diffs)?;
        return Ok(ExitCode::SUCCESS);
    }
    if diffs.is_empty() {
        ctx.note("No file differs.")?;
    }
    let mut left = usize::MAX;
    for FileDiff { path, diff, reason } in &diffs {
        if let Some(reason) = reason {
            ctx.line(&format!("{}: {}", clean::line(path), clean::line(reason)))?;
        }
        if let Some(diff) = diff {
            let text = restore_plan::coloured(diff, usize::MAX, &mut left, ctx.paint());
            ctx.line(text.trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--diff --json` prints for each file that differs.
#[derive(Serialize)]
struct FileDiff {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Why there is no difference to show, or what differs beside the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn diff(
    history: &FileHistory,
    path: &ProjectPath,
    before: Option<KnownVersion>,
    after: Option<KnownVersion>,
    ctx: &Ctx,
) -> Option<FileDiff> {
    let row = |diff: Option<String>, reason: Option<&str>| {
        let path = ctx.shown(path.as_str()).into_owned();
        Some(FileDiff { path, diff, reason: reason.map(str::to_owned) })
    };
    if matches!((&before, &after), (Some(Ok(before)), Some(Ok(after))) if before == after) {
        return None;
    }
    if ctx.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(path.as_str())) {
        return row(None, Some("it holds secrets"));
    }
    let kind = match (&before, &after) {
        (Some(Ok(before)), Some(Ok(after))) => kind_change(before, after),
        _ => None,
    };
    let kind = kind.map(|kind| ctx.shown(&kind).into_owned());
    let text = |version: Option<KnownVersion>| -> Result<Option<String>, String> {
        let version = known(path, version.unwrap_or(Ok(FileVersion::Absent))).map_err(|failure| failure.message)?;
        let bytes = match version {
            // A link is told by its kind.
            FileVersion::Absent | FileVersion::Link(_) => return Ok(None),
            version => history
                .content(path, &version)
                .map_err(|error| error.to_string())?
                .ok_or("only its hash was recorded")?,
        };
        if bytes.len() > DIFF_LIMIT_BYTES {
            return Err("it is too large to compare".to_owned());
        }
        String::from_utf8(bytes).map(Some).map_err(|_| "it is not text".to_owned())
    };
    match (text(before), text(after)) {
        (Ok(before), Ok(after)) if before == after => kind.and_then(|kind| row(None, Some(&kind))),
        (Ok(before), Ok(after)) => match unified_diff(path.as_str(), before.as_deref(), after.as_deref()) {
            Some(diff) => row(Some(ctx.shown(&diff).into_owned()), kind.as_deref()),
            None => row(None, Some("it is not text")),
        },
        (Err(why), _) | (_, Err(why)) => row(None, Some(&ctx.shown(&why))),
    }
}
