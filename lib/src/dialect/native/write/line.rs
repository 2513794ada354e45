//! Builds a native line: its id and place, then its content.

use serde_json::{Map, Value, json};

use super::call::{call, result};
use crate::dialect::line_builder::{Fields, Put};
use crate::dialect::native::FORMAT;
use crate::dialect::writer::{Line, Names, NewRecord, Written};
use crate::model::loss::Losses;
use crate::model::message::{Part, TextPart};
use crate::model::record::{Body, Compaction, Content, RecordId, ToolNote, Usage};

/// The usual number of fields: to grow a map costs as much as to fill it.
const USUAL_FIELDS: usize = 14;

/// A line while it is built.
pub(super) struct LineWriter<'d> {
    draft: &'d NewRecord<'d>,
    pub(super) fields: Fields,
}

impl<'d> LineWriter<'d> {
    pub(super) fn new(draft: &'d NewRecord<'d>) -> LineWriter<'d> {
        LineWriter { draft, fields: Map::with_capacity(USUAL_FIELDS) }
    }

    pub(super) fn written(self, names: Names) -> Written {
        Written { lines: vec![Line { value: self.fields.into(), names }], losses: Losses::default() }
    }

    /// Starts a line without an id, beside the parent chain, about a message.
    pub(super) fn start_side(&mut self, kind: &str, message: Option<&RecordId>) {
        self.fields.put("type", kind);
        self.fields.put_some("messageId", message.map(RecordId::as_str));
        self.fields.put("timestamp", self.draft.at.to_string());
        self.fields.put("sessionId", self.draft.session.as_str());
        self.fields.put("format", FORMAT);
    }

    /// Starts a line in the parent chain.
    pub(super) fn start(&mut self, kind: &str) {
        let (draft, version) = (self.draft, self.is_first_fragment().then_some(self.draft.version));
        let fields = &mut self.fields;
        fields.put("type", kind);
        fields.put("uuid", draft.id.as_str());
        fields.put("parentUuid", json!(draft.parent));
        fields.put("timestamp", draft.at.to_string());
        fields.put("sessionId", draft.session.as_str());
        fields.put_some("version", version);
        fields.put("format", FORMAT);
        fields.put_some("isSidechain", draft.sidechain.then_some(true));
        fields.put_some("fragment", draft.fragment.map(|fragment| json!(fragment)));
        if let (Some((session, record)), None) = (draft.forked_from, draft.parent) {
            fields.put("forkedFrom", json!({"sessionId": session, "messageUuid": record}));
        }
    }

    fn is_first_fragment(&self) -> bool {
        self.draft.fragment.is_none_or(|fragment| fragment.seq == 0)
    }

    pub(super) fn content(&mut self, kind: &str, content: &Content) {
        self.start(kind);
        let context = &content.context;
        let mut place = Map::new();
        place.put_some("cwd", context.cwd.as_deref());
        place.put_some("gitBranch", context.git_branch.as_deref());
        place.put_some("platform", context.platform.as_deref());
        place.put_some("userType", context.user_type.as_deref());
        let has_context = self.is_first_fragment() && !place.is_empty();
        self.fields.put_some("context", has_context.then_some(place));
        self.fields.put_some("model", content.model.as_deref());
        self.message(kind, &content.parts);
        let fields = &mut self.fields;
        let results: Vec<Value> = content.results.iter().map(result).collect();
        fields.put_some("toolResults", Some(results).filter(|results| !results.is_empty()));
        let note = |note: &ToolNote| json!({"toolCallId": note.call_id, "about": note.about});
        let notes: Vec<Value> = content.notes.iter().map(note).collect();
        fields.put_some("toolNotes", Some(notes).filter(|notes| !notes.is_empty()));
        fields.put_some("usage", content.usage.map(usage));
        fields.put_some("thinkingMetadata", content.thinking.as_ref().map(|thinking| json!(thinking)));
        fields.put_some("todos", content.todos.as_ref().map(|todos| json!(todos)));
        fields.put_some("sender", content.sender.as_deref());
        fields.put_some("display", content.display.as_ref().map(|display| json!(display)));
        let default_to_model = kind == "system";
        let is_stated = matches!(kind, "system" | "error" | "attachment") && content.to_model != default_to_model;
        fields.put_some("toModel", is_stated.then_some(content.to_model));
        fields.put_some("instructs", content.instructs.then_some(true));
        fields.put_some("isAttached", content.is_attached.then_some(true));
        let mut metadata = content.metadata.clone();
        metadata.put_some("error_type", content.error.as_deref());
        fields.put_some("metadata", Some(metadata).filter(|metadata| !metadata.is_empty()));
    }

    /// The text and the calls; a single reaction has a field of its own.
    fn message(&mut self, kind: &str, parts: &[Part]) {
        let reaction = match parts {
            [Part::Data(part)] if part.kind == "reaction" && part.id.is_none() && part.extra.is_empty() => {
                Some(&part.data)
            }
            _ => None,
        };
        let (calls, others): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| matches!(part, Part::Tool(_)));
        if kind != "tool_result" || !others.is_empty() {
            let role = match kind {
                "tool_result" => "tool",
                "attachment" => "user",
                kind => kind,
            };
            let mut message = Map::new();
            message.put("role", role);
            message.put("content", if reaction.is_some() { "".into() } else { message_content(&others) });
            let calls: Vec<Value> = calls.iter().filter_map(|part| call(part)).collect();
            message.put_some("toolCalls", Some(calls).filter(|calls| !calls.is_empty()));
            self.fields.put("message", message);
        }
        self.fields.put_some("reaction", reaction.cloned());
    }

    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        self.start("compaction");
        let replacement = compaction.replacement.as_ref();
        let replacement: Option<Vec<Value>> =
            replacement.map(|bodies| bodies.iter().map(|body| self.replacement(body)).collect());
        let fields = &mut self.fields;
        fields.put_some("summary", compaction.summary.as_deref());
        fields.put_some("trigger", compaction.trigger.as_deref());
        fields.put_counts([
            ("messages", compaction.messages),
            ("tokensBefore", compaction.tokens_before),
            ("tokensAfter", compaction.tokens_after),
        ]);
        fields.put_some("preserved", (!compaction.preserved.is_empty()).then(|| json!(compaction.preserved)));
        fields.put_some("preservesBetween", compaction.preserves_between.then_some(true));
        fields.put_some("preservedFirst", compaction.preserved_first.then_some(true));
        fields.put_some("keepsPrompts", compaction.keeps_prompts.then_some(true));
        fields.put_some("cuts", (!compaction.cuts).then_some(false));
        fields.put_some("replacement", replacement);
    }

    /// A message in the place of the compacted conversation: its content, without an id and a place.
    fn replacement(&self, body: &Body) -> Value {
        let mut line = LineWriter::new(self.draft);
        match body {
            Body::User(content) => line.content("user", content),
            Body::Assistant(content) => line.content("assistant", content),
            Body::ToolResult(content) => line.content("tool_result", content),
            Body::Attachment(content) => line.content("attachment", content),
            Body::System(content) => line.content("system", content),
            Body::Other(value) => return value.clone(),
            Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_) => {}
        }
        for key in ["uuid", "parentUuid", "timestamp", "sessionId", "version", "fragment", "isSidechain", "forkedFrom"]
        {
            line.fields.shift_remove(key);
        }
        line.fields.into()
    }
}

/// A plain text is a string, anything else a list of parts.
fn message_content(parts: &[&Part]) -> Value {
    match parts {
        [] => "".into(),
        [Part::Text(TextPart { text, citations: None, state: None, provider_metadata: None, extra })]
            if extra.is_empty() && !text.is_empty() =>
        {
            text.as_str().into()
        }
        parts => json!(parts),
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    let mut tokens = Map::new();
    tokens.put_counts([
        ("inputTokens", usage.input),
        ("outputTokens", usage.output),
        ("cacheReadTokens", usage.cache_read),
        ("cacheWriteTokens", usage.cache_write),
        ("reasoningTokens", usage.reasoning),
    ]);
    tokens.into()
}
