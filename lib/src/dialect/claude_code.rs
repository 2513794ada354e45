//! Claude Code: one JSON object a line, a tree by `parentUuid`, one line for each block of an answer.
//!
//! The facts, with the versions they were seen in: docs/dialects/claude-code.md.

mod block;
mod body;
mod folder;
mod line;
mod record_class;
mod write;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub(crate) use folder::whole_folder_name;
pub use folder::{documented_folder_name, folder_name};

use super::{Dialect, Event, Key, RepeatedId, ResultOrder, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::record_class::TreeRecord;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::message::Part;
use crate::model::record::{Body, Cost, Kind, TitleSource, ToolResult, Usage};
use line::{Line, Message, Meta};

/// The agent hangs an orphan on the record before it when no more time lies between them: 3.5 s were kept, 5.5 s lost.
const BRIDGES_WITHIN_MS: i64 = 5000;

/// The model of messages that the agent wrote itself: nobody answered.
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

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        let layout = |root: PathBuf, pattern| Layout {
            root,
            pattern,
            companions: &[],
            sidecar: Some("*.meta.json"),
            format: Format::Lines,
        };
        let projects = store.join("projects");
        vec![layout(projects.clone(), "*/*.jsonl"), layout(projects, "*/*/subagents/agent-*.jsonl")]
    }

    fn traits(&self) -> Traits {
        Traits {
            bridged_gap_ms: Some(BRIDGES_WITHIN_MS),
            result_order: ResultOrder::AsReceived,
            has_foreign_summaries: true,
            ..Traits::new(RepeatedId::LastWins)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let meta: Meta<'a> = serde_json::from_str(text)?;
        emit(Event::Facts(SessionFacts { parent_call: meta.tool_use_id.some(), ..SessionFacts::default() }));
        if let Some(text) = meta.description.some() {
            emit(Event::Title { text, source: TitleSource::Summary });
        }
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        serde_json::from_str(text).is_ok_and(|line: Line<'_>| line.recognizes())
    }

    fn body(&self, text: &str) -> Body {
        body::of(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }
}

impl<'a> Line<'a> {
    fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let (class, unknown) = self.record_class();
        // A compaction begins a tree of its own and names what it sums up.
        let parent = self.parent_uuid.clone().some().or_else(|| self.logical_parent_uuid.clone().some());
        let record = TreeRecord {
            text,
            id: self.uuid.clone().some(),
            parent,
            at: self.timestamp.clone(),
            is_sidechain: self.is_sidechain.0,
            has_type: self.name.0.is_some(),
        };
        class.emit(record, unknown, emit);
        if self.tells_state() {
            emit(Event::StateOnly);
        }
        self.titles_and_leaf(emit);
        self.keys_and_facts(class.kind, emit);
    }

    fn titles_and_leaf(&self, emit: &mut dyn FnMut(Event<'a>)) {
        let leaf = self.leaf_uuid.clone().some();
        match self.name.0.as_deref() {
            Some("last-prompt") if self.explicit.0 => leaf.into_iter().for_each(|leaf| emit(Event::RewindTo(leaf))),
            Some("last-prompt") => leaf.into_iter().for_each(|leaf| emit(Event::Head(leaf))),
            Some("summary") => {
                if let Some(text) = self.summary.clone().some() {
                    // A file may hold the summaries of other sessions: their leaves tell.
                    emit(match leaf {
                        Some(of) => Event::Summary { text, of },
                        None => Event::Title { text, source: TitleSource::Summary },
                    });
                }
            }
            Some("custom-title" | "ai-title") => {
                if let Some((text, source)) = self.title() {
                    emit(Event::Title { text, source });
                }
            }
            _ => {}
        }
    }

    fn title(&self) -> Option<(Cow<'a, str>, TitleSource)> {
        let (text, source) = match self.name.0.as_deref() {
            Some("custom-title") => (&self.custom_title, TitleSource::Manual),
            Some("ai-title") => (&self.ai_title, TitleSource::Automatic),
            _ => (&self.summary, TitleSource::Summary),
        };
        text.clone().some().map(|text| (text, source))
    }

    fn keys_and_facts(self, kind: Kind, emit: &mut dyn FnMut(Event<'a>)) {
        for (model, used) in
            self.model_usage.0.into_iter().flatten().filter(|_| self.name.0.as_deref() == Some("cost-state"))
        {
            if let Some(usd) = used.0.and_then(|used| used.cost_usd.0) {
                emit(Event::CostSoFar { model: Some(model), cost: Cost::from_usd(usd) });
            }
        }
        let mut model = None;
        if let (Some(message), Kind::User | Kind::Assistant | Kind::ToolResult) = (self.message.0, kind) {
            let usage = message.usage().filter(|_| kind == Kind::Assistant);
            model = message.model.some().filter(|model| model != NO_MODEL);
            let id = message.id.some().filter(|_| kind == Kind::Assistant);
            if let Some(usage) = usage {
                let request = match (&id, self.request_id.some()) {
                    (None, None) => None,
                    (id, request) => Some(format!("{} {}", id.as_deref().unwrap_or(""), request.unwrap_or_default())),
                };
                let cost = self.cost_usd.0.map(Cost::from_usd);
                emit(Event::Usage { request: request.map(Cow::Owned), usage, model: model.clone(), cost });
            }
            if let Some(id) = id {
                emit(Event::Key(Key::Group(id)));
            }
            for block in message.content.0 {
                let is_call = block.name.0.is_some_and(|name| block::is_call(&name));
                match (block.tool_use_id.some(), block.id.some()) {
                    (Some(call), _) => emit(Event::Key(Key::Result(call))),
                    (None, Some(id)) if is_call => emit(Event::Key(Key::Call(id))),
                    (None, _) => {}
                }
            }
        }
        let (told, agent) = (self.session_id.some(), self.agent_id.some());
        // A sub-agent's file names its parent on every line, and is called after the agent.
        let (session, parent_session) = if agent.is_some() { (None, told) } else { (told, None) };
        emit(Event::Facts(SessionFacts {
            session,
            cwd: self.cwd.some(),
            git_branch: self.git_branch.some(),
            version: self.version.some(),
            model,
            parent_session,
            parent_call: None,
            forked_from: self.forked_from.0.and_then(|origin| origin.session_id.some()),
        }));
    }
}

impl Message<'_> {
    /// What the request cost; the agent's own messages cost nothing.
    fn usage(&self) -> Option<Usage> {
        let tokens = self.usage.0.as_ref().filter(|_| self.model.0.as_deref() != Some(NO_MODEL))?;
        let reasoning = tokens.output_tokens_details.0.as_ref().and_then(|of_which| of_which.thinking_tokens.0);
        Some(Usage {
            input: tokens.input_tokens.0,
            output: tokens.output_tokens.0,
            cache_read: tokens.cache_read_input_tokens.0,
            cache_write: tokens.cache_creation_input_tokens.0,
            reasoning,
        })
    }
}

/// Reads content blocks of Anthropic's API, or a single one: their parts, and the tool results among them.
pub fn blocks(content: &serde_json::Value) -> (Vec<Part>, Vec<ToolResult>) {
    let Ok(raw) = serde_json::value::to_raw_value(content) else { return Default::default() };
    let (mut parts, mut results) = (Vec::new(), Vec::new());
    for read in block::all(&raw, &body::Run::default()) {
        match read {
            block::Read::Part(part) => parts.push(part),
            block::Read::Result(result) => results.push(result),
        }
    }
    (parts, results)
}
