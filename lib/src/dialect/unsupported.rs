//! Agents that are known and cannot be read yet: where their sessions are, so that a list can say how many it leaves out.

use super::layout::{Format, Layout, Rows};
use crate::model::home::Home;

/// An agent whose sessions cannot be read yet.
pub(crate) struct UnsupportedAgent {
    /// Its name as its makers write it.
    pub(crate) name: &'static str,
    root: Root,
    pattern: &'static str,
    format: Format,
}

/// The folder with its sessions: below the home directory, or below that of programs' data.
enum Root {
    Home(&'static str),
    Data(&'static str),
}

/// Every such agent. An agent that becomes a dialect leaves this table.
pub(crate) const UNSUPPORTED: [UnsupportedAgent; 5] = [
    UnsupportedAgent::files("Gemini CLI", ".gemini/tmp", "*/chats/session-*.json*"),
    UnsupportedAgent::files("pi", ".pi/agent/sessions", "--*--/*.jsonl"),
    UnsupportedAgent {
        name: "OpenCode",
        root: Root::Data("opencode"),
        pattern: "opencode.db",
        format: Format::Rows(&OPENCODE),
    },
    UnsupportedAgent::files("Copilot CLI", ".copilot/session-state", "*/events.jsonl"),
    UnsupportedAgent::files("Cline", ".cline/data/sessions", "*/*.messages.json"),
];

/// Sub-agents' sessions have a parent.
static OPENCODE: Rows = Rows {
    table: "session",
    columns: &["id", "parent_id", "directory"],
    sessions: "SELECT id, id FROM session WHERE parent_id IS NULL",
    rows: "SELECT rowid, title FROM session WHERE id = ?1",
    row: "SELECT title FROM session WHERE rowid = ?1",
    lists: &[],
    log: None,
    records: &[],
};

impl UnsupportedAgent {
    const fn files(name: &'static str, root: &'static str, pattern: &'static str) -> UnsupportedAgent {
        UnsupportedAgent { name, root: Root::Home(root), pattern, format: Format::Lines }
    }

    /// Where its sessions are in a home.
    pub(crate) fn layout(&self, home: &Home) -> Layout {
        let root = match self.root {
            Root::Home(below) => home.dir.join(below),
            Root::Data(below) => home.var_or("XDG_DATA_HOME", ".local/share").join(below),
        };
        Layout { format: self.format, ..Layout::lines(root, self.pattern) }
    }
}
