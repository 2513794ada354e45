//! Profiles: the rules of a format's own description for each line, stricter than the reader.

use serde::{Deserialize, Serialize};

use crate::dialect;

/// A set of rules, named after its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// sage for Emacs: role, content and time of a message.
    SageEl,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 1] = [Profile::SageEl];

    /// The name that people type.
    pub fn name(self) -> &'static str {
        match self {
            Profile::SageEl => "sage-el",
        }
    }

    /// Why a line is invalid; empty if it is valid.
    pub fn faults(self, line: &str) -> Vec<Fault> {
        match self {
            Profile::SageEl => dialect::sage_el_faults(line),
        }
    }
}

/// Why a line is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The invalid field; absent if the line is not a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}
