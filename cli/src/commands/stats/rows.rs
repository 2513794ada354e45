//! The rows of a count as a table, and what they say about efficiency.

use jiff::civil::Date;
use scrollback::model::Usage;
use scrollback::view::counting::{Level, Stats, StatsRow};

use super::plot;
use crate::ctx::Ctx;
use crate::render::table::{Cell, Column, Table};
use crate::render::{clock, plural};
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// The columns of a bar.
const BAR_COLUMNS: usize = 16;

/// Wide enough for every column, where no terminal limits it.
pub(super) const PIPE_COLUMNS: usize = 1000;

/// What stands for a name that is not known.
const UNKNOWN: &str = "unknown";

pub(super) fn text(stats: &Stats, ctx: &Ctx) -> String {
    let look = ctx.on_terminal;
    let mut text = String::new();
    if look && stats.by == [Level::Day] {
        text.push_str(&calendar(stats, ctx));
    }
    text.push_str(&table(stats, ctx));
    for line in about(&stats.total, ctx) {
        text.push_str(&ctx.paint().dim(&line));
        text.push('\n');
    }
    text
}

fn tokens(row: &StatsRow) -> u64 {
    row.usage.total().unwrap_or(0)
}

/// What a bar shows: tokens, or calls where rows are tools.
fn weight(row: &StatsRow) -> u64 {
    if tokens(row) > 0 { tokens(row) } else { row.tool_calls }
}

/// A calendar of the days, and a line of the last of them.
fn calendar(stats: &Stats, ctx: &Ctx) -> String {
    let day = |row: &StatsRow| Some((row.key.as_ref()?.first()?.as_ref()?.parse::<Date>().ok()?, tokens(row)));
    let days: Vec<(Date, u64)> = stats.rows.iter().filter_map(day).collect();
    if days.len() < 2 {
        return String::new();
    }
    let width = ctx.look.width.saturating_sub(8).min(53);
    let mut lines = plot::calendar(&days, width);
    let all = plot::fill(&days);
    lines.push(String::new());
    lines.push(format!("    {}", plot::line(&all[all.len().saturating_sub(width)..])));
    let mut text: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    text.push('\n');
    text
}

fn table(stats: &Stats, ctx: &Ctx) -> String {
    let mut columns: Vec<Column> = stats
        .by
        .iter()
        .map(|level| match level {
            Level::Project | Level::Model | Level::Tool | Level::Session => Column::shrinking(title(*level), 12),
            Level::Day | Level::Week | Level::Month | Level::Agent => Column::fixed(title(*level)),
        })
        .collect();
    match is_by_tool(stats) {
        true => columns.extend(tool_columns()),
        false => columns.extend(spent_columns()),
    }
    let mut table = Table::new(columns);
    let greatest = stats.rows.iter().map(weight).max().unwrap_or(0);
    for row in &stats.rows {
        let bar = if ctx.on_terminal { plot::bar(weight(row), greatest, BAR_COLUMNS) } else { String::new() };
        table.push(cells(stats, row, bar, ctx));
    }
    if stats.rows.len() != 1 {
        table.push(cells(stats, &stats.total, String::new(), ctx));
    }
    let width = if ctx.on_terminal { ctx.look.width } else { PIPE_COLUMNS };
    table.render(width, ctx.paint())
}

/// Only calls belong to a tool: the other columns would be empty but for the total.
fn is_by_tool(stats: &Stats) -> bool {
    stats.by.contains(&Level::Tool)
}

fn tool_columns() -> [Column; 8] {
    [
        Column::right("CALLS"),
        Column::right("FAILED").spare(1),
        Column::right("SHARE").spare(2),
        Column::right("TIME").spare(3),
        Column::right("RETRIED").spare(5),
        Column::right("FILES").spare(6),
        Column::right("SESSIONS").spare(7),
        Column::fixed("").spare(4),
    ]
}

fn spent_columns() -> [Column; 17] {
    [
        Column::right("TOKENS"),
        Column::right("COST").spare(1),
        Column::right("UNPRICED").spare(9),
        Column::right("REQUESTS").spare(4),
        Column::right("INPUT").spare(6),
        Column::right("OUTPUT").spare(2),
        Column::right("CACHE READ").spare(7),
        Column::right("WRITTEN").spare(8),
        Column::right("REASONING").spare(15),
        Column::right("SESSIONS").spare(11),
        Column::right("MESSAGES").spare(16),
        Column::right("TURNS").spare(10),
        Column::right("CALLS").spare(3),
        Column::right("FAILED").spare(12),
        Column::right("FILES").spare(14),
        Column::right("ACTIVE").spare(13),
        // Eighty columns have room for it.
        Column::fixed("").spare(5),
    ]
}

fn title(level: Level) -> &'static str {
    match level {
        Level::Day => "DAY",
        Level::Week => "WEEK",
        Level::Month => "MONTH",
        Level::Project => "PROJECT",
        Level::Agent => "AGENT",
        Level::Model => "MODEL",
        Level::Tool => "TOOL",
        Level::Session => "SESSION",
    }
}

fn cells(stats: &Stats, row: &StatsRow, bar: String, ctx: &Ctx) -> Vec<Cell> {
    let known = |count: Option<u64>| count.map(|count| number(count, ctx)).unwrap_or_default();
    let seconds = |seconds: f64| if seconds == 0.0 { String::new() } else { span(seconds, ctx) };
    let some = |count: u64| if count == 0 { String::new() } else { number(count, ctx) };
    let is_total = row.key.is_none();
    let keys = stats.by.iter().enumerate().map(|(at, level)| match row.key.as_ref().map(|key| &key[at]) {
        Some(Some(name)) => Cell::new(shown(*level, name, ctx), Paint::cyan),
        Some(None) => Cell::new(UNKNOWN, Paint::dim),
        None => Cell::new(if at == 0 { "total" } else { "" }, Paint::bold),
    });
    let Usage { input, output, cache_read, cache_write, reasoning } = row.usage;
    let strong = if is_total { Paint::bold } else { Paint::plain };
    let mut cells: Vec<Cell> = keys.collect();
    if is_by_tool(stats) {
        let failed = percent(row.tool_failures as f64 / row.tool_calls.max(1) as f64);
        cells.extend([
            Cell::new(some(row.tool_calls), strong),
            Cell::new(some(row.tool_failures), Paint::red),
            Cell::new(if row.tool_failures > 0 { failed } else { String::new() }, Paint::dim),
            Cell::new(seconds(row.tool_seconds), strong),
            Cell::new(some(row.retries), Paint::dim),
            Cell::new(some(row.files_touched), Paint::dim),
            Cell::new(some(row.sessions), Paint::dim),
            Cell::new(bar, Paint::green),
        ]);
        return cells;
    }
    cells.extend([
        Cell::new(known(row.usage.total()), strong),
        Cell::new(row.cost_usd.map(|usd| dollars(usd, ctx)).unwrap_or_default(), strong),
        Cell::new(some(row.unpriced), Paint::yellow),
        Cell::new(some(row.requests), strong),
        Cell::new(known(input), Paint::dim),
        Cell::new(known(output), Paint::dim),
        Cell::new(known(cache_read), Paint::dim),
        Cell::new(known(cache_write), Paint::dim),
        Cell::new(known(reasoning), Paint::dim),
        Cell::new(some(row.sessions), strong),
        Cell::new(some(row.messages), strong),
        Cell::new(some(row.turns), strong),
        Cell::new(some(row.tool_calls), strong),
        Cell::new(some(row.tool_failures), Paint::red),
        Cell::new(some(row.files_touched), strong),
        Cell::new(seconds(row.active_seconds), strong),
        Cell::new(bar, Paint::green),
    ]);
    cells
}

/// A name; of a project only the last part of its path, where a person reads it.
fn shown(level: Level, name: &str, ctx: &Ctx) -> String {
    let name = match level {
        Level::Project if ctx.on_terminal => name.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(name),
        _ => name,
    };
    clean::line(name).into_owned()
}

/// Plain numbers for programs.
pub(super) fn number(count: u64, ctx: &Ctx) -> String {
    if ctx.on_terminal { rounded(count) } else { count.to_string() }
}

pub(super) fn dollars(usd: f64, ctx: &Ctx) -> String {
    if ctx.on_terminal { format!("${usd:.2}") } else { format!("{usd:.6}") }
}

fn span(seconds: f64, ctx: &Ctx) -> String {
    if ctx.on_terminal { clock::span((seconds * 1000.0) as u64) } else { seconds.to_string() }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A count in few characters.
fn rounded(count: u64) -> String {
    let (mut value, mut unit, mut units) = (count as f64, "", ["k", "M", "G", "T", "P", "E"].into_iter());
    if count < 10_000 {
        return count.to_string();
    }
    // What rounds to a thousand is one of the next unit.
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1000.0, next);
    }
    if value < 99.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// How well it went, in sentences; a share of nothing is left out.
fn about(total: &StatsRow, ctx: &Ctx) -> Vec<String> {
    let each = |count: f64, of: u64| count / of.max(1) as f64;
    let mut lines = Vec::new();
    if total.turns > 0 {
        let per_turn = total.usage.total().unwrap_or(0) as f64 / total.turns as f64;
        let to_an_end = match total.clean_ends {
            0 => String::new(),
            ends => format!(" ({:.1} turns to a clean end)", each(total.turns as f64, ends)),
        };
        lines.push(format!(
            "{}, {} of them ended with an answer{to_an_end}; {} tokens a turn",
            plural(total.turns, "turn"),
            total.clean_ends,
            number(per_turn.round() as u64, ctx),
        ));
    }
    if total.tool_calls > 0 {
        lines.push(format!(
            "{}, {} failed ({}, {:.2} a turn), {} retried; {} in tools",
            plural(total.tool_calls, "tool call"),
            total.tool_failures,
            percent(each(total.tool_failures as f64, total.tool_calls)),
            each(total.tool_failures as f64, total.turns),
            total.retries,
            if ctx.on_terminal { span(total.tool_seconds, ctx) } else { format!("{} s", total.tool_seconds) },
        ));
    }
    if let Some(rate) = total.cache_hit_rate {
        lines.push(format!(
            "{} of the input was read from a cache; {}",
            percent(rate),
            plural(total.compactions, "compaction")
        ));
    }
    if let Some(share) = total.thinking_share.filter(|_| total.thinking_turns > 0) {
        let without = total.turns.saturating_sub(total.thinking_turns);
        let clean_without = total.clean_ends.saturating_sub(total.thinking_clean_ends);
        let mut line = format!(
            "thinking is {} of what the models wrote, {:.0} characters a turn; {} of the turns with it ended with an answer",
            percent(share),
            each(total.thinking_characters as f64, total.turns),
            percent(each(total.thinking_clean_ends as f64, total.thinking_turns)),
        );
        if without > 0 {
            line.push_str(&format!(", {} of those without", percent(each(clean_without as f64, without))));
        }
        lines.push(line);
    }
    lines
}

/// The titles of the columns for a spreadsheet with what requests took.
pub(super) const SPENT: [&str; 8] =
    ["input", "output", "cache_read", "cache_write", "reasoning", "cost_usd", "unpriced", "requests"];

/// The titles of the columns for a spreadsheet.
pub(super) fn titles(by: &[Level]) -> Vec<String> {
    const COUNTED: [&str; 15] = [
        "sessions",
        "messages",
        "turns",
        "tool_calls",
        "tool_failures",
        "tool_seconds",
        "files_touched",
        "active_seconds",
        "thinking_share",
        "cache_hit_rate",
        "retries",
        "compactions",
        "clean_ends",
        "thinking_turns",
        "thinking_clean_ends",
    ];
    by.iter().map(|level| level.name()).chain(SPENT).chain(COUNTED).map(str::to_owned).collect()
}

/// The rows for a spreadsheet, without the total: a spreadsheet adds by itself.
pub(super) fn values(stats: &Stats) -> Vec<Vec<String>> {
    stats.rows.iter().map(values_of).collect()
}

fn values_of(row: &StatsRow) -> Vec<String> {
    let share = |share: Option<f64>| share.map(|share| share.to_string()).unwrap_or_default();
    let keys = row.key.iter().flatten().map(|name| name.clone().unwrap_or_default());
    let counts = [
        share(row.cost_usd),
        row.unpriced.to_string(),
        row.requests.to_string(),
        row.sessions.to_string(),
        row.messages.to_string(),
        row.turns.to_string(),
        row.tool_calls.to_string(),
        row.tool_failures.to_string(),
        row.tool_seconds.to_string(),
        row.files_touched.to_string(),
        row.active_seconds.to_string(),
        share(row.thinking_share),
        share(row.cache_hit_rate),
        row.retries.to_string(),
        row.compactions.to_string(),
        row.clean_ends.to_string(),
        row.thinking_turns.to_string(),
        row.thinking_clean_ends.to_string(),
    ];
    keys.chain(token_cells(row.usage)).chain(counts).collect()
}

/// The tokens for a spreadsheet.
pub(super) fn token_cells(usage: Usage) -> [String; 5] {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    [input, output, cache_read, cache_write, reasoning]
        .map(|count| count.map(|count| count.to_string()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_rounded_and_not_cut() {
        let counts = [9_999, 12_345, 85_272_380, 1_215_668, 999_499, 999_500, u64::MAX];
        assert_eq!(counts.map(rounded), ["9999", "12.3k", "85.3M", "1.2M", "999k", "1.0M", "18.4E"]);
    }
}
