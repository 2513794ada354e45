//! What a search is asked for and what it answers: plain structs that can be written as JSON.

use jiff::Timestamp;
use scrollback::model::{RecordId, SessionId};
use scrollback::view::SessionRow;
use scrollback::view::texts::TextRole;
use serde::Serialize;

use crate::snippet::Piece;

/// The order of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// The session that was updated last comes first.
    #[default]
    Newest,
    /// The session that was updated first comes first.
    Oldest,
    /// The session with the best match comes first.
    Relevance,
}

/// How much of an answer is wanted.
#[derive(Debug, Clone, Copy)]
pub struct SearchOptions {
    /// The order of sessions.
    pub sort: Sort,
    /// How many sessions.
    pub sessions: usize,
    /// How many matches of each.
    pub hits: usize,
    /// How many lines before and after a match; `None` is one line around it.
    pub context: Option<usize>,
}

/// A session with matches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundSession {
    /// The session.
    pub session: SessionRow,
    /// Its best matches.
    pub hits: Vec<Hit>,
    /// How many more there are.
    pub more: usize,
}

/// A part that matches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Its record.
    pub record: RecordId,
    /// The message that the record belongs to.
    pub message: RecordId,
    /// Its number in the record.
    pub part: usize,
    /// Whose text it is.
    pub role: TextRole,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The file that the record is in.
    pub path: String,
    /// The first byte of the record.
    pub offset: u64,
    /// The bytes of the record.
    pub length: u32,
    /// The text around the match.
    pub snippet: Vec<Piece>,
    /// What it is: the words of the filter `is:`.
    pub labels: Vec<&'static str>,
    /// Other sessions with a copy of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<SessionId>,
}

/// The answer to a search.
#[derive(Debug, Default)]
pub struct Answer {
    /// The sessions that match, in order.
    pub sessions: Vec<FoundSession>,
    /// How many more match.
    pub more_sessions: usize,
    /// How many bytes were read because the index did not know them.
    pub read_bytes: u64,
    /// How many bytes of long tool outputs were not searched.
    pub unsearched_bytes: u64,
    /// A word that is in none of the sessions that were asked, and a similar one that is in one.
    pub suggestion: Option<(String, String)>,
    /// Sessions that could not be read.
    pub unreadable: Vec<scrollback::Error>,
}
