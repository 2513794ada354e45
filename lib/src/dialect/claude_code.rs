//! Claude Code: one JSON object per line, a tree by `parentUuid`, one line for each block of an answer.
//!
//! The facts, with the versions they were seen in: docs/dialects/claude-code.md.

mod body;
mod folder_name;
mod line;
pub(super) mod local;
mod part;
mod record_class;
mod write;

use std::path::{Path, PathBuf};

pub(crate) use folder_name::whole_folder_name;
pub use folder_name::{documented_folder_name, folder_name};
pub use part::blocks;

use serde_json::{Map, Value};

use super::{Dialect, Event, RepeatedId, ResultOrder, ResumeCommand, SessionFacts, Traits};
use crate::dialect::file_backups;
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::RawObject;
use crate::model::record::{Body, TitleSource};
use line::Line;

/// The agent appends an orphan to the record before it if it is at most this much later: it kept 3.5 s and lost 5.5 s.
const BRIDGED_GAP_MS: i64 = 5000;

/// The model of messages that the agent wrote itself.
const NO_MODEL: &str = "<synthetic>";

/// The Claude Code dialect.
pub struct ClaudeCode;

impl Dialect for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        self.layouts_in(&home.var_or("CLAUDE_CONFIG_DIR", ".claude"))
    }

    fn store_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CONFIG_DIR")
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        ["*/*.jsonl", "*/*/subagents/agent-*.jsonl"]
            .map(|pattern| Layout {
                sidecar: Some("agent-*.meta.json"),
                ..Layout::lines(store.join("projects"), pattern)
            })
            .into()
    }

    fn file_history(&self, store: &Path, log: &Path) -> Option<PathBuf> {
        file_backups::folder(store, log)
    }

    fn file_note(&self, text: &str) -> Option<Map<String, Value>> {
        part::file_note(text)
    }

    fn traits(&self) -> Traits {
        Traits {
            bridged_gap_ms: Some(BRIDGED_GAP_MS),
            result_order: ResultOrder::AsReceived,
            has_foreign_summaries: true,
            appends_only: true,
            copies_unmarked: true,
            tells_of_keyed_calls_only: true,
            title_mark: Some("-title\""),
            ..Traits::new(RepeatedId::LastWins)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn is_typed(&self, text: &str) -> bool {
        json::from_str::<Line<'_>>(text).is_ok_and(|line| line.is_typed())
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    fn resume_command(&self) -> Option<ResumeCommand> {
        Some(ResumeCommand {
            agent: "Claude Code",
            program: "claude",
            arguments: &["--resume"],
            store_variables: &["CLAUDE_CONFIG_DIR"],
        })
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        // `agent-<id>.meta.json`, beside a sub-agent's file.
        let meta: RawObject<'a> = json::from_str(text)?;
        emit(Event::Facts(SessionFacts { parent_call: meta.text("toolUseId"), ..SessionFacts::default() }));
        if let Some(text) = meta.text("description") {
            emit(Event::Title { text, source: TitleSource::Summary });
        }
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }
}
