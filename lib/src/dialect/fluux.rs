//! Fluux Agent: one folder per JID, `<memory path>/<jid>/history.jsonl`, and older sessions in `<jid>/sessions/`.
//!
//! A flat log of chat messages: a header, then the messages of people and of the agent; a reaction is a message, too.
//! The facts, with the versions they were seen in: docs/dialects/fluux.md.

mod body;
mod jid;
mod line;
pub mod room;
mod write;

use std::path::Path;

use super::{Dialect, Event, RepeatedId, Traits};
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::record::Body;
pub use jid::bare_jid;
use line::Line;

/// The newest version of the format that is known.
const VERSION: u64 = 1;

/// The file of the current session, and the folder of the sessions before it.
const HISTORY: &str = "history.jsonl";
const ARCHIVES: &str = "sessions";

/// Fluux Agent's dialect.
pub struct Fluux;

impl Dialect for Fluux {
    fn name(&self) -> &'static str {
        "fluux"
    }

    /// The configuration names the folder; the default is below the directory that the agent was started in.
    fn layouts(&self, home: &Home) -> Vec<Layout> {
        home.cwd_up_to_git_root().flat_map(|dir| self.layouts_in(&dir.join("data/memory"))).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        // `knowledge.jsonl` beside them, profiles and notes are not sessions.
        ["*/history.jsonl", "*/sessions/*.jsonl"].map(|pattern| Layout::lines(store, pattern)).into()
    }

    fn traits(&self) -> Traits {
        Traits::new(RepeatedId::Distinct)
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    /// The session id is the JID of the folder, for an older session followed by the name of its file. The headers of all
    /// sessions of a JID are the same.
    fn peer_from_path(&self, path: &Path) -> Option<String> {
        let name = self.session_id_from_path(path)?;
        let jid = name.split(':').next().filter(|jid| jid.contains('@'))?;
        Some(jid.to_owned())
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent()?;
        if path.ends_with(HISTORY) {
            return Some(folder.file_name()?.to_string_lossy().into_owned());
        }
        let jid = folder.parent()?.file_name()?.to_string_lossy();
        // A bare JID has no colon outside of brackets, so no two files have the same id.
        folder.ends_with(ARCHIVES).then(|| Some(format!("{jid}:{}", path.file_stem()?.to_string_lossy())))?
    }
}
