//! What is known of one session without its text: what a list shows, and what a list of all sessions needs beside that.

use std::path::Path;

use scrollback::model::Usage;
use scrollback::model::project::Projects;
use scrollback::redact::Redactor;
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
    row: SessionRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<(String, String)>,
    /// Stored on its own: a list of thousands of sessions has a hundred thousand of them.
    #[serde(skip)]
    requests: Vec<(u64, Usage)>,
}

impl Card {
    /// Takes a description apart.
    pub fn new(row: &SessionRow) -> Card {
        let mut row = row.clone();
        let (cwd, summaries, requests) =
            (row.cwd.take(), std::mem::take(&mut row.summaries), std::mem::take(&mut row.named_requests));
        Card { row, cwd, summaries, requests }
    }

    /// The card as it is stored: what a list shows as JSON, and the requests in bytes.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<(Vec<u8>, Vec<u8>)> {
        let mut requests = Vec::new();
        for (name, usage) in &self.requests {
            requests.extend_from_slice(&name.to_le_bytes());
            let Usage { input, output, cache_read, cache_write, reasoning } = *usage;
            for count in [input, output, cache_read, cache_write, reasoning] {
                // 0 is unknown.
                push_number(count.map_or(0, |count| count.saturating_add(1)), &mut requests);
            }
        }
        Ok((serde_json::to_vec(self)?, requests))
    }

    /// The card that was stored; `None` if it is damaged.
    pub(crate) fn from_bytes(card: &[u8], mut requests: &[u8]) -> Option<Card> {
        let mut card: Card = serde_json::from_slice(card).ok()?;
        while let Some((name, rest)) = requests.split_first_chunk() {
            requests = rest;
            let mut count = || Some(take_number(&mut requests)?.checked_sub(1));
            let [input, output, cache_read, cache_write, reasoning] =
                [count()?, count()?, count()?, count()?, count()?];
            let usage = Usage { input, output, cache_read, cache_write, reasoning };
            card.requests.push((u64::from_le_bytes(*name), usage));
        }
        requests.is_empty().then_some(card)
    }

    /// The description, as a list makes it now: the project of a directory depends on what is on disk.
    pub fn into_row(self, projects: &Projects, mask: Option<&Redactor>) -> SessionRow {
        let Card { mut row, cwd, summaries, requests } = self;
        if let Some(cwd) = &cwd {
            let project = projects.of(Path::new(cwd)).to_string_lossy().into_owned();
            row.project = Some(mask.map_or_else(|| project.clone(), |mask| mask.text(&project).text.into_owned()));
        }
        (row.cwd, row.summaries, row.named_requests) = (cwd, summaries, requests);
        row
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn push_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_back_and_a_damaged_one_is_none() {
        let row: SessionRow = serde_json::from_value(serde_json::json!({
            "id": "s1", "dialect": "native", "path": "/p", "title": "Tides", "titleSource": "prompt", "sizeBytes": 3,
        }))
        .unwrap();
        let usage = Usage { input: Some(0), output: Some(u64::MAX - 1), cache_read: Some(127), ..Usage::default() };
        let row = SessionRow { named_requests: vec![(7, usage), (u64::MAX, Usage::default())], ..row };
        let (card, requests) = Card::new(&row).to_bytes().unwrap();
        assert_eq!(Card::from_bytes(&card, &requests), Some(Card::new(&row)));
        for end in 1..requests.len() {
            let is_whole = Card::from_bytes(&card, &requests[..end]).is_some();
            assert!(!is_whole || end == requests.len() - 13, "{end}");
        }
        assert_eq!(Card::from_bytes(&card[1..], &requests), None);
    }
}
