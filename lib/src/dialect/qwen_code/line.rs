//! The fields of a Qwen Code record that its link needs, and the events that they make. Any field may be missing or of
//! any shape.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::{Event, Key, Link, SessionFacts};
use crate::model::json;
use crate::model::lenient::{self, Count, Flag, List, Moment, Object, ObjectOrText, RawObject, Text};
use crate::model::record::{Kind, TitleSource, Usage};

/// A record; the fields that only a body needs are skipped.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) subtype: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Option<&'a RawValue>,
    pub(super) session_id: Text<'a>,
    pub(super) timestamp: Moment<'a>,
    pub(super) provenance: Text<'a>,
    pub(super) external_input_kind: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) agent_id: Text<'a>,
    pub(super) is_sidechain: Flag,
    /// Our own mark of what a person did at another agent's screen.
    pub(super) scrollback: Text<'a>,
    pub(super) forked_from: Object<RawObject<'a>>,
    pub(super) message: ObjectOrText<'a, Content<'a>>,
    /// Thoughts beside the message, as in the design document.
    pub(super) thoughts: Option<&'a RawValue>,
    /// The design document's name for the tokens.
    pub(super) tokens: Object<Tokens>,
    pub(super) usage_metadata: Object<Tokens>,
    pub(super) tool_call_result: Object<ToolNote<'a>>,
    pub(super) tool_calls_metadata: List<ToolNote<'a>>,
    pub(super) system_payload: Object<RawObject<'a>>,
}

impl<'a> Line<'a> {
    pub(super) fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let class = self.record_class();
        let id = self.uuid.clone().some();
        let (at, is_sidechain) = (self.timestamp.clone(), self.is_sidechain.0);
        let link = Link { id: id.clone(), at, is_sidechain, ..Link::new(text, class.kind) };
        if class.emit(link, self.parent(), emit) {
            if self.has_odd_parent() {
                emit(Event::MissingField("readable parentUuid"));
            }
            if self.lacks_message(text) {
                emit(Event::MissingField("message"));
            }
        }
        if let Some(usage) = self.usage().filter(|_| class.kind == Kind::Assistant) {
            // A fork copies answers with their ids: by the id, the request is counted once.
            emit(Event::Usage { request: id, usage, model: self.model.clone().some(), cost: None });
        }
        if let Some((text, source)) = self.title().filter(|_| class.kind == Kind::Title) {
            emit(Event::Title { text, source });
        }
        self.emit_keys(class.kind, emit);
        self.emit_facts(emit);
    }

    pub(super) fn title(&self) -> Option<(Cow<'a, str>, TitleSource)> {
        let payload = self.system_payload.0.as_ref()?;
        let source = match payload.text("titleSource").as_deref() {
            Some("auto" | "automatic") => TitleSource::Automatic,
            // Older records do not state it; a person may have typed the title.
            _ => TitleSource::Manual,
        };
        payload.text("customTitle").map(|text| (text, source))
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage_metadata.0.as_ref().or(self.tokens.0.as_ref()).map(Tokens::usage)
    }

    pub(super) fn parts(&self) -> &[Part<'a>] {
        match &self.message {
            ObjectOrText::Object(content) => &content.parts.0,
            ObjectOrText::Text(_) | ObjectOrText::Absent => &[],
        }
    }

    /// The call that the note about a tool's run names, if there is one note.
    pub(super) fn noted_call(&self) -> Option<Cow<'a, str>> {
        let notes = self.tool_call_result.0.iter().chain(&self.tool_calls_metadata.0);
        let mut calls = notes.filter_map(|note| note.call());
        calls.next().filter(|_| calls.next().is_none())
    }

    fn parent(&self) -> Option<Cow<'a, str>> {
        json::from_str::<Text<'a>>(self.parent_uuid?.get()).ok()?.some()
    }

    /// Whether it is a message with nothing in it. A notice has its text elsewhere, and a piece may have only tokens.
    fn lacks_message(&self, text: &str) -> bool {
        let is_dialogue = matches!(self.name.0.as_deref(), Some("user" | "assistant"));
        let has_more = self.system_payload.0.is_some() || self.thoughts.is_some() || self.usage().is_some();
        let is_absent = matches!(self.message, ObjectOrText::Absent) && !lenient::has_field(text, "message");
        is_dialogue && !has_more && is_absent
    }

    /// Whether its parent is neither an id nor null.
    fn has_odd_parent(&self) -> bool {
        self.parent_uuid.is_some_and(|parent| !parent.get().starts_with('"') && parent.get() != "null")
    }

    fn emit_keys(&self, kind: Kind, emit: &mut dyn FnMut(Event<'a>)) {
        let noted = self.noted_call();
        let mut is_answered = false;
        for part in self.parts() {
            if let Some(call) = part.function_call.0.as_ref().filter(|_| kind == Kind::Assistant) {
                call.call_id(None).into_iter().for_each(|call| emit(Event::Key(Key::Call(call))));
            }
            if let Some(response) = part.function_response.0.as_ref() {
                is_answered = true;
                response.call_id(noted.as_ref()).into_iter().for_each(|call| emit(Event::Key(Key::Result(call))));
            }
        }
        if let Some(call) = noted.filter(|_| kind == Kind::ToolResult && !is_answered) {
            emit(Event::Key(Key::Result(call)));
        }
    }

    fn emit_facts(self, emit: &mut dyn FnMut(Event<'a>)) {
        // A sub-agent's file has its own name and states the parent session on every line.
        let (session, parent_session) = match self.agent_id.some() {
            Some(_) => (None, self.session_id.some()),
            None => (self.session_id.some(), None),
        };
        let spawned_by = self.system_payload.0.and_then(|payload| payload.text("parentSessionId"));
        emit(Event::Facts(SessionFacts {
            session,
            cwd: self.cwd.some(),
            git_branch: self.git_branch.some(),
            version: self.version.some(),
            model: self.model.some().filter(|_| self.name.0.as_deref() == Some("assistant")),
            parent_session: parent_session.or(spawned_by),
            parent_call: None,
            forked_from: self.forked_from.0.and_then(|origin| origin.text("sessionId")),
            ..SessionFacts::default()
        }));
    }
}

impl<'a> Function<'a> {
    /// The id of the call. The API may leave it out: then the note about the run has it, else the tool's name is used.
    fn call_id(&self, noted: Option<&Cow<'a, str>>) -> Option<Cow<'a, str>> {
        self.id.clone().some().or_else(|| noted.cloned()).or_else(|| self.name.clone().some())
    }
}

/// The API's `Content`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Content<'a> {
    pub(super) role: Text<'a>,
    pub(super) parts: List<Part<'a>>,
}

/// The fields that link a part to others.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Part<'a> {
    pub(super) function_call: Object<Function<'a>>,
    pub(super) function_response: Object<Function<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Function<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
}

/// The agent's note about the run of a tool.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct ToolNote<'a> {
    pub(super) call_id: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
}

impl<'a> ToolNote<'a> {
    /// The id of the call.
    pub(super) fn call(&self) -> Option<Cow<'a, str>> {
        let own = self.call_id.clone().some().or_else(|| self.id.clone().some());
        own.or_else(|| self.name.clone().some())
    }
}

/// Tokens of one request, in the API's names and in those of the design document. A record may have both.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    prompt_token_count: Count,
    input: Count,
    candidates_token_count: Count,
    output: Count,
    cached_content_token_count: Count,
    cached: Count,
    thoughts_token_count: Count,
    thoughts: Count,
    total_token_count: Count,
    total: Count,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let sent = self.prompt_token_count.0.or(self.input.0);
        let received = self.candidates_token_count.0.or(self.output.0);
        let cached = self.cached_content_token_count.0.or(self.cached.0);
        let reasoning = self.thoughts_token_count.0.or(self.thoughts.0);
        let total = self.total_token_count.0.or(self.total.0);
        // Gemini counts thoughts in addition to the answer, every other model as a part of it: the total shows which.
        let with_thoughts = received.unwrap_or(0).saturating_add(reasoning.unwrap_or(0));
        let apart = total == Some(sent.unwrap_or(0).saturating_add(with_thoughts));
        Usage {
            input: sent.map(|sent| sent.saturating_sub(cached.unwrap_or(0))),
            output: if apart { Some(with_thoughts) } else { received },
            cache_read: cached,
            cache_write: None,
            reasoning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_always_a_part_of_the_output() {
        for (tokens, output, reasoning) in [
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":15}"#,
                5,
                Some(2),
            ),
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":17}"#,
                7,
                Some(2),
            ),
            (r#"{"input":10,"output":5,"total":15}"#, 5, None),
            (r#"{"input":1,"promptTokenCount":10,"output":5,"candidatesTokenCount":5}"#, 5, None),
            (r#"{"input":10,"output":5,"thoughts":2}"#, 5, Some(2)),
        ] {
            let usage = serde_json::from_str::<Tokens>(tokens).unwrap().usage();
            assert_eq!((usage.output, usage.reasoning), (Some(output), reasoning), "{tokens}");
        }
    }

    #[test]
    fn cached_tokens_are_not_part_of_the_input() {
        let usage = |tokens| serde_json::from_str::<Tokens>(tokens).unwrap().usage();
        let cached = usage(r#"{"promptTokenCount":10,"cachedContentTokenCount":4}"#);
        assert_eq!((cached.input, cached.cache_read), (Some(6), Some(4)));
        assert_eq!(usage(r#"{"input":3,"cached":9,"output":"many"}"#).input, Some(0));
        assert_eq!(usage("{}"), Usage::default());
    }
}
