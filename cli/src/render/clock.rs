//! Times for people: "2 h ago", or a date.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How long ago, in a sentence.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    match seconds_since(at, now) {
        ..-60 => "in the future".to_owned(),
        -60..60 => "just now".to_owned(),
        seconds => format!("{} ago", in_one_unit(seconds)),
    }
}

/// How old, in at most six characters for a column.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> String {
    match seconds_since(at, now) {
        ..-60 => "future".to_owned(),
        -60..60 => "now".to_owned(),
        seconds => in_one_unit(seconds),
    }
}

fn seconds_since(at: Timestamp, now: Timestamp) -> i64 {
    now.as_second() - at.as_second()
}

/// A time in the largest unit that fits.
fn in_one_unit(seconds: i64) -> String {
    let (count, unit) = match seconds {
        ..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        86_400..1_209_600 => (seconds / 86_400, "d"),
        1_209_600..5_184_000 => (seconds / 604_800, "w"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "mo"),
        _ => (seconds / 31_536_000, "y"),
    };
    format!("{count} {unit}")
}

/// A day and a time, in the reader's zone.
pub(crate) fn stamp(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%-d %b %Y %H:%M").to_string()
}

/// A duration in few characters.
pub(crate) fn span(ms: u64) -> String {
    match ms / 1000 {
        0 => "<1 s".to_owned(),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_uses_the_largest_unit_that_fits() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let told = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(super::age("2026-11-15T11:59:30Z".parse().unwrap(), now), "now");
        assert_eq!(super::age("2026-11-15T11:01:00Z".parse().unwrap(), now), "59 min");
        assert_eq!(super::age("2027-11-15T11:01:00Z".parse().unwrap(), now), "future");
        assert_eq!(told("2026-11-15T11:59:30Z"), "just now");
        assert_eq!(told("2026-11-15T11:55:00Z"), "5 min ago");
        assert_eq!(told("2026-11-14T13:00:00Z"), "23 h ago");
        assert_eq!(told("2026-11-10T12:00:00Z"), "5 d ago");
        assert_eq!(told("2026-10-15T12:00:00Z"), "4 w ago");
        assert_eq!(told("2026-02-15T12:00:00Z"), "9 mo ago");
        assert_eq!(told("2020-02-15T12:00:00Z"), "6 y ago");
        assert_eq!(told("2026-11-16T12:00:00Z"), "in the future");
    }
}
