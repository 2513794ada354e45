//! `stats`: counts tokens, money, turns, tool calls and time over sessions, each fact once.

mod blocks;
pub(super) mod csv;
mod explain;
mod plot;
mod rows;

use std::process::ExitCode;

use clap::ValueEnum;
use hashbrown::HashSet;
use jiff::tz::TimeZone;
use scrollback::model::{Cost, Usage};
use scrollback::view::counting::{Elected, Level, StatsQuery, stats};
use scrollback::view::find::Scope;
use scrollback_index::{Archive, Counted};

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::prices::Prices;
use crate::render::plural;
use crate::session::scope::Everything;
use crate::session::{archive, scope};
use crate::terminal::progress::LateBar;

/// Count tokens, cost, turns and tool calls
///
/// Counts the sessions of the current project; add --all for every project. Each request counts once, however often files repeat it: in
/// several lines of an answer, in forks and resumed copies, in sub-agents' files. --since and --until select by the time of what is
/// counted. A cost that the agent recorded is used, else a list of prices at the date of the request, else prices.toml in the folder of the
/// config file; a request without any price is counted as unpriced.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// What the rows are; several levels, separated by commas, make a row for each combination
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', default_value = "day")]
    by: Vec<By>,
    /// Show billing windows of five hours: how fast tokens are used, and what is left of the running one
    #[arg(long, conflicts_with_all = ["explain", "by"])]
    blocks: bool,
    /// Show where each number comes from: file, line, message and rule; and what is not counted, and why
    #[arg(long)]
    explain: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    csv: bool,
    /// Let days begin at midnight in UTC, not in your time zone
    #[arg(long)]
    utc: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Day,
    Week,
    Month,
    Project,
    Agent,
    Model,
    Tool,
    Session,
}

const EXAMPLES: &str = "\
Examples:
  scrollback stats --all --since 30d
  scrollback stats --by project,model --all
  scrollback stats --by tool
  scrollback stats --explain --since 1d";

/// What is said where there is nothing to count.
const NOTHING: &str = "Nothing happened in the sessions and the time that were asked for.";

impl By {
    fn level(self) -> Level {
        match self {
            By::Day => Level::Day,
            By::Week => Level::Week,
            By::Month => Level::Month,
            By::Project => Level::Project,
            By::Agent => Level::Agent,
            By::Model => Level::Model,
            By::Tool => Level::Tool,
            By::Session => Level::Session,
        }
    }
}

pub(crate) fn run(args: &StatsArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let mut by: Vec<Level> = args.by.iter().map(|by| by.level()).collect();
    let mut known = HashSet::new();
    by.retain(|level| known.insert(*level));
    let prices = Prices::read(ctx)?;
    let price = |model: &str, usage: Usage| -> Option<Cost> { prices.cost(model, usage) };
    let query = StatsQuery {
        by,
        zone: if args.utc { TimeZone::UTC } else { ctx.zone.clone() },
        since: scope::time(global.since.as_deref(), "--since", ctx)?,
        until: scope::time(global.until.as_deref(), "--until", ctx)?,
        price: &price,
    };
    let (counted, mut archive, hidden) = counted(global, ctx)?;
    let elected = Elected::among(&counted.sessions);
    if args.explain {
        return explain::run(&counted, &elected, &query, &mut archive, ctx);
    }
    if args.blocks {
        return blocks::run(&counted, &elected, &query, args.csv, ctx);
    }
    let stats = stats(&counted.sessions, &elected, &query);
    if args.csv {
        csv::print(&rows::titles(&stats.by), &rows::values(&stats), ctx)?;
    } else if ctx.json {
        ctx.print_json(&stats)?;
    } else if stats.total.sessions == 0 {
        ctx.note(NOTHING)?;
    } else {
        let text = rows::text(&stats, ctx);
        ctx.page_if_long(text.lines().count());
        std::io::Write::write_all(&mut ctx.out, text.as_bytes())?;
        ctx.end_page()?;
        if hidden > 0 {
            ctx.note(&format!("{} in other projects; add --all to count them.", plural(hidden as u64, "session")))?;
        }
    }
    // The process ends: its memory goes back at once, and not fact by fact.
    std::mem::forget(counted);
    match stats.total.sessions {
        0 => Ok(ExitCode::from(FOUND_PROBLEMS)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Every session with what it can add, those that are not in scope too: they can have the one occurrence of a fact that counts.
/// Also the archive, and how many sessions are in other projects.
fn counted(global: &Global, ctx: &mut Ctx) -> Result<(Counted, Archive, usize), Failure> {
    // The times are those of what is counted, not of sessions.
    let scope = Scope { since: None, until: None, ..scope::scope(global, ctx)? };
    let Everything { sessions, in_scope, hidden, mut archive } =
        scope::everything(scope::places(global, ctx)?, &scope, global, ctx)?;
    if in_scope.is_empty() {
        let failure = Failure::new(FailureKind::NotFound, "no session to count");
        return Err(match hidden {
            0 => failure.hint(scope::searched(archive.places())),
            hidden => failure.hint(format!("{} in other projects: add --all", plural(hidden as u64, "session"))),
        });
    }
    let progress = LateBar::new(sessions.len() as u64, ctx);
    let mut counted = archive.count(sessions, &|row| in_scope.holds(row), &|| progress.inc(1));
    progress.finish();
    archive::warn_about_index(&mut archive, ctx)?;
    for error in std::mem::take(&mut counted.unreadable) {
        ctx.warn(&error.into())?;
    }
    Ok((counted, archive, hidden))
}
