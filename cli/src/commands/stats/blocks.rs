//! `stats --blocks`: billing windows of five hours.

use std::io::Write;
use std::process::ExitCode;

use scrollback::view::counting::{Block, Elected, StatsQuery, blocks};
use scrollback_index::Counted;

use super::csv;
use super::rows::{PIPE_COLUMNS, SPENT, dollars, number, token_cells};
use crate::commands::FOUND_PROBLEMS;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::clock;
use crate::render::table::{Cell, Column, Table};
use crate::terminal::paint::Paint;

pub(super) fn run(
    counted: &Counted,
    elected: &Elected,
    query: &StatsQuery<'_>,
    is_csv: bool,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let blocks = blocks(&counted.sessions, elected, query, ctx.now);
    if ctx.json {
        ctx.print_json(&serde_json::json!({"blocks": blocks}))?;
    } else if is_csv {
        let titles = ["start", "end"].into_iter().chain(SPENT).chain(RATES).map(str::to_owned);
        let rows: Vec<Vec<String>> = blocks.iter().map(values).collect();
        csv::print(&titles.collect::<Vec<String>>(), &rows, ctx)?;
    } else if blocks.is_empty() {
        ctx.note(super::NOTHING)?;
    } else {
        let text = text(&blocks, query, ctx);
        ctx.page_if_long(text.lines().count());
        ctx.out.write_all(text.as_bytes())?;
        ctx.end_page()?;
    }
    Ok(if blocks.is_empty() { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// The titles of the columns for a spreadsheet with how fast tokens are used, and what is left of the running window.
const RATES: [&str; 5] =
    ["tokens_per_minute", "cost_per_hour", "minutes_left", "projected_tokens", "projected_cost_usd"];

fn values(block: &Block) -> Vec<String> {
    let known = token_cells(block.usage);
    let plain = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let left = block.left.as_ref();
    let rates = [
        block.tokens_per_minute,
        block.cost_per_hour,
        left.map(|left| left.minutes),
        left.and_then(|left| left.projected_tokens),
        left.and_then(|left| left.projected_cost_usd),
    ];
    let cost = plain(block.cost_usd);
    let times = [block.start.to_string(), block.end.to_string()];
    let rest = [cost, block.unpriced.to_string(), block.requests.to_string()];
    times.into_iter().chain(known).chain(rest).chain(rates.map(plain)).collect()
}

fn text(blocks: &[Block], query: &StatsQuery<'_>, ctx: &Ctx) -> String {
    let number = |count: u64| number(count, ctx);
    let cost = |usd: Option<f64>| usd.map(|usd| dollars(usd, ctx)).unwrap_or_default();
    let start = |block: &Block| match ctx.on_terminal {
        true => clock::stamp(block.start, &query.zone),
        false => block.start.to_string(),
    };
    let mut table = Table::new(vec![
        Column::fixed("WINDOW FROM"),
        Column::right("TOKENS"),
        Column::right("COST").spare(1),
        Column::right("UNPRICED").spare(5),
        Column::right("REQUESTS").spare(4),
        Column::right("TOKENS/MIN").spare(2),
        Column::right("COST/H").spare(3),
    ]);
    for block in blocks {
        table.push(vec![
            Cell::new(start(block), Paint::cyan),
            Cell::new(number(block.usage.total().unwrap_or(0)), Paint::plain),
            Cell::new(cost(block.cost_usd), Paint::plain),
            Cell::new(Some(block.unpriced).filter(|count| *count > 0).map(number).unwrap_or_default(), Paint::yellow),
            Cell::new(number(block.requests), Paint::plain),
            Cell::new(block.tokens_per_minute.map(|rate| number(rate as u64)).unwrap_or_default(), Paint::dim),
            Cell::new(cost(block.cost_per_hour), Paint::dim),
        ]);
    }
    let width = if ctx.on_terminal { ctx.look.width } else { PIPE_COLUMNS };
    let mut text = table.render(width, ctx.paint());
    if let Some(left) = blocks.last().and_then(|block| block.left.as_ref()) {
        let minutes = match ctx.on_terminal {
            true => clock::span((left.minutes * 60_000.0) as u64),
            false => format!("{} min", left.minutes.round()),
        };
        text.push_str(&format!("The running window ends in {minutes}"));
        let tokens = left
            .projected_tokens
            .map(|tokens| format!("; at this rate it will have {} tokens", number(tokens as u64)));
        text.push_str(&tokens.unwrap_or_default());
        text.push_str(
            &left.projected_cost_usd.map(|usd| format!(" and cost {}", dollars(usd, ctx))).unwrap_or_default(),
        );
        text.push_str(".\n");
    }
    text
}
