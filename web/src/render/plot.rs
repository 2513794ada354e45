//! Plots: shapes in SVG whose words are HTML, each with a table of the same numbers. No inline style is needed.

use jiff::civil::{Date, Weekday};
use maud::{Markup, html};

use super::icon::chevron;
use super::text;
use super::words::{grouped, plural, short};

/// Rows of a table that are not listed: a page stays readable.
const TABLE_ROWS: usize = 200;

/// One kind of thing that columns are made of.
pub struct Series {
    /// The class of its colour.
    pub class: &'static str,
    /// What it is.
    pub name: &'static str,
}

/// One column: a period.
pub struct Column {
    /// The words below it, where it has room.
    pub label: String,
    /// Its whole name.
    pub name: String,
    /// A number for each series, the lowest first.
    pub values: Vec<u64>,
}

/// Columns with a scale, the numbers of each series on top of one another. `labels` of them have words below.
pub fn columns(about: &str, series: &[Series], columns: &[Column], grid: u64, is_low: bool, labels: Labels) -> Markup {
    const WIDTH: usize = 10;
    let height = if is_low { 60 } else { 150 };
    let most = columns.iter().filter_map(|column| stacked(&column.values).last()).map(|(_, upto)| upto).max();
    let step = nice_step(most.unwrap_or(0), grid);
    let top = step.saturating_mul(grid);
    let width = columns.len() * WIDTH;
    let scaled = |value: u64| f64::from(height) * value as f64 / top as f64;
    let said = |column: &Column| {
        let parts = series.iter().zip(&column.values).rev();
        parts
            .map(|(series, value)| format!("{} {}", grouped(*value), series.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    html! {
        div class=(if is_low { "chart chart-low" } else { "chart" }) {
            div.chart-y aria-hidden="true" { @for line in (0..=grid).rev() { span { (short(step.saturating_mul(line))) } } }
            svg.chart-plot viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" role="img" aria-label=(about) {
                @for line in 0..grid { path.grid d=(format!("M0 {:.1}H{width}", f64::from(height) * line as f64 / grid as f64)) {} }
                @for (at, column) in columns.iter().enumerate() {
                    @if column.values.iter().any(|value| *value > 0) {
                        g {
                            title { (column.name) ": " (said(column)) }
                            @for (series, (value, upto)) in series.iter().zip(stacked(&column.values)).filter(|(_, (value, _))| *value > 0) {
                                rect class=(series.class) x=(format!("{}.5", at * WIDTH + 1)) y=(format!("{:.1}", f64::from(height) - scaled(upto))) width="7" height=(format!("{:.1}", scaled(value).max(0.5))) {}
                            }
                        }
                    }
                }
                path.axis d=(format!("M0 {height}H{width}")) {}
            }
            @if let Labels::Every(count) = labels {
                ol class={ "chart-x x-" (columns.len() / count.max(1)) } aria-hidden="true" {
                    @for column in columns.chunks(count.max(1)) { li { (column.first().map(|column| column.label.as_str()).unwrap_or_default()) } }
                }
            }
        }
    }
}

/// Each number, with the sum up to it.
fn stacked(values: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    values.iter().scan(0_u64, |sum, value| {
        *sum = sum.saturating_add(*value);
        Some((*value, *sum))
    })
}

/// Which columns have words below.
#[derive(Clone, Copy)]
pub enum Labels {
    /// None: those of the chart below count for both.
    None,
    /// The first of each so many.
    Every(usize),
}

/// What the colours mean.
pub fn legend(series: &[Series], more: &[(&'static str, &'static str)]) -> Markup {
    let all = series.iter().rev().map(|series| (series.class, series.name)).chain(more.iter().copied());
    html! {
        ul.legend aria-hidden="true" {
            @for (class, name) in all { li { svg viewBox="0 0 10 10" { rect class=(class) width="10" height="10" rx="2" {} } (name) } }
        }
    }
}

/// A bar that lies.
pub struct Bar {
    /// What it is about.
    pub name: Markup,
    /// Its pieces, each with the class of its colour.
    pub pieces: Vec<(&'static str, f64)>,
    /// Its number in words.
    pub value: String,
    /// A second number, and whether it is bad news.
    pub rate: Option<(String, bool)>,
}

/// Bars that lie, the longest as long as there is room.
pub fn bars(bars: &[Bar]) -> Markup {
    let length = |bar: &Bar| bar.pieces.iter().map(|(_, piece)| piece).sum::<f64>();
    let most = bars.iter().map(length).fold(0.0, f64::max);
    let scaled = |piece: f64| if most > 0.0 { 100.0 * piece / most } else { 0.0 };
    let has_rates = bars.iter().any(|bar| bar.rate.is_some());
    html! {
        ul class=(if has_rates { "hbs hbs-rate" } else { "hbs" }) {
            @for bar in bars {
                li.hb {
                    (bar.name)
                    svg.hbar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                        @for (at, (class, piece)) in bar.pieces.iter().enumerate().filter(|(_, (_, piece))| *piece > 0.0) {
                            @let before: f64 = bar.pieces[..at].iter().map(|(_, piece)| piece).sum();
                            rect class=(class) x=(format!("{:.1}", scaled(before))) width=(format!("{:.1}", scaled(*piece).max(0.3))) height="10" {}
                        }
                    }
                    span.hb-val { (bar.value) }
                    @if has_rates {
                        @let (rate, is_bad) = bar.rate.clone().unwrap_or_default();
                        span class=(if is_bad { "hb-rate err" } else { "hb-rate" }) { (rate) }
                    }
                }
            }
        }
    }
}

/// Days of half a year as squares, a column a week, darker where more happened.
pub fn heat(about: &str, today: Date, what: &str, count_of: impl Fn(Date) -> u64) -> Markup {
    const WEEKS: i64 = 26;
    const CELL: i64 = 14;
    const LEFT: i64 = 30;
    const TOP: i64 = 16;
    let monday = today.checked_sub(jiff::Span::new().days(weekday(today))).unwrap_or(today);
    let day = |week: i64, weekday: i64| {
        let back = (WEEKS - 1 - week) * 7 - weekday;
        monday.checked_sub(jiff::Span::new().days(back)).ok().filter(|day| *day <= today)
    };
    let all = || (0..WEEKS).flat_map(|week| (0..7).filter_map(move |weekday| day(week, weekday)));
    let most = all().map(&count_of).max().unwrap_or(0);
    let level = |count: u64| match count {
        0 => 0,
        count => 1 + ((count - 1).saturating_mul(4) / most.max(1)).min(3),
    };
    // The least count of the last level.
    let darkest = (most / 4).saturating_mul(3) + (3 * (most % 4)).div_ceil(4) + 1;
    let (width, height) = (LEFT + WEEKS * CELL, TOP + 7 * CELL + 2);
    let mut months: Vec<(i64, String)> = Vec::new();
    for week in 0..WEEKS {
        let begins = (0..7).filter_map(|weekday| day(week, weekday)).find(|day| day.day() == 1);
        let has_room = months.last().is_none_or(|(last, _)| week - last > 2);
        months
            .extend(begins.filter(|_| has_room && week < WEEKS - 1).map(|day| (week, day.strftime("%b").to_string())));
    }
    html! {
        svg.heat width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(about) {
            @for (week, month) in &months { text x=(LEFT + week * CELL) y="10" { (month) } }
            @for (row, name) in [(0, "Mon"), (2, "Wed"), (4, "Fri")] { text x="0" y=(TOP + 10 + row * CELL) { (name) } }
            @for week in 0..WEEKS {
                @for weekday in 0..7 {
                    @if let Some(day) = day(week, weekday) {
                        @let count = count_of(day);
                        rect class=(if count == 0 { "h-0".to_owned() } else { format!("h-{} h-cell", level(count)) }) x=(LEFT + week * CELL) y=(TOP + weekday * CELL) width="12" height="12" rx="2" {
                            @if count > 0 { title { (day.strftime("%a %-d %b")) ": " (plural(count, what)) } }
                        }
                    }
                }
            }
        }
        p.heat-key aria-hidden="true" {
            span { "none" }
            svg width="68" height="12" { @for level in 0..5 { rect class={ "h-" (level) @if level > 0 { " h-cell" } } x=(level * 14) width="12" height="12" rx="2" {} } }
            span { (grouped(darkest.min(most.max(1)))) " and more" }
        }
    }
}

fn weekday(day: Date) -> i64 {
    i64::from(day.weekday().since(Weekday::Monday))
}

/// The numbers of a plot as a table.
pub fn twin(summary: &str, label: &str, head: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        details.twin {
            summary { (chevron()) (summary) }
            div.scroll-x tabindex="0" role="region" aria-label={ (label) ", table" } {
                table.grid-table {
                    thead { tr { @for name in head { th scope="col" { (name) } } } }
                    tbody {
                        @for row in rows.iter().take(TABLE_ROWS) {
                            tr {
                                @for (at, cell) in row.iter().enumerate() {
                                    @if at == 0 { th scope="row" dir="auto" { (text::brief(cell, 120)) } } @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
                @if rows.len() > TABLE_ROWS { p.meta { (plural(rows.len() - TABLE_ROWS, "row")) " more" } }
            }
        }
    }
}

/// The distance of lines that is easy to read and gives room for so much.
fn nice_step(most: u64, lines: u64) -> u64 {
    let least = most.div_ceil(lines.max(1)).max(1);
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 3, 4, 5, 6, 8] {
            let step = power.saturating_mul(factor);
            if step >= least {
                return step;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_round_steps_and_room_for_the_highest() {
        for (most, lines, step) in [(0, 3, 1), (1, 3, 1), (17_400, 3, 6_000), (149_000, 2, 80_000), (9, 3, 3)] {
            assert_eq!(nice_step(most, lines), step, "{most}");
        }
        assert!(nice_step(u64::MAX, 3) >= u64::MAX / 3);
    }

    #[test]
    fn hostile_names_are_text_in_plots_and_tables() {
        let hostile = "\"><img src=x onerror=alert(1)>";
        let column = Column { label: hostile.to_owned(), name: hostile.to_owned(), values: vec![1] };
        let series = [Series { class: "k-in", name: "input" }];
        let drawn = columns(hostile, &series, &[column], 3, false, Labels::Every(1)).0;
        let table = twin("x", hostile, &["a"], &[vec![hostile.to_owned()]]).0;
        let squares = heat(hostile, jiff::civil::date(2026, 11, 14), "message", |_| u64::MAX / 8).0;
        assert!(![drawn, table, squares].concat().contains("<img"));
    }
}
