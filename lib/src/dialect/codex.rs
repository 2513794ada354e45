//! Codex: one JSONL file per session, `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session id>.jsonl`, and a
//! further one, `…-<session id>_<segment id>.jsonl`, each time a person goes back in the conversation.
//!
//! `response_item` lines are the conversation; `event_msg` lines repeat it for its interface and are side records.
//! The facts, with the versions they were seen in: docs/dialects/codex.md.

mod body;
mod context;
mod file_name;
mod line;
pub(super) mod local;
mod part;
mod record_class;
mod tool_output;
mod write;

use std::path::{Path, PathBuf};

pub use file_name::RolloutFileName;

use super::{Dialect, Event, IndexTitle, RepeatedId, ResultOrder, ResumeCommand, Traits};
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::RawObject;
use crate::model::record::{Body, ToolResult};

/// The Codex dialect.
pub struct Codex;

impl Dialect for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        self.layouts_in(&home.var_or("CODEX_HOME", ".codex"))
    }

    fn store_variable(&self) -> Option<&'static str> {
        Some("CODEX_HOME")
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        [
            ("sessions", "*/*/*/rollout-*.jsonl*"),
            ("sessions", "rollout-*.jsonl*"),
            ("archived_sessions", "rollout-*.jsonl*"),
            ("archived_sessions", "*/*/*/rollout-*.jsonl*"),
        ]
        .map(|(folder, pattern)| Layout::lines(store.join(folder), pattern))
        .into()
    }

    fn traits(&self) -> Traits {
        Traits {
            result_order: ResultOrder::AsReceived,
            title_mark: Some("thread_name_updated"),
            appends_only: true,
            tells_of_keyed_calls_only: true,
            forks_by_reference: true,
            passes_over_empty: true,
            ..Traits::new(RepeatedId::Distinct)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        line::link(text, emit)
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn late_result(&self, text: &str) -> Option<ToolResult> {
        tool_output::late_result(text)
    }

    fn is_typed(&self, text: &str) -> bool {
        line::is_typed(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    fn resume_command(&self) -> Option<ResumeCommand> {
        Some(ResumeCommand {
            agent: "Codex",
            program: "codex",
            arguments: &["resume"],
            store_variables: &["CODEX_HOME"],
        })
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        RolloutFileName::parse(path.file_name()?.to_str()?).map(|name| name.session.to_owned())
    }

    fn segment_from_path(&self, path: &Path) -> Option<String> {
        RolloutFileName::parse(path.file_name()?.to_str()?)?.segment.map(str::to_owned)
    }

    fn title_index(&self, root: &Path) -> Option<PathBuf> {
        Some(root.parent()?.join("session_index.jsonl"))
    }

    fn title_from_index(&self, line: &str) -> Option<IndexTitle> {
        let line: RawObject<'_> = json::from_str(line).ok()?;
        let at = line.text("updated_at").and_then(|at| at.parse().ok());
        Some(IndexTitle { session: line.string("id")?, text: line.string("thread_name")?, at })
    }

    fn is_at_or_after(&self, id: &str, mark: &str) -> bool {
        match (ordinal_from_id(id), ordinal_from_id(mark)) {
            (Some(id), Some(mark)) => id >= mark,
            _ => id == mark,
        }
    }

    fn id_before(&self, id: &str, records: u64) -> Option<String> {
        ordinal_from_id(id)?.checked_sub(records).filter(|ordinal| *ordinal > 0).map(id_from_ordinal)
    }
}

/// The id of the line with this ordinal. A fork's ordinals continue its parent's, and so do its ids.
fn id_from_ordinal(ordinal: u64) -> String {
    format!("ord-{ordinal}")
}

fn ordinal_from_id(id: &str) -> Option<u64> {
    let digits = id.strip_prefix("ord-")?;
    digits.split('~').next()?.parse().ok()
}
