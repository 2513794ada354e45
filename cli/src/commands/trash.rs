//! `trash`: lists removed sessions and restores them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scrollback::dialect;
use scrollback::write::{Removed, Trash};

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::clock;
use crate::render::table::{Cell, Column, Table};
use crate::session::writable::Done;
use crate::terminal::clean;
use crate::terminal::markdown::plain_preview;
use crate::terminal::paint::Paint;

/// Titles are cut to this length before layout: more than any terminal is wide.
const TITLE_CHARS: usize = 200;

/// List removed sessions, or restore one
///
/// Lists the sessions that `remove` moved to the trash, last removed first. Nothing in the trash expires: to delete a session for good,
/// delete its folder in the trash.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TrashArgs {
    #[command(subcommand)]
    command: Option<TrashCommand>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback trash
  scrollback trash restore 3f8a";

#[derive(clap::Subcommand, Debug)]
enum TrashCommand {
    Restore(RestoreArgs),
}

/// Restore a removed session
///
/// Moves its files back to where they were. If another file is there now, nothing is moved.
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
    }
}

fn list(global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let removed = removed(global, ctx)?;
    if ctx.json {
        ctx.print_json(&removed)?;
        return Ok(if removed.is_empty() { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS });
    }
    if removed.is_empty() {
        return Err(Failure::new(FailureKind::NotFound, "the trash is empty")
            .hint("run `scrollback remove SESSION` to move a session there"));
    }
    let mut table = Table::new(vec![
        Column::fixed("ID"),
        Column::fixed("REMOVED").spare(1),
        Column::shrinking("TITLE", 16),
        Column::fixed("AGENT").spare(2),
        Column::shrinking("PATH", 16).spare(3),
    ]);
    for Removed { id, origin, .. } in &removed {
        table.push(vec![
            Cell::new(clean::line(id), Paint::cyan),
            Cell::new(origin.removed.map(|at| clock::ago(at, ctx.now)).unwrap_or_default(), Paint::dim),
            Cell::new(plain_preview(origin.title.as_deref().unwrap_or_default(), TITLE_CHARS), Paint::bold),
            Cell::new(clean::line(&origin.dialect), Paint::dim),
            Cell::new(clean::line(&origin.path.to_string_lossy()), Paint::plain),
        ]);
    }
    let table = table.render(ctx.look.width, ctx.paint());
    write!(ctx.out, "{table}")?;
    ctx.out.flush()?;
    ctx.note("Run `scrollback trash restore ID` to restore a session.")?;
    Ok(ExitCode::SUCCESS)
}

fn restore(args: &RestoreArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let all = removed(global, ctx)?;
    let find = |matches: &dyn Fn(&Removed) -> bool| -> Vec<&Removed> {
        all.iter().filter(|removed| matches(removed)).collect()
    };
    let named = [
        find(&|removed| removed.id == args.id),
        find(&|removed| removed.origin.session == args.id),
        find(&|removed| removed.id.starts_with(&args.id) || removed.origin.session.starts_with(&args.id)),
    ];
    let found = named.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    let [only] = found[..] else {
        let failure = match found.len() {
            0 => Failure::new(FailureKind::NotFound, format!("nothing in the trash matches {:?}", args.id)),
            count => Failure::new(FailureKind::Usage, format!("{count} removed sessions match {:?}", args.id)),
        };
        return Err(failure.hint("run `scrollback trash` to see every id"));
    };
    let back = trash_at(&only.root, ctx)?.restore(&only.id)?;
    let (session, path) = (back.origin.session, back.origin.path);
    if ctx.json {
        ctx.print_json(&Done { session, record: None, path })?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("restored {}", clean::line(&session)))?;
    ctx.note(&path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The removed sessions of every trash. What cannot be read is reported.
fn removed(global: &Global, ctx: &mut Ctx) -> Result<Vec<Removed>, Failure> {
    let mut all = Vec::new();
    for root in roots(global, ctx) {
        let listed = trash_at(&root, ctx)?.list();
        all.extend(listed.removed);
        for error in listed.errors {
            ctx.warn(&error.into())?;
        }
    }
    all.sort_by(|a, b| b.origin.removed.cmp(&a.origin.removed).then_with(|| a.id.cmp(&b.id)));
    Ok(all)
}

/// Only the trash in our own data folder holds sessions of other agents.
fn trash_at(root: &Path, ctx: &Ctx) -> Result<Trash, Failure> {
    let host = ctx.host()?;
    Ok(match root.parent() {
        Some(store) if store != ctx.home.data() => Trash::of_store(store, host),
        _ => Trash::open(root, host),
    })
}

fn roots(global: &Global, ctx: &Ctx) -> Vec<PathBuf> {
    let native = dialect::named("native").into_iter();
    let stores = native.flat_map(|native| match &global.store {
        Some(store) => native.layouts_in(&ctx.home.cwd.join(store)),
        None => native.layouts(&ctx.home),
    });
    let stores = stores.filter_map(|layout| Some(layout.root.parent()?.join("trash")));
    let mut roots: Vec<PathBuf> = stores.chain([ctx.home.data().join("trash")]).collect();
    roots.sort();
    roots.dedup();
    roots
}
