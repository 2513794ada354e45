//! Times for people: "2 h ago", or a date.

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use scrollback_web::render::words::{age, ago};

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
