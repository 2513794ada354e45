//! What is known of one session without its text: what a list shows, and what a list of all sessions needs beside that.

use std::path::Path;

use scrollback::model::project::Projects;
use scrollback::model::{NamedRequests, SessionId};
use scrollback::view::{SessionRow, listing};
use serde::{Deserialize, Serialize};

/// How much of a session is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What the two ends of its file show.
    Ends = 0,
    /// The title too, if it is further from the end.
    Windows = 1,
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
            listing::Depth::Windows => Depth::Windows,
            listing::Depth::Whole => Depth::Whole,
        }
    }
}

impl Depth {
    pub(crate) fn from_number(number: i64) -> Option<Depth> {
        let all = [Depth::Ends, Depth::Windows, Depth::Whole, Depth::Text, Depth::Everything];
        all.into_iter().find(|depth| *depth as i64 == number)
    }
}

/// A description of a session that can be stored: with what [`SessionRow`] does not write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    row: Box<SessionRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<(String, String)>,
    /// Stored on its own: a list of thousands of sessions has a hundred thousand of them.
    #[serde(skip)]
    requests: NamedRequests,
}

impl Card {
    /// Takes a description apart.
    pub fn new(row: &SessionRow) -> Card {
        let mut row = Box::new(row.clone());
        let (cwd, summaries, requests) =
            (row.cwd.take(), std::mem::take(&mut row.summaries), std::mem::take(&mut row.named_requests));
        Card { row, cwd, summaries, requests }
    }

    /// Whose it is.
    pub(crate) fn session(&self) -> &SessionId {
        &self.row.id
    }

    /// The card as it is stored: what a list shows as JSON, and the requests in bytes.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<(Vec<u8>, &[u8])> {
        Ok((serde_json::to_vec(self)?, self.requests.as_bytes()))
    }

    /// The card that was stored; `None` if it is damaged.
    pub(crate) fn from_bytes(card: &[u8], requests: Vec<u8>) -> Option<Card> {
        let card: Card = serde_json::from_slice(card).ok()?;
        Some(Card { requests: NamedRequests::from_bytes(requests)?, ..card })
    }

    /// The description, as a list makes it now: the project of a directory depends on what is on disk.
    pub fn into_row(self, projects: &Projects) -> Box<SessionRow> {
        let Card { mut row, cwd, summaries, requests } = self;
        if let Some(cwd) = &cwd {
            row.project = Some(projects.of(Path::new(cwd)).to_string_lossy().into_owned());
        }
        (row.cwd, row.summaries, row.named_requests) = (cwd, summaries, requests);
        row
    }
}

#[cfg(test)]
mod tests {
    use scrollback::model::Usage;

    use super::*;

    #[test]
    fn a_card_is_read_back_and_a_damaged_one_is_none() {
        let row: SessionRow = serde_json::from_value(serde_json::json!({
            "id": "s1", "dialect": "native", "path": "/p", "title": "Tides", "titleSource": "prompt", "sizeBytes": 3,
        }))
        .unwrap();
        let usage = Usage { input: Some(3), ..Usage::default() };
        let row = SessionRow { named_requests: [(7, usage)].into_iter().collect(), ..row };
        let card = Card::new(&row);
        let (json, requests) = card.to_bytes().unwrap();
        assert_eq!(Card::from_bytes(&json, requests.to_vec()), Some(card.clone()));
        assert_eq!(Card::from_bytes(&json, requests[1..].to_vec()), None);
        assert_eq!(Card::from_bytes(&json[1..], requests.to_vec()), None);
    }
}
