//! The fields of a sage line and the events that they make. Any field may be missing or of any shape; fields that may be
//! large are not parsed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{Event, Key, Link, SessionFacts};
use crate::model::json;
use crate::model::lenient::{Amount, List, Moment, Object, RawObject, Text};
use crate::model::record::{Cost, Kind, Usage};

/// A line of any version: current, extended, with tool calls, or of the later schema.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) timestamp: Moment<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) tool_calls: List<RawObject<'a>>,
    pub(super) tokens: Object<RawObject<'a>>,
    // In the later schema.
    #[serde(rename = "sessionId")]
    pub(super) later_session_id: Text<'a>,
    pub(super) cwd: Text<'a>,
    #[serde(rename = "gitBranch")]
    pub(super) git_branch: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) metadata: Object<RawObject<'a>>,
    pub(super) usage: Object<RawObject<'a>>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) name: Text<'a>,
    // In files of other agents only.
    #[serde(rename = "type")]
    pub(super) type_name: Text<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) parts: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    pub(super) fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let (role, kind) = (self.role.clone().some(), self.kind());
        emit(Event::Record(Link {
            id: self.uuid.clone().some(),
            at: self.timestamp.only_text(),
            is_side: role.is_none(),
            ..Link::new(text, kind.unwrap_or(Kind::Other))
        }));
        match (role, kind) {
            (None, _) => emit(Event::MissingField("role")),
            (Some(role), None) => emit(Event::UnknownKind(Cow::Owned(format!("role {role}")))),
            (Some(_), Some(kind)) => {
                if self.content.is_none_or(|content| content.get() == "null") && self.tool_calls.0.is_empty() {
                    emit(Event::MissingField("content"));
                }
                if kind == Kind::ToolResult && self.tool_call_id.clone().some().is_none() {
                    emit(Event::MissingField("tool_call_id"));
                }
            }
        }
        if let Some(usage) = self.usage() {
            let cost = self.usage.0.as_ref().and_then(|tokens| tokens.get::<Amount>("estimated_cost_usd").0);
            emit(Event::Usage { request: None, usage, model: self.model(), cost: cost.and_then(Cost::recorded) });
        }
        self.emit_keys_and_facts(text, kind, emit);
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        match self.role.0.as_deref()? {
            "user" => Some(Kind::User),
            "assistant" => Some(Kind::Assistant),
            "system" => Some(Kind::System),
            "tool" => Some(Kind::ToolResult),
            _ => None,
        }
    }

    fn emit_keys_and_facts(self, text: &'a str, kind: Option<Kind>, emit: &mut dyn FnMut(Event<'a>)) {
        let (model, git_branch) = (self.model(), self.git_branch());
        for (at, call) in self.tool_calls.0.into_iter().enumerate() {
            match call.text("id") {
                Some(id) => {
                    emit(Event::Key(Key::Call(id.clone())));
                    if has_result(&call) {
                        emit(Event::Key(Key::Result(id)));
                    }
                }
                // Only the line itself can have the result of a call without an id.
                None if !has_result(&call) => emit(Event::Key(Key::Call(made_up_call_id(text, at).into()))),
                None => {}
            }
        }
        if let Some(call) = self.tool_call_id.some().filter(|_| kind == Some(Kind::ToolResult)) {
            emit(Event::Key(Key::Result(call)));
        }
        emit(Event::Facts(SessionFacts {
            session: self.session_id.some().or(self.later_session_id.some()),
            cwd: self.cwd.some(),
            git_branch,
            version: self.version.some(),
            model,
            ..SessionFacts::default()
        }));
    }

    /// The model that answered.
    pub(super) fn model(&self) -> Option<Cow<'a, str>> {
        self.model.clone().some().or_else(|| self.metadata.0.as_ref()?.text("model"))
    }

    pub(super) fn git_branch(&self) -> Option<Cow<'a, str>> {
        self.git_branch.clone().some().or_else(|| self.metadata.0.as_ref()?.text("gitBranch"))
    }

    /// The tokens of a request. `tokens.estimated` only estimates the length of a text.
    pub(super) fn usage(&self) -> Option<Usage> {
        let tokens = self.usage.0.as_ref()?;
        let count = |key: &str, other: &str| tokens.count(key).or(tokens.count(other));
        Usage {
            input: count("input_tokens", "input"),
            output: count("output_tokens", "output"),
            cache_read: count("cache_read_tokens", "cache_read_input_tokens"),
            cache_write: tokens.count("cache_creation_input_tokens"),
            reasoning: None,
        }
        .known()
    }

    /// Whether only sage writes such a line: with the id of a session, a call with its `args`, a token estimate, or an id
    /// or a time in Emacs's format.
    pub(super) fn is_recognized(&self) -> bool {
        let is_message =
            self.role.0.is_some() && self.type_name.0.is_none() && self.message.is_none() && self.parts.is_none();
        let is_call = |call: &RawObject<'_>| call.get::<Text<'_>>("name").0.is_some() && call.raw("args").is_some();
        let has_estimate = self.tokens.0.as_ref().is_some_and(|tokens| tokens.count("estimated").is_some());
        is_message
            && (self.session_id.0.is_some()
                || self.tool_calls.0.iter().any(is_call)
                || has_estimate
                || self.uuid.0.as_deref().is_some_and(is_emacs_id)
                || matches!(&self.timestamp, Moment::Text(time) if is_emacs_time(time)))
    }
}

/// Whether a call has its result. A `null`, which is Emacs's nil, is none.
pub(super) fn has_result(call: &RawObject<'_>) -> bool {
    ["result", "error", "success"].into_iter().any(|key| call.raw(key).is_some())
}

/// The id of a call that has none: always the same for this line, and different for every line.
pub(super) fn made_up_call_id(line: &str, at: usize) -> String {
    format!("call-{:016x}-{at}", xxh3_64(line.as_bytes()))
}

/// Whether a line is of the current schema: a role, a text and a time, and nothing else. Other agents write no time there,
/// or more fields.
pub(super) fn is_current(text: &str) -> bool {
    let fields = json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text).unwrap_or_default();
    let is_text = |key: &str| fields.get(key).is_some_and(|value| value.get().starts_with('"'));
    fields.len() == 3 && ["role", "content", "timestamp"].into_iter().all(is_text)
}

/// `20260111-170000-0a1b2c3d`.
fn is_emacs_id(id: &str) -> bool {
    let digits = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = id.splitn(4, '-').collect();
    matches!(parts[..], [day, time, random] if digits(day, 8) && digits(time, 6)
        && random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// `2026-01-11T17:00:00-0500`: an offset without a colon.
fn is_emacs_time(time: &str) -> bool {
    let shape: String = time.chars().take(25).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    matches!(shape.as_str(), "0000-00-00T00:00:00-0000" | "0000-00-00T00:00:00+0000")
}
