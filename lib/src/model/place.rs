//! Where a record's JSON is in the files of its session.

use serde::{Deserialize, Serialize};

/// Where a record's JSON is. Rows of a table are read as if they were the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// The line, counted from 1; 0 when it is not known.
    pub line: u32,
    /// Which file of the source.
    pub file: u16,
}

impl Place {
    /// Whether another place is inside this one.
    pub(crate) fn holds(self, other: Place) -> bool {
        let end = |place: Place| place.offset + u64::from(place.length);
        self.file == other.file && self.offset <= other.offset && end(other) <= end(self)
    }

    /// The id of a record without one.
    pub(crate) fn name(self) -> String {
        match self.file {
            0 => format!("at-{}", self.offset),
            file => format!("at-{file}-{}", self.offset),
        }
    }
}
