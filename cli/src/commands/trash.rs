//! `trash`: lists removed sessions, restores them, and deletes them for good.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use scrollback::dialect;
use scrollback::model::Error;
use scrollback::write::{Kept, Removed, Store, Trash, TrashError};
use serde::Serialize;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{FAILED, Failure, FailureKind};
use crate::render::table::{Cell, Column, Table};
use crate::render::{clock, plural};
use crate::session::scope;
use crate::session::writable::Done;
use crate::terminal::paint::Paint;
use crate::terminal::preview::one_line;
use crate::terminal::{ask, clean};

/// Titles are cut to this length before layout: more than any terminal is wide.
const TITLE_CHARS: usize = 200;

/// List removed sessions, restore one, or delete them for good
///
/// Lists the sessions that `remove` moved to the trash, last removed first. Nothing in the trash expires; only `trash empty` deletes.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TrashArgs {
    #[command(subcommand)]
    command: Option<TrashCommand>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback trash
  scrollback trash restore 3f8a
  scrollback trash empty --older-than 4w";

#[derive(clap::Subcommand, Debug)]
enum TrashCommand {
    Restore(RestoreArgs),
    Empty(EmptyArgs),
}

/// Delete removed sessions for good
///
/// Deletes the named sessions, or all of them, from the trash; they cannot be restored afterwards. On a terminal it shows what will be
/// deleted and asks; elsewhere it needs --yes. An entry that cannot be read is deleted only if it is named.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EMPTY_EXAMPLES)]
struct EmptyArgs {
    /// Id in the trash, session id, or a unique prefix of either (can be repeated; default: every removed session)
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Delete blobs instead: copies of changed files that no session needs any more
    ///
    /// An undo restores files from the blobs that recorders made. This deletes those that no session of the store names, in the
    /// trash or not, and that are more than an hour old. While a session is being recorded, or if a file of the store cannot be
    /// read, nothing is deleted.
    #[arg(long, conflicts_with_all = ["ids", "older_than"])]
    blobs: bool,
    /// Delete only sessions that were removed longer ago than this, such as 30m, 12h, 3d or 2w
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Show what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

const EMPTY_EXAMPLES: &str = "\
Examples:
  scrollback trash empty --dry-run
  scrollback trash empty 3f8a --yes
  scrollback trash empty --blobs";

/// Restore a removed session
///
/// Moves its files and kept copies back. If another file is in their place now, nothing is moved.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
struct RestoreArgs {
    /// Id in the trash, session id, or a unique prefix of either
    id: String,
}

pub(crate) fn run(args: &TrashArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    match &args.command {
        None => list(global, ctx),
        Some(TrashCommand::Restore(args)) => restore(args, global, ctx),
        Some(TrashCommand::Empty(args)) if args.blobs => empty_blobs(args, global, ctx),
        Some(TrashCommand::Empty(args)) => empty(args, global, ctx),
    }
}

fn list(global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let Content { removed, broken, unreadable } = content(global, ctx);
    for Broken { entry, why, .. } in &broken {
        let hint = format!("`scrollback trash empty {}` deletes it", entry.id);
        ctx.caution("broken", &format!("{why}; {hint}"))?;
    }
    let has_failed = !unreadable.is_empty();
    for error in unreadable {
        ctx.warn(&error.into())?;
    }
    if ctx.json {
        ctx.print_json(&removed)?;
    }
    match () {
        () if removed.is_empty() && has_failed => return Ok(ExitCode::from(FAILED)),
        () if removed.is_empty() && (ctx.json || !broken.is_empty()) => return Ok(ExitCode::from(FOUND_PROBLEMS)),
        () if ctx.json => return Ok(ExitCode::SUCCESS),
        () => {}
    }
    if removed.is_empty() {
        return Err(Failure::new(FailureKind::NotFound, "the trash is empty")
            .hint("run `scrollback remove SESSION` to move a session there"));
    }
    print_table(&removed, ctx)?;
    ctx.note("Run `scrollback trash restore ID` to restore a session.")?;
    Ok(ExitCode::SUCCESS)
}

fn print_table(removed: &[Removed], ctx: &mut Ctx) -> Result<(), Failure> {
    let mut table = Table::new(vec![
        Column::fixed("ID"),
        Column::fixed("REMOVED").spare(1),
        Column::shrinking("TITLE", 16),
        Column::fixed("AGENT").spare(2),
        Column::shrinking("PATH", 16).spare(3),
    ]);
    for Removed { id, origin, .. } in removed {
        table.push(vec![
            Cell::new(clean::line(id), Paint::cyan),
            Cell::new(origin.removed.map(|at| clock::ago(at, ctx.now)).unwrap_or_default(), Paint::dim),
            Cell::new(one_line(&ctx.shown(origin.title.as_deref().unwrap_or_default()), TITLE_CHARS), Paint::bold),
            Cell::new(clean::line(&origin.dialect), Paint::dim),
            Cell::new(clean::line(&origin.path.to_string_lossy()), Paint::plain),
        ]);
    }
    let table = table.render(ctx.look.width, ctx.paint());
    write!(ctx.out, "{table}")?;
    Ok(ctx.out.flush()?)
}

fn restore(args: &RestoreArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let all = content(global, ctx);
    let kept = Kept::open(&ctx.home, ctx.host());
    let is_copy = |removed: &Removed| removed.origin.path.starts_with(kept.root());
    let only = named_original(&args.id, &all.removed, &is_copy).map_err(|failure| match all.broken(&args.id) {
        Some(Broken { entry, why, .. }) if failure.kind == FailureKind::NotFound => {
            Failure::new(FailureKind::Io, format!("{:?} cannot be restored: {why}", entry.id)).hint(format!(
                "look into {}, or run `scrollback trash empty {}` to delete it",
                entry.root.join(&entry.id).display(),
                entry.id
            ))
        }
        _ => failure,
    })?;
    let back = trash_at(&only.root, ctx).restore(&only.id)?;
    for copy in copies_of(only, &all.removed, &is_copy) {
        // One whose place is taken stays in the trash.
        if let Err(error) = trash_at(&copy.root, ctx).restore(&copy.id) {
            ctx.warn(&error.into())?;
        }
    }
    let (session, path) = (back.origin.session, back.origin.path);
    if ctx.json {
        ctx.print_json(&Done { session, record: None, path })?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("restored {}", clean::line(&session)))?;
    ctx.note(&path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The kept copies that were removed with a session: the last ones before it was removed again.
fn copies_of<'r>(
    session: &'r Removed,
    all: &'r [Removed],
    is_copy: &'r dyn Fn(&Removed) -> bool,
) -> impl Iterator<Item = &'r Removed> {
    let of_session = all.iter().filter(|other| {
        other.id != session.id
            && (&other.origin.session, &other.origin.dialect) == (&session.origin.session, &session.origin.dialect)
            && other.origin.removed >= session.origin.removed
    });
    let again = of_session.clone().filter(|other| !is_copy(other));
    let again = again.filter_map(|other| other.origin.removed).min();
    of_session.filter(move |other| is_copy(other) && again.is_none_or(|again| other.origin.removed < Some(again)))
}

/// The same as [`named`], where copies that were removed with a session have its id, too.
fn named_original<'r>(
    id: &str,
    all: &'r [Removed],
    is_copy: &dyn Fn(&Removed) -> bool,
) -> Result<&'r Removed, Failure> {
    let originals: Vec<Removed> = all.iter().filter(|removed| !is_copy(removed)).cloned().collect();
    match named(id, &originals) {
        Ok(original) if all.iter().all(|removed| removed.id != id) => named(&original.id, all),
        _ => named(id, all),
    }
}

/// The removed session that somebody named.
fn named<'r>(id: &str, all: &'r [Removed]) -> Result<&'r Removed, Failure> {
    // Every id begins with nothing: the only one there is would be restored, or deleted.
    if id.is_empty() {
        return Err(Failure::new(FailureKind::Usage, "the id is empty").hint("run `scrollback trash` to see every id"));
    }
    let find = |matches: &dyn Fn(&Removed) -> bool| -> Vec<&'r Removed> {
        all.iter().filter(|removed| matches(removed)).collect()
    };
    let named = [
        find(&|removed| removed.id == id),
        find(&|removed| removed.origin.session == id),
        find(&|removed| removed.id.starts_with(id) || removed.origin.session.starts_with(id)),
    ];
    let found = named.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    if let [only] = found[..] {
        return Ok(only);
    }
    let failure = match found.len() {
        0 => Failure::new(FailureKind::NotFound, format!("nothing in the trash matches {id:?}")),
        count => Failure::new(FailureKind::Usage, format!("{count} removed sessions match {id:?}")),
    };
    Err(failure.hint("run `scrollback trash` to see every id"))
}

/// An entry of the trash that is no session that can be restored.
struct Broken {
    entry: BrokenEntry,
    /// Why, with its path.
    why: String,
}

#[derive(Debug, Clone, Serialize)]
struct BrokenEntry {
    id: String,
    #[serde(skip)]
    root: PathBuf,
}

/// What is deleted.
#[derive(Clone, Serialize)]
#[serde(untagged)]
enum Chosen {
    Session(Box<Removed>),
    /// Only if it was named: its files may be all that is left of a session.
    Broken(BrokenEntry),
}

impl Chosen {
    /// Its id in the trash, and the folder of that trash.
    fn place(&self) -> (&str, &Path) {
        match self {
            Chosen::Session(removed) => (&removed.id, &removed.root),
            Chosen::Broken(entry) => (&entry.id, &entry.root),
        }
    }
}

/// A session that is deleted, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deletion {
    #[serde(flatten)]
    chosen: Chosen,
    size_bytes: u64,
    /// Whether it is gone.
    deleted: bool,
    /// Whether it cannot be deleted.
    #[serde(skip)]
    is_refused: bool,
}

fn empty(args: &EmptyArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let before = scope::time(args.older_than.as_deref(), "--older-than", ctx)?;
    let (finished, has_failed) = if args.dry_run { Default::default() } else { finish_deletions(global, ctx)? };
    let all = content(global, ctx);
    let chosen = chosen(args, before, &finished, &all)?;
    let has_failed = has_failed || !all.unreadable.is_empty();
    for error in all.unreadable {
        ctx.warn(&error.into())?;
    }
    if args.ids.is_empty() && !all.broken.is_empty() {
        let ids: Vec<_> = all.broken.iter().map(|broken| clean::line(&broken.entry.id)).collect();
        let what = format!("what cannot be read stays: {}; name it to delete it", ids.join(", "));
        ctx.caution("broken", &what)?;
    }
    let size = |one: &Chosen| {
        let (id, root) = one.place();
        trash_at(root, ctx).size_bytes(id)
    };
    let sizes: Vec<u64> = chosen.iter().map(size).collect();
    let is_nothing_done = finished.is_empty() && !has_failed;
    if chosen.is_empty() && is_nothing_done && !ctx.json {
        return Err(Failure::new(FailureKind::NotFound, "nothing in the trash to delete")
            .hint("run `scrollback trash` to see every removed session"));
    }
    if !args.dry_run && !chosen.is_empty() && !may_delete(args, &chosen, &sizes, ctx)? {
        return Err(not_agreed());
    }
    let mut done = Vec::new();
    for (chosen, size_bytes) in chosen.into_iter().zip(sizes) {
        let (id, root) = chosen.place();
        let trash = trash_at(root, ctx);
        let deleted = match (&chosen, args.dry_run) {
            (Chosen::Session(_), true) => trash.check_deletion(id),
            (Chosen::Session(_), false) => trash.delete(id).map(|_| ()),
            (Chosen::Broken(_), true) => trash.check_broken(id).map(|_| ()),
            (Chosen::Broken(_), false) => trash.delete_broken(id),
        };
        let is_refused = deleted.is_err();
        if let Err(error) = deleted {
            ctx.warn(&error.into())?;
        }
        done.push(Deletion { chosen, size_bytes, deleted: !args.dry_run && !is_refused, is_refused });
    }
    print_deletions(args, &done, ctx)?;
    let has_failed = has_failed || done.iter().any(|one| one.is_refused);
    let is_nothing_done = is_nothing_done && done.is_empty();
    Ok(if has_failed || is_nothing_done { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// Blobs that are deleted, as `--json` prints them.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct DroppedBlobs {
    count: u64,
    bytes: u64,
    /// Whether they are gone.
    deleted: bool,
}

fn empty_blobs(args: &EmptyArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let mut found = Vec::new();
    for root in roots(global, ctx) {
        let (Some(native), Some(root)) = (dialect::named("native"), root.parent()) else { continue };
        let store = Store::open(native, root, ctx.host())?;
        let unneeded = store.unreferenced_blobs().map_err(|error| Failure::from(error).hint("nothing was deleted"))?;
        found.extend(unneeded.into_iter().map(|blob| (store.clone(), blob)));
    }
    let mut dropped = DroppedBlobs {
        count: found.len() as u64,
        bytes: found.iter().map(|(_, blob)| blob.bytes).sum(),
        deleted: false,
    };
    let describe = |dropped: &DroppedBlobs| format!("{} that no session needs", plural(dropped.count, "blob"));
    if found.is_empty() && !ctx.json {
        return Err(Failure::new(FailureKind::NotFound, "every blob is needed, or less than an hour old"));
    }
    if !args.dry_run && !found.is_empty() {
        if !agrees(args, &describe(&dropped), dropped.bytes, ctx)? {
            return Err(not_agreed());
        }
        dropped = DroppedBlobs { deleted: true, ..DroppedBlobs::default() };
        for (store, blob) in found {
            if store.drop_blob(&blob)? {
                (dropped.count, dropped.bytes) = (dropped.count + 1, dropped.bytes + blob.bytes);
            }
        }
    }
    if ctx.json {
        ctx.print_json(&dropped)?;
    } else {
        let word = if args.dry_run { "would delete" } else { "deleted" };
        ctx.line(&format!("{word} {} ({})", describe(&dropped), bytes(dropped.bytes)))?;
    }
    Ok(ExitCode::from(if dropped.count == 0 { FOUND_PROBLEMS } else { 0 }))
}

fn not_agreed() -> Failure {
    Failure::new(FailureKind::Usage, "nothing was deleted").hint("answer y, or add --yes")
}

/// Finishes deletions that were killed: somebody agreed to them before. Returns their ids, and whether one failed.
fn finish_deletions(global: &Global, ctx: &mut Ctx) -> Result<(Vec<String>, bool), Failure> {
    let (mut ids, mut has_failed) = (Vec::new(), false);
    for root in roots(global, ctx) {
        let finished = trash_at(&root, ctx).finish_deletions();
        ids.extend(finished.ids);
        for error in finished.errors {
            has_failed = true;
            ctx.warn(&error.into())?;
        }
    }
    if !ids.is_empty() {
        let names: Vec<_> = ids.iter().map(|id| clean::line(id)).collect();
        ctx.note(&format!("Finished what an earlier `trash empty` began to delete: {}.", names.join(", ")))?;
    }
    Ok((ids, has_failed))
}

/// What to delete.
fn chosen(
    args: &EmptyArgs,
    before: Option<Timestamp>,
    finished: &[String],
    all: &Content,
) -> Result<Vec<Chosen>, Failure> {
    // One that was named and is gone since a moment ago is no mistake.
    let is_finished = |id: &&String| finished.contains(id) && !all.removed.iter().any(|one| one.id == **id);
    let of_id = |id: &String| match (named(id, &all.removed), all.broken(id)) {
        (Err(failure), Some(broken)) if failure.kind == FailureKind::NotFound => {
            Ok(Chosen::Broken(broken.entry.clone()))
        }
        (removed, _) => removed.map(|removed| Chosen::Session(Box::new(removed.clone()))),
    };
    let mut chosen: Vec<Chosen> = match &args.ids[..] {
        [] => all.removed.iter().map(|one| Chosen::Session(Box::new(one.clone()))).collect(),
        ids => ids.iter().filter(|id| !is_finished(id)).map(of_id).collect::<Result<_, _>>()?,
    };
    let mut seen = std::collections::HashSet::new();
    chosen.retain(|one| seen.insert(one.place().1.join(one.place().0)));
    if let Some(before) = before {
        // When a session was removed may be unknown: then it is not old.
        let is_old = |one: &Removed| one.origin.removed.is_some_and(|removed| removed < before);
        chosen.retain(|one| matches!(one, Chosen::Session(removed) if is_old(removed)));
    }
    Ok(chosen)
}

/// Asks on a terminal; elsewhere `--yes` is needed.
fn may_delete(args: &EmptyArgs, chosen: &[Chosen], sizes: &[u64], ctx: &mut Ctx) -> Result<bool, Failure> {
    let are_sessions = chosen.iter().all(|one| matches!(one, Chosen::Session(_)));
    let what = plural(chosen.len() as u64, if are_sessions { "removed session" } else { "item" });
    if !args.yes && ask::is_possible(ctx) {
        for (one, size) in chosen.iter().zip(sizes) {
            let line = deletion_line(one, *size, ctx);
            ctx.line(&line)?;
        }
    }
    agrees(args, &what, sizes.iter().sum(), ctx)
}

/// Whether somebody agrees that this is deleted.
fn agrees(args: &EmptyArgs, what: &str, size_bytes: u64, ctx: &mut Ctx) -> Result<bool, Failure> {
    if args.yes {
        return Ok(true);
    }
    if !ask::is_possible(ctx) {
        let message = format!("{what} would be deleted for good");
        return Err(Failure::new(FailureKind::Usage, message).hint("add --yes, or --dry-run to see them"));
    }
    ask::is_agreed(&format!("Delete {what} ({}) for good?", bytes(size_bytes)), ctx)
}

fn print_deletions(args: &EmptyArgs, done: &[Deletion], ctx: &mut Ctx) -> Result<(), Failure> {
    if ctx.json {
        return ctx.print_json(&done);
    }
    let word = if args.dry_run { "would delete" } else { "deleted" };
    for one in done.iter().filter(|one| !one.is_refused) {
        ctx.line(&format!("{word} {}", deletion_line(&one.chosen, one.size_bytes, ctx)))?;
    }
    Ok(())
}

/// What is deleted, and how large it is.
fn deletion_line(one: &Chosen, size_bytes: u64, ctx: &Ctx) -> String {
    let title = match one {
        Chosen::Session(removed) => {
            one_line(&ctx.shown(removed.origin.title.as_deref().unwrap_or_default()), TITLE_CHARS)
        }
        Chosen::Broken(_) => "(not a session that can be restored)".to_owned(),
    };
    format!("{}  {}  {title}", clean::line(one.place().0), bytes(size_bytes))
}

/// A number of bytes for people.
fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{} kB", count / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// What is in every trash.
struct Content {
    /// The last removed first.
    removed: Vec<Removed>,
    broken: Vec<Broken>,
    /// Folders that could not be read.
    unreadable: Vec<Error>,
}

impl Content {
    /// The broken entry with this id in the trash, or else the only one whose id begins so.
    fn broken(&self, id: &str) -> Option<&Broken> {
        let mut begins = self.broken.iter().filter(|broken| broken.entry.id.starts_with(id));
        let exact = self.broken.iter().find(|broken| broken.entry.id == id);
        exact.or_else(|| begins.next().filter(|_| begins.next().is_none()))
    }
}

fn content(global: &Global, ctx: &Ctx) -> Content {
    let mut all = Content { removed: Vec::new(), broken: Vec::new(), unreadable: Vec::new() };
    for root in roots(global, ctx) {
        let listed = trash_at(&root, ctx).list();
        all.removed.extend(listed.removed);
        let entry = |id: String| BrokenEntry { id, root: root.clone() };
        for TrashError { id, error } in listed.errors {
            match id {
                Some(id) => all.broken.push(Broken { entry: entry(id), why: error.to_string() }),
                None => all.unreadable.push(error),
            }
        }
        for id in listed.leftovers {
            let note = root.join(&id).join("origin.json");
            let why = format!("{}: torn; nothing else of a removed session is there", note.display());
            all.broken.push(Broken { entry: entry(id), why });
        }
    }
    all.removed.sort_by(|a, b| b.origin.removed.cmp(&a.origin.removed).then_with(|| a.id.cmp(&b.id)));
    all
}

/// Finishes the removal of a session that was killed after its log was moved to the trash.
pub(super) fn finish_removal(session: &str, global: &Global, ctx: &Ctx) -> Result<Option<Removed>, Failure> {
    for root in roots(global, ctx) {
        if let Some(removed) = trash_at(&root, ctx).finish_removal_of(session)? {
            return Ok(Some(removed));
        }
    }
    Ok(None)
}

/// Only the trash in our own data folder holds sessions of other agents.
fn trash_at(root: &Path, ctx: &Ctx) -> Trash {
    let host = ctx.host();
    match root.parent() {
        Some(store) if store != ctx.home.data() => Trash::of_store(store, host),
        _ => Trash::open(root, host),
    }
}

fn roots(global: &Global, ctx: &Ctx) -> Vec<PathBuf> {
    let native = dialect::named("native").into_iter();
    let stores = native.flat_map(|native| match &global.store {
        Some(store) => native.layouts_in(&ctx.home.cwd.join(store)),
        None => native.layouts(&ctx.home),
    });
    let stores = stores.filter_map(|layout| Some(layout.root.parent()?.join("trash")));
    let mut roots: Vec<PathBuf> = stores.chain([ctx.home.data().join("trash")]).collect();
    // Without a home directory, ours would be a folder of the working directory, which anybody can have made.
    roots.retain(|root| root.is_absolute());
    roots.sort();
    roots.dedup();
    roots
}
