//! Numbers, sizes and times in words for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use scrollback::model::Usage;

/// `1 file`, `2,000 files`.
pub fn plural(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let ending = match what {
        _ if count == 1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", grouped(count))
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

/// A number on a scale: `500`, `1.5k`, `20k`, `3M`.
pub fn short(count: u64) -> String {
    let in_units = |unit: f64, sign: &str| {
        let shown = format!("{:.1}", count as f64 / unit);
        format!("{}{sign}", shown.strip_suffix(".0").unwrap_or(&shown))
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => in_units(1e3, "k"),
        1_000_000..1_000_000_000 => in_units(1e6, "M"),
        _ => in_units(1e9, "G"),
    }
}

/// Money: `$0.045`, `$12.34`.
pub fn dollars(usd: f64) -> String {
    match usd {
        usd if usd > 0.0 && usd < 0.0005 => "< $0.001".to_owned(),
        usd if usd < 1.0 => format!("${usd:.3}"),
        usd => {
            let cents = (usd * 100.0).round() as u64;
            format!("${}.{:02}", grouped(cents / 100), cents % 100)
        }
    }
}

/// A share of something: `12 %`.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// A word with a capital letter.
pub fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
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

/// How long ago something was, in a sentence.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        ..-60 => "in the future".to_owned(),
        -60..1 => "just now".to_owned(),
        seconds => format!("{} ago", in_one_unit(seconds)),
    }
}

/// The same in at most six characters, for a column.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        ..-60 => "future".to_owned(),
        -60..60 => "now".to_owned(),
        seconds => in_one_unit(seconds),
    }
}

/// A time in the largest unit that fits.
fn in_one_unit(seconds: i64) -> String {
    let (count, unit) = match seconds {
        ..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        86_400..1_209_600 => (seconds / 86_400, "d"),
        1_209_600..5_184_000 => (seconds / 604_800, "w"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "mo"),
        _ => (seconds / 31_536_000, "y"),
    };
    format!("{count} {unit}")
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
        assert_eq!(
            [dollars(0.0), dollars(0.0001), dollars(0.0451), dollars(1234.567)],
            ["$0.000", "< $0.001", "$0.045", "$1,234.57"]
        );
    }

    #[test]
    fn an_age_uses_the_largest_unit_that_fits() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (at, in_a_sentence, in_a_column) in [
            ("2026-11-15T12:00:00Z", "just now", "now"),
            ("2026-11-15T11:59:30Z", "30 s ago", "now"),
            ("2026-11-15T11:01:00Z", "59 min ago", "59 min"),
            ("2026-11-14T13:00:00Z", "23 h ago", "23 h"),
            ("2026-11-10T12:00:00Z", "5 d ago", "5 d"),
            ("2026-10-15T12:00:00Z", "4 w ago", "4 w"),
            ("2026-02-15T12:00:00Z", "9 mo ago", "9 mo"),
            ("2020-02-15T12:00:00Z", "6 y ago", "6 y"),
            ("2026-11-16T12:00:00Z", "in the future", "future"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!((ago(at, now).as_str(), age(at, now).as_str()), (in_a_sentence, in_a_column), "{at}");
        }
    }
}
