//! Figures over all sessions: what the list of sessions knows, by day, agent and project.
//!
//! Each plot is shapes in SVG with a table of the same numbers. Tokens by model, cost and tools need the archive's own counts: when the
//! archive answers those, they become further plots here (`plot` takes any rows).

use std::collections::BTreeMap;

use axum::http::StatusCode;
use jiff::civil::Date;
use maud::{Markup, html};

use super::home::project_name;
use super::{Made, Nav};
use crate::catalogue::Entry;
use crate::render::icon::{agent_name, chevron};
use crate::render::words::{self, grouped, tokens};
use crate::site::Site;

/// How many days have a bar.
const DAYS: i64 = 30;

/// More rows of one plot are one row together.
const ROWS: usize = 12;

/// The page.
pub(crate) fn page(site: &Site) -> Made {
    let shelf = site.catalogue.shelf();
    let entries: Vec<&Entry> = shelf.main().collect();
    let sum = |of: &dyn Fn(&Entry) -> Option<u64>| {
        entries.iter().filter_map(|entry| of(entry)).fold(0_u64, u64::saturating_add)
    };
    let input = |entry: &Entry| entry.row.usage.as_ref().and_then(words::input_with_cache);
    let output = |entry: &Entry| entry.row.usage.and_then(|usage| usage.output);
    let messages = |entry: &Entry| entry.row.message_count.map(|count| count as u64);
    let known = entries.iter().filter(|entry| entry.row.usage.is_some()).count();
    let figure =
        |name: &str, value: String, more: String| html! { div.figure { dt { (name) } dd { (value) } dd { (more) } } };
    let body = html! {
        h1.page-title { "Stats" }
        dl.figures {
            (figure("Sessions", grouped(entries.len() as u64), format!("{} of sub-agents", shelf.entries.len() - entries.len())))
            (figure("Messages", grouped(sum(&messages)), "where they are counted".to_owned()))
            (figure("Tokens in", tokens(sum(&input)), format!("cache included, of {}", words::plural(known, "session"))))
            (figure("Tokens out", tokens(sum(&output)), format!("of {}", words::plural(known, "session"))))
        }
        div.plots {
            (days(&entries, site))
            (plot("By agent", "Sessions of each agent", &count(&entries, |entry| agent_name(&entry.row.dialect).to_owned())))
            (plot("By project", "Sessions of each project", &count(&entries, |entry| project_name(entry.row.project.as_deref()))))
        }
    };
    Made { status: StatusCode::OK, title: "Stats".to_owned(), nav: Nav::Stats, body }
}

fn count(entries: &[&Entry], name: impl Fn(&Entry) -> String) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    entries.iter().for_each(|entry| *counts.entry(name(entry)).or_default() += 1);
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if counts.len() > ROWS {
        let rest: u64 = counts[ROWS..].iter().map(|(_, count)| count).sum();
        counts.truncate(ROWS);
        counts.push(("all others".to_owned(), rest));
    }
    counts
}

/// Bars that lie, each with its name and its number, and the same as a table.
fn plot(title: &str, what: &str, rows: &[(String, u64)]) -> Markup {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    html! {
        section class="plot plot-half" {
            h2 { (title) }
            p.plot-sub { (what) }
            div.hbs {
                @for (name, count) in rows {
                    div.hb {
                        span.hb-name dir="auto" { (name) }
                        svg.hbar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" { rect.k-in width=(format!("{:.1}", 100.0 * *count as f64 / most as f64)) height="10" {} }
                        span.hb-val { (grouped(*count)) }
                    }
                }
            }
            (twin(title, rows))
        }
    }
}

fn days(entries: &[&Entry], site: &Site) -> Markup {
    let today = (site.now)().to_zoned(site.zone.clone()).date();
    let mut counts: BTreeMap<Date, u64> = BTreeMap::new();
    for back in 0..DAYS {
        if let Ok(day) = today.checked_sub(jiff::Span::new().days(back)) {
            counts.insert(day, 0);
        }
    }
    for at in entries.iter().filter_map(|entry| entry.row.updated) {
        if let Some(count) = counts.get_mut(&at.to_zoned(site.zone.clone()).date()) {
            *count += 1;
        }
    }
    let rows: Vec<(String, u64)> =
        counts.iter().map(|(day, count)| (day.strftime("%a %-d %b").to_string(), *count)).collect();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let step = 100.0 / rows.len().max(1) as f64;
    html! {
        section.plot {
            h2 { "By day" }
            p.plot-sub { "Sessions by the day of their last message, the last " (DAYS) " days" }
            div.chart {
                div.chart-y { span { (most) } span { "0" } }
                svg.chart-plot viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={ "Sessions by day; at most " (most) } {
                    line.axis x1="0" x2="100" y1="100" y2="100" {}
                    @for (at, (_, count)) in rows.iter().enumerate() {
                        @let height = 96.0 * *count as f64 / most as f64;
                        rect.k-in x=(format!("{:.2}", at as f64 * step + step * 0.15)) y=(format!("{:.2}", 100.0 - height)) width=(format!("{:.2}", step * 0.7)) height=(format!("{height:.2}")) {}
                    }
                }
                div class="chart-x x-5" { @for row in rows.chunks(rows.len().div_ceil(5).max(1)) { span { (row.first().map(|(day, _)| day.as_str()).unwrap_or_default()) } } }
            }
            (twin("By day", &rows))
        }
    }
}

/// The numbers of a plot as a table.
fn twin(title: &str, rows: &[(String, u64)]) -> Markup {
    html! {
        details.twin {
            summary { (chevron()) "As a table" }
            table.grid-table {
                caption.vh { (title) }
                thead { tr { th scope="col" { "What" } th scope="col" { "Sessions" } } }
                tbody { @for (name, count) in rows { tr { th scope="row" dir="auto" { (name) } td { (grouped(*count)) } } } }
            }
        }
    }
}
