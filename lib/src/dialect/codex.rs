//! Codex: one JSONL file per session, `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session id>.jsonl`.
//!
//! `response_item` lines are the conversation; `event_msg` lines repeat it for its interface and are side records.
//! The facts, with the versions they were seen in: docs/dialects/codex.md.

mod body;
mod context;
mod file_name;
mod line;
mod part;
mod record_class;
mod tool_output;
mod write;

use std::path::Path;

pub use file_name::RolloutFileName;

use super::{Dialect, Event, RepeatedId, ResultOrder, Traits};
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::record::Body;

/// The Codex dialect.
pub struct Codex;

impl Dialect for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        self.layouts_in(&home.var_or("CODEX_HOME", ".codex"))
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
            ..Traits::new(RepeatedId::Distinct)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        line::link(text, emit)
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        RolloutFileName::parse(path.file_name()?.to_str()?).map(|name| name.session.to_owned())
    }

    fn is_at_or_after(&self, id: &str, mark: &str) -> bool {
        match (ordinal_from_id(id), ordinal_from_id(mark)) {
            (Some(id), Some(mark)) => id >= mark,
            _ => id == mark,
        }
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
