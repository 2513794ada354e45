//! Profiles: what a format's own description demands of each line, stricter than reading.

use serde::{Deserialize, Serialize};

use crate::dialect;

/// A set of rules, called as its dialect is.
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

    /// Why a line is not valid; nothing when it is.
    pub fn faults(self, line: &str) -> Vec<Fault> {
        match self {
            Profile::SageEl => dialect::sage_el_faults(line),
        }
    }
}

/// Why a line is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The field that fails; absent when the line is no JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}
