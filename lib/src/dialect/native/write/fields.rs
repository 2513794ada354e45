//! The fields of a native line: who and where it is, then what it says.

use serde_json::{Map, Value, json};

use super::call::{call, result};
use crate::dialect::native::FORMAT;
use crate::dialect::writer::{Line, Names, NewRecord};
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Context, RecordId, ToolNote, Usage};

/// How many fields a line usually has: a map that grows by and by costs as much as all that is put into it.
const USUAL_FIELDS: usize = 14;

/// The fields of a line, in order.
pub(super) struct Fields<'d> {
    draft: &'d NewRecord<'d>,
    pub(super) map: Map<String, Value>,
}

impl<'d> Fields<'d> {
    pub(super) fn new(draft: &'d NewRecord<'d>) -> Fields<'d> {
        Fields { draft, map: Map::with_capacity(USUAL_FIELDS) }
    }

    /// A line that has no place in the chain and no name, and is about a message.
    pub(super) fn begin_aside(&mut self, kind: &str, message: Option<&RecordId>) {
        self.put("type", kind.into());
        self.some("messageId", message);
        self.put("timestamp", self.draft.at.to_string().into());
        self.put("sessionId", self.draft.session.as_str().into());
        self.put("format", FORMAT.into());
    }

    pub(super) fn begin(&mut self, kind: &str) {
        let draft = self.draft;
        self.put("type", kind.into());
        self.put("uuid", draft.id.as_str().into());
        self.put("parentUuid", json!(draft.parent));
        self.put("timestamp", draft.at.to_string().into());
        self.put("sessionId", draft.session.as_str().into());
        if self.is_first_piece() {
            self.put("version", draft.version.into());
        }
        self.put("format", FORMAT.into());
        if draft.sidechain {
            self.put("isSidechain", true.into());
        }
        if let Some(fragment) = draft.fragment {
            self.put("fragment", json!(fragment));
        }
        if let (Some((session, record)), None) = (draft.forked_from, draft.parent) {
            self.put("forkedFrom", json!({"sessionId": session, "messageUuid": record}));
        }
    }

    fn is_first_piece(&self) -> bool {
        self.draft.fragment.is_none_or(|fragment| fragment.seq == 0)
    }

    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    pub(super) fn some(&mut self, key: &str, value: Option<impl serde::Serialize>) {
        if let Some(value) = value {
            self.put(key, json!(value));
        }
    }

    pub(super) fn names(self, names: Names) -> Line {
        Line { value: self.map.into(), names }
    }

    pub(super) fn content(&mut self, kind: &str, content: &Content) {
        self.begin(kind);
        if self.is_first_piece() {
            self.context(&content.context);
        }
        self.some("model", content.model.as_deref());
        self.message(kind, &content.parts);
        if !content.results.is_empty() {
            self.put("toolResults", content.results.iter().map(result).collect());
        }
        if !content.notes.is_empty() {
            let note = |note: &ToolNote| json!({"toolCallId": note.call_id, "about": note.about});
            self.put("toolNotes", content.notes.iter().map(note).collect());
        }
        self.some("usage", content.usage.map(usage));
        self.some("thinkingMetadata", content.thinking.as_ref());
        self.some("todos", content.todos.as_ref());
        self.some("sender", content.sender.as_deref());
        let usually_told = kind == "system";
        if matches!(kind, "system" | "error" | "attachment") && content.to_model != usually_told {
            self.put("toModel", content.to_model.into());
        }
        if content.instructs {
            self.put("instructs", true.into());
        }
        let mut free = content.metadata.clone();
        if let Some(error) = &content.error {
            free.insert("error_type".to_owned(), error.as_str().into());
        }
        if !free.is_empty() {
            self.put("metadata", free.into());
        }
    }

    /// The words and the calls; a reaction has a field of its own.
    fn message(&mut self, kind: &str, parts: &[Part]) {
        let reaction = match parts {
            [Part::Data(part)] if part.kind == "reaction" && part.id.is_none() && part.extra.is_empty() => {
                Some(&part.data)
            }
            _ => None,
        };
        let (calls, words): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| matches!(part, Part::Tool(_)));
        if kind != "tool_result" || !words.is_empty() {
            let role = match kind {
                "tool_result" => "tool",
                "attachment" => "user",
                kind => kind,
            };
            let mut message = Map::new();
            message.insert("role".to_owned(), role.into());
            message.insert("content".to_owned(), if reaction.is_some() { "".into() } else { content(&words) });
            let calls: Vec<Value> = calls.iter().filter_map(|part| call(part)).collect();
            if !calls.is_empty() {
                message.insert("toolCalls".to_owned(), calls.into());
            }
            self.put("message", message.into());
        }
        self.some("reaction", reaction);
    }

    fn context(&mut self, context: &Context) {
        let mut place = Map::new();
        let told = [
            ("cwd", &context.cwd),
            ("gitBranch", &context.git_branch),
            ("platform", &context.platform),
            ("userType", &context.user_type),
        ];
        for (key, value) in told {
            if let Some(value) = value {
                place.insert(key.to_owned(), value.as_str().into());
            }
        }
        if !place.is_empty() {
            self.put("context", place.into());
        }
    }

    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        self.begin("compaction");
        self.some("summary", compaction.summary.as_deref());
        self.some("trigger", compaction.trigger.as_deref());
        self.some("tokensBefore", compaction.tokens_before);
        self.some("tokensAfter", compaction.tokens_after);
        if !compaction.preserved.is_empty() {
            self.put("preserved", json!(compaction.preserved));
        }
        if compaction.preserves_between {
            self.put("preservesBetween", true.into());
        }
        if compaction.keeps_prompts {
            self.put("keepsPrompts", true.into());
        }
        if !compaction.cuts {
            self.put("cuts", false.into());
        }
        if let Some(bodies) = &compaction.replacement {
            let replaced = bodies.iter().map(|body| self.replaced(body)).collect();
            self.put("replacement", replaced);
        }
    }

    /// A record that stands in the place of others: what it says, and nothing about it.
    fn replaced(&self, body: &Body) -> Value {
        let mut line = Fields::new(self.draft);
        match body {
            Body::User(content) => line.replacing("user", content),
            Body::Assistant(content) => line.replacing("assistant", content),
            Body::ToolResult(content) => line.replacing("tool_result", content),
            Body::Attachment(content) => line.replacing("attachment", content),
            Body::System(content) => line.replacing("system", content),
            Body::Other(value) => return value.clone(),
            Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_) => {}
        }
        line.map.into()
    }

    fn replacing(&mut self, kind: &str, content: &Content) {
        self.content(kind, content);
        for known in
            ["uuid", "parentUuid", "timestamp", "sessionId", "version", "fragment", "isSidechain", "forkedFrom"]
        {
            self.map.shift_remove(known);
        }
    }
}

/// Plain words are a string, anything else is a list of parts.
fn content(parts: &[&Part]) -> Value {
    match parts {
        [] => "".into(),
        [Part::Text(text)]
            if text.citations.is_none()
                && text.state.is_none()
                && text.provider_metadata.is_none()
                && text.extra.is_empty()
                && !text.text.is_empty() =>
        {
            text.text.as_str().into()
        }
        parts => json!(parts),
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    let mut told = Map::new();
    let counts = [
        ("inputTokens", usage.input),
        ("outputTokens", usage.output),
        ("cacheReadTokens", usage.cache_read),
        ("cacheWriteTokens", usage.cache_write),
        ("reasoningTokens", usage.reasoning),
    ];
    for (key, count) in counts {
        if let Some(count) = count {
            told.insert(key.to_owned(), count.into());
        }
    }
    told.into()
}
