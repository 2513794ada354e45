//! Times for people: "2 h ago", or a date.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How long ago, in few characters.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    let (count, unit) = match seconds {
        ..-60 => return "in the future".to_owned(),
        -60..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        86_400..1_209_600 => (seconds / 86_400, "d"),
        1_209_600..5_184_000 => (seconds / 604_800, "w"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "mo"),
        _ => (seconds / 31_536_000, "y"),
    };
    format!("{count} {unit} ago")
}

/// A day and a time, in the reader's zone.
pub(crate) fn stamp(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%-d %b %Y %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_uses_the_largest_unit_that_fits() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let age = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(age("2026-11-15T11:59:30Z"), "just now");
        assert_eq!(age("2026-11-15T11:55:00Z"), "5 min ago");
        assert_eq!(age("2026-11-14T13:00:00Z"), "23 h ago");
        assert_eq!(age("2026-11-10T12:00:00Z"), "5 d ago");
        assert_eq!(age("2026-10-15T12:00:00Z"), "4 w ago");
        assert_eq!(age("2026-02-15T12:00:00Z"), "9 mo ago");
        assert_eq!(age("2020-02-15T12:00:00Z"), "6 y ago");
        assert_eq!(age("2026-11-16T12:00:00Z"), "in the future");
    }
}
