//! How Qwen Code's records are written: one for a message, whose parts may come in lines of their own, one for each result.
//!
//! What becomes of each body, and what is lost: docs/dialects/qwen-code.md.

mod part;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::chain::{self, Chain, Fields, Hung, Losses, fields};
use crate::dialect::claude_code::whole_folder_name;
use crate::message::Part;
use crate::record::{
    Body, Compaction, Context, Outcome, Rewind, Said, Snapshot, Title, TitleSource, ToolNote, ToolResult, Usage,
};
use crate::writing::{Adoption, Beginning, Draft, Grain, Loss, Shape, Writing, Written};
use part::Speaker;

pub(super) static WRITING: Writing = Writing {
    grain: Grain::Part,
    shape: Shape::Tree,
    tells_session: |_| true,
    place,
    header: |_| Vec::new(),
    lines,
    sidecar: None,
    adopt: Some(adopt),
    archive: None,
};

/// No file system takes a longer name, and the agent does not cut it.
const NAME_BYTES: usize = 255;

/// The agent's word for a compression that was done.
const COMPRESSED: u64 = 1;

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    let digit = |at: usize| session.as_bytes().get(at).copied().unwrap_or_default();
    let is_known = matches!(digit(14), b'1'..=b'5') && matches!(digit(19), b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    if !chain::is_uuid(session) || !is_known {
        return Err("Qwen Code opens only sessions whose id is a UUID of version 1 to 5".to_owned());
    }
    let folder = whole_folder_name(&beginning.cwd.to_string_lossy());
    if folder.len() > NAME_BYTES {
        return Err(format!("the path of the directory is longer than {NAME_BYTES} bytes: qwen records nothing there"));
    }
    Ok(Path::new("projects").join(folder).join("chats").join(format!("{session}.jsonl")))
}

fn lines(draft: &Draft<'_>) -> Written {
    let mut chain = Chain::default();
    let mut record = Record { chain: &mut chain };
    match draft.body {
        Body::User(said) => record.prompt(said, Voice::Person),
        Body::Assistant(said) | Body::System(said) if said.error.is_some() => record.failure(said, draft.body),
        Body::Assistant(said) => record.answer(said),
        Body::ToolResult(said) => record.prompt(said, Voice::MidTurn),
        Body::Attachment(said) if said.to_model => record.prompt(said, Voice::Agent),
        Body::Attachment(_) => record.losses().dropped("context"),
        Body::System(said) if said.to_model => {
            record.losses().renamed("instruction");
            record.prompt(said, Voice::Agent);
        }
        Body::System(said) => record.notice(said),
        Body::Snapshot(snapshot) => record.snapshot(snapshot),
        Body::Title(title) => record.title(title),
        Body::Compaction(compaction) => record.compaction(compaction),
        Body::Rewind(rewind) => record.rewind(rewind),
        Body::Restore(_) => record.losses().dropped("restore"),
        Body::Header(_) => record.losses().dropped("header"),
        Body::Other(_) => record.losses().dropped("unknown record"),
    }
    chain.finish(draft, hang)
}

/// In whose name something is said to the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Person,
    /// A person, while tools ran.
    MidTurn,
    Agent,
}

/// A record on its way into lines.
struct Record<'c> {
    chain: &'c mut Chain,
}

impl Record<'_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.chain.losses
    }

    /// What was said, and has no place here.
    fn leave(&mut self, said: &Said) {
        self.losses().of_said(said);
        self.losses().dropped_if(said.context.user_type.is_some(), Loss::SURROUNDINGS);
        self.losses().dropped_if(said.todos.is_some(), "todos");
        self.losses().dropped_if(said.thinking.is_some(), "thinking level");
    }

    /// What is said to the model: the results first, each a record of its own, then the words.
    fn prompt(&mut self, said: &Said, voice: Voice) {
        self.leave(said);
        self.losses()
            .dropped_if(said.usage.is_some() || said.model.is_some(), "model and usage of a prompt");
        if said.instructs {
            self.losses().renamed("instruction");
        }
        let is_of_none = |note: &ToolNote| said.results.iter().all(|result| result.call_id != note.call_id);
        self.losses().dropped_if(said.notes.iter().any(is_of_none), "notes of a run");
        for result in &said.results {
            let line = self.result(result, &said.notes);
            line.into_iter().for_each(|line| self.chain.own(line));
        }
        match self.spoken(said, voice) {
            Some(line) => self.chain.own(line),
            None => {
                let is_mute = said.parts.is_empty() && said.results.is_empty() && said.todos.is_none();
                self.losses().dropped_if(is_mute && said.thinking.is_none(), "empty message");
            }
        }
    }

    fn spoken(&mut self, said: &Said, voice: Voice) -> Option<Fields> {
        let mut parts: Vec<Value> =
            said.parts.iter().filter_map(|part| part::of(part, Speaker::User, self.losses())).collect();
        self.losses().of_sender(said, &mut parts);
        let about = match voice {
            Voice::Person => json!({"type": "user", "provenance": "real_user"}),
            Voice::MidTurn => json!({"type": "user", "subtype": "mid_turn_user_message", "provenance": "real_user"}),
            Voice::Agent => json!({"type": "user", "subtype": "notification", "provenance": "system"}),
        };
        let mut line = fields(about);
        line.insert("message".to_owned(), json!({"role": "user", "parts": parts}));
        (!parts.is_empty()).then_some(line)
    }

    fn result(&mut self, result: &ToolResult, notes: &[ToolNote]) -> Option<Fields> {
        if result.preliminary {
            self.losses().dropped("preliminary result");
            return None;
        }
        let response = part::function_response(result, self.losses());
        let mut run = fields(json!({"callId": result.call_id}));
        let noted = notes.iter().filter(|note| note.call_id == result.call_id);
        noted.for_each(|note| run.extend(note.about.clone()));
        run.extend(result.about.clone());
        let status = match &result.outcome {
            Outcome::Done => "success",
            Outcome::Failed(_) => "error",
            Outcome::Denied(_) => "cancelled",
        };
        run.insert("status".to_owned(), status.into());
        run.extend(result.duration_ms.map(|duration| ("durationMs".to_owned(), duration.into())));
        Some(fields(json!({
            "type": "tool_result",
            "provenance": "tool_result",
            "message": {"role": "user", "parts": [response]},
            "toolCallResult": run,
        })))
    }

    /// One record for each response of the model, behind it the results that its calls carry.
    fn answer(&mut self, said: &Said) {
        self.leave(said);
        self.losses().of_sender(said, &mut []);
        self.losses().dropped_if(!said.notes.is_empty(), "notes of a run");
        let mut results = said.results.clone();
        for parts in chain::responses(said) {
            let spoken = parts.iter().filter(|part| !matches!(part, Part::Steering(_)));
            let said_parts: Vec<Value> =
                spoken.filter_map(|part| part::of(part, Speaker::Model, self.losses())).collect();
            if !said_parts.is_empty() {
                let line = self.response(said, said_parts);
                self.chain.own(line);
            }
            results.extend(chain::carried(parts));
            for result in results.drain(..) {
                let line = self.result(&result, &[]);
                line.into_iter().for_each(|line| self.chain.follows(line));
            }
            for part in parts {
                let Part::Steering(steering) = part else { continue };
                self.losses().renamed("message inside another");
                let spoken = Said { parts: steering.parts.clone(), ..Said::default() };
                let line = self.spoken(&spoken, Voice::MidTurn);
                line.into_iter().for_each(|line| self.chain.follows(line));
            }
        }
        if self.chain.is_empty() && said.usage.is_some() {
            let line = self.response(said, Vec::new());
            self.chain.own(line);
        }
        for result in results {
            let line = self.result(&result, &[]);
            line.into_iter().for_each(|line| self.chain.own(line));
        }
        let says_more = !said.parts.is_empty() || said.todos.is_some() || said.thinking.is_some();
        let is_mute = self.chain.is_empty() && !says_more;
        self.losses().dropped_if(is_mute, "empty message");
    }

    fn response(&mut self, said: &Said, parts: Vec<Value>) -> Fields {
        let mut line = fields(json!({"type": "assistant", "provenance": "assistant_output"}));
        line.extend(said.model.as_deref().map(|model| ("model".to_owned(), model.into())));
        line.insert("message".to_owned(), json!({"role": "model", "parts": parts}));
        if let Some(usage) = said.usage {
            self.losses()
                .dropped_if(usage.cache_write.is_some_and(|tokens| tokens > 0), "tokens put into a cache");
            line.insert("usageMetadata".to_owned(), tokens(usage));
        }
        line
    }

    /// What went wrong, as the end of a turn.
    fn failure(&mut self, said: &Said, body: &Body) {
        self.leave(said);
        self.losses().of_sender(said, &mut []);
        self.losses().dropped_if(!said.results.is_empty() || !said.notes.is_empty(), "tool result");
        self.losses()
            .dropped_if(said.model.is_some() || said.usage.is_some(), "model and usage of a failure");
        if matches!(body, Body::Assistant(_)) {
            self.losses().renamed("answer that failed");
        }
        if said.error.as_deref() != Some("turn_result") {
            self.losses().renamed("kind of a failure");
        }
        let words = chain::words(&said.parts, self.losses());
        let error = json!({"message": words, "code": said.error});
        self.notices("turn_result", json!({"state": "error", "error": error}));
    }

    /// The agent shows what a command showed; nothing else of its own is for people.
    fn notice(&mut self, said: &Said) {
        self.leave(said);
        self.losses().of_sender(said, &mut []);
        let words = chain::words(&said.parts, self.losses());
        if words.is_empty() {
            self.losses().dropped_if(said.parts.is_empty() && said.todos.is_none(), "empty message");
            return;
        }
        let shown = json!([{"type": "info", "text": words}]);
        self.notices("slash_command", json!({"phase": "result", "rawCommand": "", "outputHistoryItems": shown}));
    }

    fn notices(&mut self, subtype: &str, payload: Value) {
        let line = json!({"type": "system", "subtype": subtype, "provenance": "system", "systemPayload": payload});
        self.chain.own(fields(line));
    }

    /// States that are not the agent's own would break its undo.
    fn snapshot(&mut self, snapshot: &Snapshot) {
        match &snapshot.states {
            states @ Value::Array(_) => self.notices("file_history_snapshot", json!({"snapshots": states})),
            _ => self.losses().dropped("snapshot"),
        }
    }

    fn title(&mut self, title: &Title) {
        let source = match title.source {
            TitleSource::Manual => "manual",
            TitleSource::Automatic => "auto",
            TitleSource::Summary => {
                self.losses().renamed("title");
                "auto"
            }
            // They say nothing that the session does not say itself.
            TitleSource::Prompt | TitleSource::Id => return self.losses().dropped("title"),
        };
        self.notices("custom_title", json!({"customTitle": title.text, "titleSource": source}));
    }

    fn rewind(&mut self, rewind: &Rewind) {
        self.losses().dropped_if(rewind.reason.is_some(), "reason of a rewind");
        self.notices("rewind", json!({}));
    }

    /// What the model sees instead stands in the record itself, whole. What it still sees of before would have to as well.
    fn compaction(&mut self, compaction: &Compaction) {
        let bodies = compaction.replacement.as_deref().filter(|bodies| !bodies.is_empty());
        let is_kept = !compaction.preserved.is_empty() || compaction.keeps_prompts;
        self.losses().dropped_if(is_kept && bodies.is_none(), "what is kept of before");
        let mut info = fields(json!({"compressionStatus": COMPRESSED}));
        for (key, tokens) in
            [("originalTokenCount", compaction.tokens_before), ("newTokenCount", compaction.tokens_after)]
        {
            info.extend(tokens.map(|tokens| (key.to_owned(), tokens.into())));
        }
        info.extend(compaction.trigger.as_deref().map(|trigger| ("triggerReason".to_owned(), trigger.into())));
        let summary = compaction.summary.as_deref().filter(|summary| !summary.is_empty());
        let history: Vec<Value> = match (bodies, summary) {
            (Some(bodies), _) => bodies.iter().flat_map(|body| self.contents(body)).collect(),
            (None, Some(summary)) => vec![json!({"role": "user", "parts": [{"text": summary}]})],
            (None, None) => Vec::new(),
        };
        let mut payload = fields(json!({"info": info}));
        if history.is_empty() {
            self.losses().dropped("cut of a compaction");
        } else {
            payload.insert("compressedHistory".to_owned(), history.into());
        }
        self.notices("chat_compression", payload.into());
    }

    /// A body of a replaced history, as the API's `Content` objects.
    fn contents(&mut self, body: &Body) -> Vec<Value> {
        let mut lines = Chain::default();
        let mut record = Record { chain: &mut lines };
        match body {
            Body::User(said) | Body::Attachment(said) | Body::ToolResult(said) => record.prompt(said, Voice::Person),
            Body::Assistant(said) => record.answer(said),
            Body::System(_)
            | Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => record.losses().dropped("piece of a replaced history"),
        }
        let (said, losses) = lines.into_fields();
        self.losses().take(losses);
        said.into_iter().filter_map(|mut line| line.shift_remove("message")).collect()
    }
}

/// The tokens of a request: what was sent includes what a cache held.
fn tokens(usage: Usage) -> Value {
    let sent = match (usage.input, usage.cache_read) {
        (None, None) => None,
        (input, cached) => Some(input.unwrap_or(0).saturating_add(cached.unwrap_or(0))),
    };
    let total = sent.unwrap_or(0).checked_add(usage.output.unwrap_or(0));
    let mut tokens = Fields::new();
    for (key, count) in [
        ("promptTokenCount", sent),
        ("candidatesTokenCount", usage.output),
        ("thoughtsTokenCount", usage.reasoning),
        ("totalTokenCount", total.filter(|_| sent.is_some() || usage.output.is_some())),
        ("cachedContentTokenCount", usage.cache_read),
    ] {
        tokens.extend(count.map(|count| (key.to_owned(), count.into())));
    }
    tokens.into()
}

/// The fields that every record has, before what it says.
fn hang(hung: &Hung<'_>, mut said: Fields) -> Value {
    let Hung { draft, id, parent } = hung;
    let mut line = fields(json!({
        "uuid": id,
        "parentUuid": parent,
        "sessionId": draft.session,
        "timestamp": chain::instant(draft.at),
    }));
    for key in ["type", "subtype", "provenance"] {
        line.extend(said.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    let own = draft.body.said().map(|said| &said.context);
    let told = |of: fn(&Context) -> Option<&String>| own.and_then(of).or(of(draft.context)).cloned();
    for (key, text) in [
        ("cwd", told(|context| context.cwd.as_ref())),
        ("version", Some(draft.version.to_owned())),
        ("gitBranch", told(|context| context.git_branch.as_ref())),
    ] {
        line.extend(text.filter(|text| !text.is_empty()).map(|text| (key.to_owned(), text.into())));
    }
    if draft.sidechain {
        line.insert("isSidechain".to_owned(), true.into());
    }
    // Two pieces of one message may say the same: a line that stands there twice counts once.
    if let Some(fragment) = draft.fragment.filter(|fragment| fragment.seq > 0) {
        line.insert("fragment".to_owned(), json!(fragment));
    }
    line.extend(said);
    line.into()
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    let Value::Object(fields) = &mut line else { return line };
    fields.insert("sessionId".to_owned(), json!(adoption.session));
    if fields.get("uuid").is_some_and(Value::is_string) {
        fields.insert("parentUuid".to_owned(), json!(adoption.parent));
        let (session, record) = adoption.from;
        fields.insert("forkedFrom".to_owned(), json!({"sessionId": session, "messageUuid": record}));
    }
    line
}
