//! What a native line looks like: docs/format.md shows one of every kind.

use std::path::PathBuf;

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::message::{Approval, Part, ToolKind, ToolPart, ToolState};
use crate::record::{Body, Compaction, Context, Outcome, RecordId, Said, TitleSource, ToolNote, ToolResult, Usage};
use crate::writing::{
    Adoption, Beginning, Draft, End, Fragment, Grain, Line, Losses, Names, Shape, Tally, Writing, Written,
};

pub(super) static WRITING: Writing = Writing {
    grain: Grain::Fragment,
    shape: Shape::Tree,
    place,
    header: |_| Vec::new(),
    lines,
    sidecar: Some(sidecar),
    adopt: Some(adopt),
    archive: None,
};

fn place(new: &Beginning<'_>) -> Result<PathBuf, String> {
    Ok(PathBuf::from("sessions").join(new.session.as_str()).join("messages.jsonl"))
}

fn lines(draft: &Draft<'_>) -> Written {
    let mut line = Fields::new(draft);
    match draft.body {
        Body::User(said) => line.said("user", said),
        Body::Assistant(said) if call_ends(&said.parts).len() > 1 => return in_pieces(draft, said),
        Body::Assistant(said) => line.said("assistant", said),
        Body::ToolResult(said) => line.said("tool_result", said),
        Body::Attachment(said) => line.said("attachment", said),
        Body::System(said) if said.error.is_some() => line.said("error", said),
        Body::System(said) => line.said("system", said),
        Body::Snapshot(snapshot) => {
            let mut line = Fields::side(draft, "file_history_snapshot");
            line.put("messageId", json!(snapshot.message));
            line.put("isSnapshotUpdate", false.into());
            line.put("snapshot", snapshot.states.clone());
            return Written { lines: vec![line.names(Names::Side)], losses: Losses::default() };
        }
        Body::Title(title) => {
            line.begin("custom_title");
            line.put("parentUuid", Value::Null);
            match title.source {
                TitleSource::Summary => {
                    line.put("type", "summary".into());
                    line.put("summary", title.text.as_str().into());
                }
                TitleSource::Automatic => {
                    line.put("title", title.text.as_str().into());
                    line.put("titleSource", "automatic".into());
                }
                TitleSource::Manual | TitleSource::Id | TitleSource::Prompt => {
                    line.put("title", title.text.as_str().into());
                    line.put("titleSource", "manual".into());
                }
            }
            return Written { lines: vec![line.names(Names::Aside(draft.id.clone()))], losses: Losses::default() };
        }
        Body::Compaction(compaction) => line.compaction(compaction),
        Body::Rewind(rewind) => {
            line.begin("rewind");
            line.some("from", rewind.from.as_ref().map(RecordId::as_str));
            line.some("reason", rewind.reason.as_deref());
        }
        Body::Restore(restore) => {
            line.begin("restore");
            line.some("target", restore.target.as_ref().map(RecordId::as_str));
            line.put("files", restore.files.clone());
            line.some("todos", restore.todos.as_ref());
        }
        Body::Header(_) => return Written::nothing("header"),
        Body::Other(_) => return Written::nothing("unknown record"),
    }
    Written::link(draft.id, line.map.into())
}

/// Where the calls end and words follow: a line has its calls behind its words, so that each such run is a line of its own.
fn call_ends(parts: &[Part]) -> Vec<usize> {
    let is_call = |at: &usize| matches!(parts.get(*at), Some(Part::Tool(_)));
    (1..=parts.len()).filter(|at| *at == parts.len() || (is_call(&(at - 1)) && !is_call(at))).collect()
}

/// One record as several lines, which the reader joins.
fn in_pieces(draft: &Draft<'_>, said: &Said) -> Written {
    let mut written = Written::default();
    let first = draft.fragment.unwrap_or(Fragment { seq: 0, part: 0 });
    let mut from = 0;
    for (piece, to) in call_ends(&said.parts).into_iter().enumerate() {
        let fragment = Fragment { seq: first.seq + piece as u64, part: first.part + from as u64 };
        let parts = said.parts[from..to].to_vec();
        let piece = if piece == 0 { Said { parts, ..said.clone() } } else { Said::from(parts) };
        let draft = Draft { fragment: Some(fragment), body: &Body::Assistant(piece), ..*draft };
        written.lines.extend(lines(&draft).lines);
        from = to;
    }
    let ids: Vec<&str> = said
        .parts
        .iter()
        .filter_map(|part| if let Part::Tool(call) = part { Some(&*call.call_id) } else { None })
        .collect();
    let distinct: HashSet<&str> = ids.iter().copied().collect();
    if distinct.len() < ids.len() {
        // The reader takes a call that comes again for the first one, finished.
        return written.without("id of a call");
    }
    written
}

/// The fields of a line, in order.
struct Fields<'d> {
    draft: &'d Draft<'d>,
    map: Map<String, Value>,
}

impl<'d> Fields<'d> {
    fn new(draft: &'d Draft<'d>) -> Fields<'d> {
        Fields { draft, map: Map::new() }
    }

    /// A line that has no place in the chain and no name.
    fn side(draft: &'d Draft<'d>, kind: &str) -> Fields<'d> {
        let mut line = Fields::new(draft);
        line.put("type", kind.into());
        line.put("timestamp", draft.at.to_string().into());
        line.put("sessionId", draft.session.as_str().into());
        line.put("format", FORMAT.into());
        line
    }

    fn begin(&mut self, kind: &str) {
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

    fn put(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    fn some(&mut self, key: &str, value: Option<impl serde::Serialize>) {
        if let Some(value) = value {
            self.put(key, json!(value));
        }
    }

    fn names(self, names: Names) -> Line {
        Line { value: self.map.into(), names }
    }

    fn said(&mut self, kind: &str, said: &Said) {
        self.begin(kind);
        if self.is_first_piece() {
            self.context(&said.context);
        }
        self.some("model", said.model.as_deref());
        self.message(kind, &said.parts);
        if !said.results.is_empty() {
            self.put("toolResults", said.results.iter().map(result).collect());
        }
        if !said.notes.is_empty() {
            let note = |note: &ToolNote| json!({"toolCallId": note.call_id, "about": note.about});
            self.put("toolNotes", said.notes.iter().map(note).collect());
        }
        self.some("usage", said.usage.map(usage));
        self.some("thinkingMetadata", said.thinking.as_ref());
        self.some("todos", said.todos.as_ref());
        self.some("sender", said.sender.as_deref());
        let usually_told = kind == "system";
        if matches!(kind, "system" | "error" | "attachment") && said.to_model != usually_told {
            self.put("toModel", said.to_model.into());
        }
        if said.instructs {
            self.put("instructs", true.into());
        }
        let mut free = said.metadata.clone();
        if let Some(error) = &said.error {
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

    fn compaction(&mut self, compaction: &Compaction) {
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
            Body::User(said) => line.replacing("user", said),
            Body::Assistant(said) => line.replacing("assistant", said),
            Body::ToolResult(said) => line.replacing("tool_result", said),
            Body::Attachment(said) => line.replacing("attachment", said),
            Body::System(said) => line.replacing("system", said),
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

    fn replacing(&mut self, kind: &str, said: &Said) {
        self.said(kind, said);
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

fn call(part: &Part) -> Option<Value> {
    let Part::Tool(call) = part else { return None };
    let ToolPart { name, call_id, state, .. } = &**call;
    let mut told = Map::new();
    told.insert("id".to_owned(), call_id.as_str().into());
    told.insert("name".to_owned(), name.as_str().into());
    match call.input() {
        Some(input) => _ = told.insert("arguments".to_owned(), input.clone()),
        None if call.is_open() => _ = told.insert("arguments".to_owned(), Value::Null),
        None => {}
    }
    if let ToolState::InputStreaming { .. } = state {
        told.insert("partial".to_owned(), true.into());
    }
    if let Some(asked) = call.approval() {
        told.insert("approval".to_owned(), approval(asked));
    }
    if let Ok(Value::Object(mut about)) = serde_json::to_value(part) {
        let stated: &[&str] = if call.is_open() { &ToolPart::STATED } else { &ToolPart::NAMED };
        about.retain(|key, _| !stated.contains(&key.as_str()));
        if call.kind == ToolKind::Static {
            about.insert("static".to_owned(), true.into());
        }
        if !about.is_empty() {
            told.insert("about".to_owned(), about.into());
        }
    }
    Some(told.into())
}

fn approval(asked: &Approval) -> Value {
    let mut told = Map::new();
    told.insert("id".to_owned(), asked.id.as_str().into());
    if let Some(approved) = asked.approved {
        told.insert("approved".to_owned(), approved.into());
    }
    if let Some(reason) = &asked.reason {
        told.insert("reason".to_owned(), reason.as_str().into());
    }
    told.into()
}

fn result(result: &ToolResult) -> Value {
    let mut told = Map::new();
    told.insert("toolCallId".to_owned(), result.call_id.as_str().into());
    if let Some(name) = &result.name {
        told.insert("toolName".to_owned(), name.as_str().into());
    }
    told.insert("content".to_owned(), result.output.clone());
    let (success, error, denied) = match &result.outcome {
        Outcome::Done => (true, Value::Null, false),
        Outcome::Failed(why) => (false, why.as_str().into(), false),
        Outcome::Denied(why) => (false, json!(why), true),
    };
    told.insert("success".to_owned(), success.into());
    told.insert("error".to_owned(), error);
    if denied {
        told.insert("denied".to_owned(), true.into());
    }
    if result.preliminary {
        told.insert("preliminary".to_owned(), true.into());
    }
    if let Some(duration) = result.duration_ms {
        told.insert("durationMs".to_owned(), duration.into());
    }
    if !result.about.is_empty() {
        told.insert("about".to_owned(), result.about.clone().into());
    }
    told.into()
}

fn usage(usage: Usage) -> Value {
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

/// metadata.json, in the keys that Sage ships.
fn sidecar(before: Option<Value>, tally: &Tally) -> Value {
    let mut told = if let Some(Value::Object(before)) = before { before } else { Map::new() };
    let mut put = |key: &str, value: Value| {
        if value.is_null() {
            told.shift_remove(key)
        } else {
            told.insert(key.to_owned(), value)
        };
    };
    put("id", tally.session.as_str().into());
    put("customTitle", json!(tally.title));
    put("firstPrompt", json!(tally.prompts.as_ref().map(|(first, _)| first)));
    put("lastPrompt", json!(tally.prompts.as_ref().map(|(_, last)| last)));
    put("createdAt", json!(tally.started));
    put("updatedAt", json!(tally.updated));
    put("workingDirectory", tally.cwd.as_str().into());
    put("gitBranch", json!(tally.git_branch));
    put("model", json!(tally.model));
    put("version", tally.version.as_str().into());
    put("messageCount", tally.messages.into());
    put("sizeBytes", tally.size_bytes.into());
    let state = match tally.end {
        End::Failed if !tally.is_open => "failed",
        End::Closed if !tally.is_open => "completed",
        End::Closed | End::BrokenOff | End::Failed => "active",
    };
    put("state", state.into());
    put("tokenUsage", tally.usage.map_or(Value::Null, usage));
    put("forkedFrom", json!(tally.forked_from));
    told.into()
}

fn adopt(mut line: Value, by: &Adoption<'_>) -> Value {
    if let Value::Object(fields) = &mut line {
        fields.insert("sessionId".to_owned(), by.session.as_str().into());
        if fields.contains_key("uuid") {
            fields.insert("parentUuid".to_owned(), json!(by.parent));
        }
        let (session, record) = by.from;
        fields.insert("forkedFrom".to_owned(), json!({"sessionId": session, "messageUuid": record}));
    }
    line
}
