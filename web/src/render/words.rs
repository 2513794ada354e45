//! Numbers, sizes and times in words for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use scrollback::model::Usage;

/// `1 file`, `2 files`.
pub fn plural(count: usize, what: &str) -> String {
    let ending = match what {
        _ if count == 1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", grouped(count as u64))
}

/// `12,345`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Tokens: `942`, `4,765`, `39.2k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..10_000 => grouped(count),
        10_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// What a request sends in all.
pub fn input_with_cache(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write];
    parts.iter().any(Option::is_some).then(|| parts.into_iter().flatten().fold(0, u64::saturating_add))
}

/// How long something took: `30 ms`, `9.4 s`, `1 min 24 s`.
pub fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// How long ago something was.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    let (count, unit) = match seconds {
        ..-60 => return "in the future".to_owned(),
        -60..1 => return "just now".to_owned(),
        1..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        86_400..1_209_600 => (seconds / 86_400, "d"),
        1_209_600..5_184_000 => (seconds / 604_800, "w"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "months"),
        _ => (seconds / 31_536_000, "years"),
    };
    format!("{count} {unit} ago")
}

/// An instant: `3 Nov 2026, 09:15`.
pub fn day_and_time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%-d %b %Y, %H:%M").to_string()
}

/// A day: `3 November 2026`.
pub fn day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%-d %B %Y").to_string()
}

/// A time of the day, with seconds, as an element.
pub fn clock(at: Timestamp, zone: &TimeZone) -> Markup {
    let shown = at.to_zoned(zone.clone());
    html! {
        time datetime=(at.to_string()) title=(shown.strftime("%A, %-d %B %Y, %H:%M:%S")) { (shown.strftime("%H:%M:%S")) }
    }
}

/// The tokens that are known, each with its name.
pub fn usage_facts(usage: &Usage) -> Vec<String> {
    let thinking = usage.reasoning.filter(|count| *count > 0);
    let thinking = thinking.map(|count| format!(", {} of them thinking", tokens(count))).unwrap_or_default();
    let facts = [
        usage.input.map(|count| format!("{} in", tokens(count))),
        usage.output.map(|count| format!("{} out{thinking}", tokens(count))),
        usage.cache_read.filter(|count| *count > 0).map(|count| format!("{} cached", tokens(count))),
        usage.cache_write.filter(|count| *count > 0).map(|count| format!("{} written", tokens(count))),
    ];
    facts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_while_they_are_small() {
        assert_eq!([grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([tokens(942), tokens(4_765), tokens(39_160), tokens(1_240_000)], ["942", "4,765", "39.2k", "1.2M"]);
        assert_eq!(
            [took(30), took(9_400), took(84_000), took(7_260_000)],
            ["30 ms", "9.4 s", "1 min 24 s", "2 h 1 min"]
        );
        assert_eq!(
            [plural(1, "branch"), plural(2, "branch"), plural(1_000, "file")],
            ["1 branch", "2 branches", "1,000 files"]
        );
    }
}
