//! What is known of one session without its text: what a list shows, and what a list of all sessions needs beside that.

use std::path::Path;

use crate::checked::{with_sum, without_sum};
use jiff::Timestamp;
use postcard::ser_flavors::Flavor as _;
use scrollback::model::project::Projects;
use scrollback::model::{NamedRequests, RecordId, SessionId, TitleSource, Usage};
use scrollback::session::State;
use scrollback::view::{SessionRow, listing};
use serde::{Deserialize, Serialize};

/// How much of a session is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What the two ends of its file show.
    Ends = 0,
    /// All that a list shows.
    Whole = 2,
    /// Its words too; of a long tool output only the beginning.
    Text = 3,
    /// Every word.
    Everything = 4,
}

impl From<listing::Depth> for Depth {
    fn from(depth: listing::Depth) -> Depth {
        match depth {
            listing::Depth::Ends => Depth::Ends,
            listing::Depth::Whole => Depth::Whole,
        }
    }
}

impl Depth {
    pub(crate) fn from_number(number: i64) -> Option<Depth> {
        let all = [Depth::Ends, Depth::Whole, Depth::Text, Depth::Everything];
        all.into_iter().find(|depth| *depth as i64 == number)
    }
}

/// A description of a session that can be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    row: Box<SessionRow>,
}

impl Card {
    /// Keeps a description.
    pub fn new(row: &SessionRow) -> Card {
        Card { row: Box::new(row.clone()) }
    }

    /// Whose it is.
    pub(crate) fn session(&self) -> &SessionId {
        &self.row.id
    }

    /// Where it was recorded.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.row.cwd.as_deref()
    }

    /// When its newest record was written.
    pub(crate) fn updated(&self) -> Option<Timestamp> {
        self.row.updated
    }

    /// The session that it was forked from.
    pub(crate) fn origin(&self) -> Option<&SessionId> {
        self.row.forked_from.as_ref()
    }

    /// The card as it is stored, and its requests apart: a list of thousands of sessions has a hundred thousand of them.
    pub(crate) fn to_bytes(&self) -> postcard::Result<(Vec<u8>, Vec<u8>)> {
        let mut card = postcard::Serializer { output: postcard::ser_flavors::StdVec::new() };
        StoredRow::serialize(&self.row, &mut card)?;
        let requests = self.row.named_requests.as_bytes().to_vec();
        Ok((with_sum(card.output.finalize()?), with_sum(requests)))
    }

    /// The card that was stored, without its requests; `None` if it is damaged.
    pub(crate) fn from_bytes(card: &[u8]) -> Option<Card> {
        let row = StoredRow::deserialize(&mut postcard::Deserializer::from_bytes(without_sum(card)?)).ok()?;
        Some(Card { row: Box::new(row) })
    }

    /// The requests that were stored; `None` if they are damaged.
    pub(crate) fn requests_from_bytes(requests: &[u8]) -> Option<NamedRequests> {
        NamedRequests::from_bytes(without_sum(requests)?.to_vec())
    }

    /// Whether it says of a session what its files say. The project of a directory depends on what is on disk.
    pub(crate) fn is_of(&self, row: &SessionRow) -> bool {
        let project = if row.cwd.is_some() { &self.row.project } else { &row.project };
        let (project, base_is_missing) = (project.clone(), self.row.base_is_missing);
        let expected = SessionRow { project, base_is_missing, named_requests: NamedRequests::default(), ..row.clone() };
        *self.row == expected
    }

    /// The description, as a list makes it now: the project of a directory depends on what is on disk.
    pub fn into_row(self, projects: &Projects) -> Box<SessionRow> {
        let Card { mut row } = self;
        if let Some(cwd) = &row.cwd {
            row.project = Some(projects.of(Path::new(cwd)).to_string_lossy().into_owned());
        }
        row
    }
}

/// [`SessionRow`] as it is stored: with what its JSON leaves out, and without names. JSON takes seven times as long to read, and a list
/// reads every card.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SessionRow")]
struct StoredRow {
    id: SessionId,
    dialect: String,
    project: Option<String>,
    path: String,
    title: String,
    title_source: TitleSource,
    first_prompt: Option<String>,
    #[serde(with = "instant")]
    started: Option<Timestamp>,
    #[serde(with = "instant")]
    updated: Option<Timestamp>,
    message_count: Option<usize>,
    record_count: Option<usize>,
    size_bytes: u64,
    state: Option<State>,
    stopped: bool,
    head: Option<RecordId>,
    branch_count: Option<usize>,
    models: Vec<String>,
    #[serde(with = "tokens")]
    usage: Option<Usage>,
    #[serde(with = "tokens")]
    copied_usage: Option<Usage>,
    #[serde(with = "tokens")]
    branch_usage: Option<Usage>,
    git_branch: Option<String>,
    platform: Option<String>,
    user_type: Option<String>,
    agent_version: Option<String>,
    parent_session: Option<SessionId>,
    parent_call: Option<String>,
    forked_from: Option<SessionId>,
    kept: bool,
    issue_count: Option<u64>,
    cwd: Option<String>,
    summaries: Vec<(String, String)>,
    #[serde(skip)]
    named_requests: NamedRequests,
    #[serde(skip)]
    base_is_missing: bool,
}

/// An instant in nanoseconds.
mod instant {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        at.map(Timestamp::as_nanosecond).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let nanoseconds = Option::<i128>::deserialize(from)?;
        nanoseconds.map(Timestamp::from_nanosecond).transpose().map_err(serde::de::Error::custom)
    }
}

/// Tokens, those that are not known too.
mod tokens {
    use scrollback::model::Usage;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(usage: &Option<Usage>, to: S) -> Result<S::Ok, S::Error> {
        let tokens = |Usage { input, output, cache_read, cache_write, reasoning }: Usage| {
            [input, output, cache_read, cache_write, reasoning]
        };
        usage.map(tokens).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Usage>, D::Error> {
        let tokens = Option::<[Option<u64>; 5]>::deserialize(from)?;
        let usage = |[input, output, cache_read, cache_write, reasoning]: [Option<u64>; 5]| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        };
        Ok(tokens.map(usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_back_and_a_damaged_one_is_none() {
        let row: SessionRow = serde_json::from_value(serde_json::json!({
            "id": "s1", "dialect": "native", "path": "/p", "title": "Tides", "titleSource": "prompt", "sizeBytes": 3,
            "started": "2026-11-03T09:00:00.123456789Z", "state": "clean", "stopped": true, "usage": {"output": 7}, "kept": true,
        }))
        .unwrap();
        let usage = Usage { input: Some(3), ..Usage::default() };
        let (cwd, summaries) = (Some("/w".to_owned()), vec![("r1".to_owned(), "High water".to_owned())]);
        let row = SessionRow { named_requests: [(7, usage)].into_iter().collect(), cwd, summaries, ..row };
        let card = Card::new(&row);
        let (bytes, requests) = card.to_bytes().unwrap();
        assert_eq!(Card::requests_from_bytes(&requests).as_ref(), Some(&row.named_requests));
        assert_eq!(Card::requests_from_bytes(&requests[1..]), None);
        let without = Card::new(&SessionRow { named_requests: NamedRequests::default(), ..row.clone() });
        assert_eq!(Card::from_bytes(&bytes), Some(without));
        assert_eq!(Card::from_bytes(&bytes[1..]), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(Card::from_bytes(&damaged), None);
        }
    }
}
