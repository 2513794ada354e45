//! `list`: sessions in a table, newest first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use jiff::Timestamp;
use rayon::prelude::*;
use scrollback::model::Usage;
use scrollback::session::{Source, State};
use scrollback::view::SessionRow;
use scrollback::view::find::{Places, Unsupported, unsupported};
use scrollback::view::listing::{self, Depth};
use scrollback_index::query::Query;

use super::{FOUND_PROBLEMS, keep, search};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind, use_a_path};
use crate::render::clock;

use crate::render::short_ids::ShortIds;
use crate::render::table::{Cell, Column, Table};
use crate::render::{plural, state_word};
use crate::session::{archive, scope};
use crate::terminal::clean;
use crate::terminal::paint::Paint;
use crate::terminal::preview::one_line;

/// List sessions, newest first
///
/// Lists the sessions of the current project; outside of a project, all sessions. The newest sessions of at most 4 MiB are read
/// whole, up to 64 MiB in all. Of the others only the beginning and the end are read, so their counts and states stay empty
/// without --full.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// List only sessions whose title, project or first prompt matches; see `search --help` for what a query is
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// The order of sessions
    #[arg(long, value_name = "ORDER", default_value = "updated")]
    sort: Order,
    /// Read every session whole, however large
    #[arg(long)]
    full: bool,
    /// List sub-agents' sessions too
    #[arg(long)]
    sidechains: bool,
    /// List at most N sessions (default: `list.limit` in the config file; with --json: all)
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Print one JSON object per line
    #[arg(long)]
    jsonl: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Updated last
    Updated,
    /// Started last
    Started,
    /// The largest files
    Size,
    /// By project, then updated last
    Project,
}

const EXAMPLES: &str = "\
Examples:
  scrollback list --all --since 3d
  scrollback list tide table --sort started
  scrollback list --dialect codex --full";

impl ListArgs {
    /// What `scrollback` alone shows.
    pub(crate) fn newest() -> ListArgs {
        ListArgs { query: Vec::new(), sort: Order::Updated, full: false, sidechains: false, limit: None, jsonl: false }
    }
}

pub(crate) fn run(args: &ListArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    ctx.json |= args.jsonl;
    let depth = if args.full { Depth::Whole } else { Depth::Ends };
    let typed = args.query.join(" ");
    let query = Some(&typed).filter(|typed| !typed.trim().is_empty());
    let query = query.map(|typed| Query::parse(typed, ctx.now, &ctx.zone)).transpose();
    let query = query.map_err(|error| search::invalid(&typed, &error))?;
    let mut found = scope::found(global, ctx, depth)?;
    if let Some(query) = &query {
        let has_sessions = !found.rows.is_empty();
        found.archive.narrow(query, &mut found.rows);
        if has_sessions && found.rows.is_empty() && !ctx.json {
            let failure = Failure::new(FailureKind::NotFound, format!("no session matches {:?}", clean::line(&typed)));
            return Err(failure.hint(match found.hidden {
                0 => "a list looks at titles, projects and first prompts; run `scrollback search` to look at all texts"
                    .to_owned(),
                hidden => format!("{} in other projects: add --all", plural(hidden as u64, "session")),
            }));
        }
    }
    sort(&mut found.rows, args.sort);
    let (shown, aside): (Vec<_>, Vec<_>) = std::mem::take(&mut found.rows)
        .into_iter()
        .partition(|(row, _)| args.sidechains || row.parent_session.is_none());
    // The default is for people; programs get everything.
    let default_limit = ctx.config.list_limit().filter(|_| !ctx.json);
    let limit = args.limit.or(default_limit).map_or(usize::MAX, NonZeroUsize::get);
    let left_out = if args.limit.is_none() { shown.len().saturating_sub(limit) } else { 0 };
    let mut listed: Vec<(Box<SessionRow>, Source)> = below_their_parents(shown).into_iter().take(limit).collect();
    for error in found.archive.complete(&mut listed) {
        ctx.warn(&error.into())?;
    }
    found.archive.add_requests(&mut listed);
    archive::warn_about_index(&mut found.archive, ctx)?;
    listing::mark_copied_requests(&mut listed.iter_mut().map(|(row, _)| &mut **row).collect::<Vec<_>>());
    // A whole session may have a later instant than its two ends.
    sort(&mut listed, args.sort);
    let rows: Vec<SessionRow> = below_their_parents(listed).into_iter().map(|(row, _)| *row).collect();
    if args.jsonl {
        for row in &rows {
            ctx.print_json_line(row)?;
        }
    } else if ctx.json {
        ctx.print_json(&rows)?;
    } else {
        let mut notes = notes(&found, &rows, left_out, aside.len(), global, ctx);
        notes.extend(keep::mention(&rows, global, ctx));
        let table = if rows.is_empty() { String::new() } else { table(&rows, &found.ids, ctx) };
        print(&table, &notes, ctx)?;
    }
    let is_empty = rows.is_empty();
    // The process ends: its memory goes back at once, and not session by session.
    std::mem::forget(rows);
    match (is_empty, ctx.json) {
        (false, _) => Ok(ExitCode::SUCCESS),
        (true, true) => Ok(ExitCode::from(FOUND_PROBLEMS)),
        (true, false) => {
            Err(no_session(found.hidden, found.project.as_deref(), aside.len(), found.archive.places(), global))
        }
    }
}

/// Sessions come the newest first.
fn sort(sessions: &mut [(Box<SessionRow>, Source)], order: Order) {
    match order {
        Order::Updated => {}
        Order::Started => sessions.sort_by_key(|(row, _)| Reverse(row.started)),
        Order::Size => sessions.sort_by_key(|(row, _)| Reverse(row.size_bytes)),
        Order::Project => sessions.sort_by(|(a, _), (b, _)| a.project.cmp(&b.project)),
    }
}

/// Prints the table and what is said under it, in a pager if the window is too low: the newest sessions stand at the top.
fn print(table: &str, notes: &[String], ctx: &mut Ctx) -> Result<(), Failure> {
    let is_paged = ctx.page_if_long(table.lines().count() + notes.len());
    write!(ctx.out, "{table}")?;
    if is_paged {
        notes.iter().try_for_each(|note| ctx.line(&clean::line(note)))?;
        return ctx.end_page();
    }
    ctx.out.flush()?;
    notes.iter().try_for_each(|note| ctx.note(note))
}

/// What the table leaves out.
fn notes(
    found: &scope::Found,
    rows: &[SessionRow],
    left_out: usize,
    aside: usize,
    global: &Global,
    ctx: &Ctx,
) -> Vec<String> {
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{}; use --limit N to list more.", plural(left_out as u64, "more session")));
    }
    if found.hidden > 0 && !rows.is_empty() {
        notes.push(format!("{} in other projects; add --all to list them.", plural(found.hidden as u64, "session")));
    }
    if aside > 0 && !rows.is_empty() {
        notes.push(format!("{}; add --sidechains to list them.", plural(aside as u64, "sub-agent session")));
    }
    notes.extend(same_id_notes(found, rows));
    if is_everything(global, ctx) {
        notes.extend(unsupported_note(ctx));
    }
    notes
}

/// What to type instead of the listed ids that several sessions have.
fn same_id_notes(found: &scope::Found, rows: &[SessionRow]) -> Vec<String> {
    // A whole folder may have been copied.
    const LISTED: usize = 3;
    let mut known = HashSet::new();
    let listed = rows
        .iter()
        .filter(|row| known.insert(&row.id))
        .filter_map(|row| found.same_ids.get_key_value(&row.id));
    let mut notes: Vec<String> = listed
        .map(|(id, same)| {
            let id = found.ids.short_session(id.as_str());
            format!("{} sessions have the id {id}: {}", same.len(), use_a_path(same.iter().map(|one| &one.path)))
        })
        .collect();
    let more = notes.len().saturating_sub(LISTED);
    notes.truncate(LISTED);
    let ids = if more == 1 { "1 more id is" } else { &format!("{more} more ids are") };
    notes.extend((more > 0).then(|| format!("{ids} of several sessions; --json has every path.")));
    notes
}

/// Whether no option limits which agents, projects and times are listed.
fn is_everything(global: &Global, ctx: &Ctx) -> bool {
    let is_limited = global.store.is_some()
        || global.dialect.is_some()
        || global.project.is_some()
        || global.since.is_some()
        || global.until.is_some();
    !is_limited && !ctx.json && !ctx.demo
}

/// How many sessions there are of agents that cannot be read yet.
pub(crate) fn unsupported_note(ctx: &Ctx) -> Option<String> {
    let sessions = |agent: &Unsupported| match agent.count {
        Some(count) => plural(count as u64, &format!("{} session", agent.agent)),
        None => format!("{} sessions", agent.agent),
    };
    let counts: Vec<String> = unsupported(&ctx.home).iter().map(sessions).collect();
    (!counts.is_empty()).then(|| format!("{}: not supported yet.", counts.join(", ")))
}

/// Puts each sub-agent's session below its parent, if the parent is listed.
fn below_their_parents(sessions: Vec<(Box<SessionRow>, Source)>) -> Vec<(Box<SessionRow>, Source)> {
    let listed: HashSet<String> = sessions.iter().map(|(row, _)| row.id.0.clone()).collect();
    let parent = |row: &SessionRow| row.parent_session.clone().filter(|parent| listed.contains(&parent.0));
    if sessions.iter().all(|(row, _)| parent(row).is_none()) {
        return sessions;
    }
    let (mut children, mut tops) = (HashMap::<String, Vec<(Box<SessionRow>, Source)>>::new(), Vec::new());
    for session in sessions {
        match parent(&session.0) {
            Some(parent) => children.entry(parent.0).or_default().push(session),
            None => tops.push(session),
        }
    }
    let (mut ordered, mut left) = (Vec::new(), tops);
    left.reverse();
    while let Some(session) = left.pop() {
        let below = children.remove(&session.0.id.0).unwrap_or_default();
        ordered.push(session);
        left.extend(below.into_iter().rev());
    }
    // Sessions that are each other's sub-agents have no top.
    ordered.extend(children.into_values().flatten());
    ordered
}

fn no_session(hidden: usize, project: Option<&Path>, aside: usize, places: &Places, global: &Global) -> Failure {
    let what = match project {
        Some(project) => format!("no session in {}", project.display()),
        None => "no session found".to_owned(),
    };
    if global.since.is_some() || global.until.is_some() {
        return Failure::new(FailureKind::NotFound, format!("{what} in that time"))
            .hint("--since and --until compare with the last update of a session");
    }
    let hint = match (hidden, aside) {
        (1.., _) => format!("{} in other projects: add --all", plural(hidden as u64, "session")),
        (0, 1..) => format!("{}: add --sidechains", plural(aside as u64, "sub-agent session")),
        (0, 0) if global.store.is_some() => {
            format!("{}; --store takes the folder above an agent's sessions, such as ~/.codex", scope::searched(places))
        }
        (0, 0) => {
            format!("{}; run `scrollback --demo list` to see the bundled demo sessions", scope::searched(places))
        }
    };
    Failure::new(FailureKind::NotFound, what).hint(hint)
}

/// The columns are in the order of need, so that on a narrow terminal the last ones go first.
fn table(rows: &[SessionRow], ids: &ShortIds<'_>, ctx: &Ctx) -> String {
    let columns = vec![
        Column::fixed("ID"),
        Column::fixed("UPDATED").spare(1),
        Column::shrinking("PROJECT", 7).spare(2),
        Column::shrinking("TITLE", 16).roomy(36).spare(3),
        Column::fixed("AGENT").spare(4),
        Column::right("MSGS").spare(5),
        Column::fixed("STATE").spare(6),
        Column::right("TOKENS").extra(),
    ];
    let now = ctx.now;
    let mut table = Table::new(columns);
    let cells = rows.par_iter().map(|row| cells(row, ids.short_session(row.id.as_str()), now));
    cells.collect::<Vec<_>>().into_iter().for_each(|row| table.push(row));
    table.render(ctx.look.width, ctx.paint())
}

fn cells(row: &SessionRow, id: &str, now: Timestamp) -> Vec<Cell> {
    let indent = if row.parent_session.is_some() { "└ " } else { "" };
    vec![
        Cell::new(clean::line(id), Paint::cyan),
        Cell::new(row.updated.map(|at| clock::age(at, now)).unwrap_or_default(), Paint::dim),
        Cell::new(clean::line(&project_name(row)), Paint::plain),
        Cell::new(format!("{indent}{}", one_line(&row.title, 200)), Paint::bold),
        Cell::new(row.dialect.as_str(), Paint::dim),
        Cell::new(row.message_count.map(|count| count.to_string()).unwrap_or_default(), Paint::plain),
        Cell::new(
            if row.kept { "kept" } else { state_word(row) },
            match row.state.filter(|_| !row.kept) {
                Some(State::Clean) | None => Paint::green,
                Some(State::Degraded) => Paint::red,
                Some(State::InterruptedPrompt | State::InterruptedTurn) => Paint::yellow,
            },
        ),
        Cell::new(tokens(row).map(short_count).unwrap_or_default(), Paint::dim),
    ]
}

/// The tokens of the requests that this session made itself.
fn tokens(row: &SessionRow) -> Option<u64> {
    let copied = row.copied_usage.and_then(Usage::total).unwrap_or(0);
    row.usage.and_then(Usage::total).map(|total| total.saturating_sub(copied))
}

/// A count in few characters; `--json` has the exact number.
pub(super) fn short_count(count: u64) -> String {
    let mut units = ["", "k", "M", "G", "T", "P", "E"].into_iter().peekable();
    let (mut whole, mut rest) = (count, 0);
    while whole >= 10_000 && units.len() > 1 {
        units.next();
        (whole, rest) = (whole / 1000, whole % 1000);
    }
    match units.next().unwrap_or_default() {
        "" => count.to_string(),
        unit if whole < 100 => format!("{whole}.{}{unit}", rest / 100),
        unit => format!("{whole}{unit}"),
    }
}

/// The last name of the project's path.
pub(super) fn project_name(row: &SessionRow) -> String {
    let path = row.project.as_deref().unwrap_or_default();
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_short() {
        let shown = [0, 9_999, 10_000, 28_725, 999_999, 1_234_567, 12_345_678_901].map(short_count);
        assert_eq!(shown, ["0", "9999", "10.0k", "28.7k", "999k", "1234k", "12.3G"]);
        assert_eq!(short_count(u64::MAX), "18.4E");
    }
}
