//! Small pictures of numbers: bars, a line of days, a calendar.

use jiff::civil::{Date, Weekday};

const BARS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// A bar of at most `columns`, in eighths of a column.
pub(super) fn bar(value: u64, greatest: u64, columns: usize) -> String {
    if greatest == 0 || value == 0 {
        return String::new();
    }
    let eighths = ((value as f64 / greatest as f64) * (columns * 8) as f64).round().max(1.0) as usize;
    let (whole, rest) = (eighths / 8, eighths % 8);
    let mut bar = "█".repeat(whole.min(columns));
    if rest > 0 && whole < columns {
        bar.push(BARS[rest]);
    }
    bar
}

/// One column for each value.
pub(super) fn line(values: &[u64]) -> String {
    let greatest = values.iter().copied().max().unwrap_or(0);
    let step = |value: &u64| match (*value, greatest) {
        (0, _) | (_, 0) => ' ',
        (value, greatest) => STEPS[((value as f64 / greatest as f64) * 7.0).round() as usize % STEPS.len()],
    };
    values.iter().map(step).collect()
}

/// Every day from the first to the last, those without a value as 0.
pub(super) fn fill(days: &[(Date, u64)]) -> Vec<u64> {
    let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) else { return Vec::new() };
    let all = first.series(jiff::Span::new().days(1)).take_while(|day| day <= last);
    all.map(|day| days.iter().find(|(known, _)| *known == day).map_or(0, |(_, value)| *value)).collect()
}

/// A calendar: a column for each week, a row for each day of the week, at most `columns` weeks up to the last day.
pub(super) fn calendar(days: &[(Date, u64)], columns: usize) -> Vec<String> {
    let Some((last, _)) = days.last() else { return Vec::new() };
    let greatest = days.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let monday =
        |day: Date| day.saturating_sub(jiff::Span::new().days(i64::from(day.weekday().to_monday_zero_offset())));
    let (first, last_week) = (monday(days[0].0), monday(*last));
    let weeks = first.until(last_week).map_or(0, |span| span.get_days()) as usize / 7 + 1;
    let weeks = weeks.min(columns.max(1));
    let start = last_week.saturating_sub(jiff::Span::new().days(7 * (weeks as i64 - 1)));
    let shade = |day: Date| {
        let value = days.iter().find(|(known, _)| *known == day).map_or(0, |(_, value)| *value);
        match (value, greatest) {
            (0, _) | (_, 0) => SHADES[0],
            // A few days are far above the others: the square root shows the rest.
            (value, greatest) => SHADES[(((value as f64 / greatest as f64).sqrt() * 4.0).ceil() as usize).clamp(1, 4)],
        }
    };
    let names = [(Weekday::Monday, "Mon"), (Weekday::Wednesday, "Wed"), (Weekday::Friday, "Fri")];
    (0..7)
        .map(|row| {
            let day = |week: usize| start.saturating_add(jiff::Span::new().days((7 * week + row) as i64));
            let cells: String = (0..weeks).map(|week| if day(week) > *last { ' ' } else { shade(day(week)) }).collect();
            let name = names.iter().find(|(weekday, _)| weekday.to_monday_zero_offset() as usize == row);
            format!("{:3} {}", name.map_or("", |(_, name)| name), cells.trim_end())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let bars = [(0, 8), (8, 8), (4, 8), (1, 8), (1, 1000)].map(|(value, greatest)| bar(value, greatest, 4));
        assert_eq!(bars, ["", "████", "██", "▌", "▏"]);
    }

    #[test]
    fn a_line_and_a_calendar_have_every_day() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        let days = [(day("2026-03-02"), 10), (day("2026-03-04"), 80), (day("2026-03-10"), 40)];
        assert_eq!(fill(&days), [10, 0, 80, 0, 0, 0, 0, 0, 40]);
        assert_eq!(line(&fill(&days)), "▂ █     ▅");
        assert_eq!(
            calendar(&days, 10),
            ["Mon ▒·", "    ·▓", "Wed █", "    ·", "Fri ·", "    ·", "    ·"],
            "nothing is after the last day"
        );
        assert_eq!(calendar(&days, 1)[1], "    ▓", "only the last weeks, if there is no room");
    }
}
