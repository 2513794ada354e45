//! Instants as records state them, in microseconds since 1970.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::model::lenient::Moment;

/// An instant in microseconds: what a skeleton stores.
pub(crate) type Micros = i64;

/// A clock may be wrong by hours, not by more than a day: later instants do not count as "newest".
const FUTURE_TOLERANCE_MICROS: Micros = 24 * 3600 * 1_000_000;

/// The detail of an issue: the time of a record is not used.
pub(crate) const UNREADABLE: &str = "its time cannot be read and is ignored";
pub(crate) const FUTURE: &str = "its time is more than a day in the future and is ignored";

/// Reads a moment, if there is one; offsets such as `-0500` are valid, a time without offset is taken as UTC.
pub(crate) fn read(moment: &Moment<'_>, now: Timestamp) -> Result<Option<Micros>, &'static str> {
    let micros = match moment {
        Moment::Absent => return Ok(None),
        Moment::Millis(millis) => millis.checked_mul(1000),
        Moment::Text(text) => parse(text).map(Timestamp::as_microsecond),
    };
    match micros {
        Some(at) if at > now.as_microsecond().saturating_add(FUTURE_TOLERANCE_MICROS) => Err(FUTURE),
        Some(at) if Timestamp::from_microsecond(at).is_ok() => Ok(Some(at)),
        _ => Err(UNREADABLE),
    }
}

/// Whether a moment is written as ISO 8601, whenever it is.
pub(crate) fn is_iso_8601(moment: &Moment<'_>) -> bool {
    matches!(moment, Moment::Text(text) if parse(text).is_some())
}

/// An instant as JavaScript programs write it: three digits of a second.
pub(crate) fn millis(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn parse(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_one_instant_is_that_instant() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let at = |text: &'static str| read(&Moment::Text(text.into()), now);
        let expected = Ok(Some(1_768_168_800_000_000));
        for text in [
            "2026-01-11T22:00:00Z",
            "2026-01-11T17:00:00-0500",
            "2026-01-11T17:00:00-05:00",
            "2026-01-11T22:00:00.000000000+00:00",
            "2026-01-11T22:00:00",
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
        assert_eq!(read(&Moment::Millis(1_768_168_800_000), now), expected);
        assert_eq!(at("yesterday"), Err(UNREADABLE));
        assert_eq!(read(&Moment::Millis(i64::MAX), now), Err(UNREADABLE));
        assert_eq!(at("2026-06-02T00:00:01Z"), Err(FUTURE));
        assert_eq!(at("2026-06-01T23:00:00Z"), Ok(Some(1_780_354_800_000_000)));
    }

    #[test]
    fn an_instant_has_three_digits_whatever_it_is() {
        for (at, content) in [
            ("2026-11-15T12:00:00Z", "2026-11-15T12:00:00.000Z"),
            ("2026-11-15T12:00:00.123987Z", "2026-11-15T12:00:00.123Z"),
        ] {
            assert_eq!(millis(at.parse().unwrap()), content);
        }
    }
}
