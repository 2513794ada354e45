//! What is known of one session without its text: what a list shows, and what a list of all sessions needs beside that.

use std::path::Path;

use scrollback::model::Usage;
use scrollback::model::project::Projects;
use scrollback::redact::Redactor;
use scrollback::view::SessionRow;
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<(u64, Usage)>,
}

impl Card {
    /// Takes a description apart.
    pub fn new(row: &SessionRow) -> Card {
        let SessionRow { cwd, summaries, named_requests, .. } = row.clone();
        Card { row: row.clone(), cwd, summaries, requests: named_requests }
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
