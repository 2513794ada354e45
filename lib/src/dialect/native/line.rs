//! The fields of a native line and the events that they make. Any field may be missing or of any shape; fields that may
//! be large are not parsed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::FORMAT;
use crate::dialect::{Event, Key, Link, SessionFacts};
use crate::model::lenient::{self, Amount, Count, Flag, List, Moment, Object, ObjectOrText, RawObject, Text};
use crate::model::record::{Cost, Kind, TitleSource, Usage};

/// A line of any kind.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) type_name: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Text<'a>,
    pub(super) timestamp: Moment<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) format: Count,
    pub(super) context: Object<Context<'a>>,
    pub(super) message: ObjectOrText<'a, Message<'a>>,
    pub(super) tool_results: List<RawObject<'a>>,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Tokens<'a>>,
    pub(super) is_sidechain: Flag,
    pub(super) fragment: Object<RawObject<'a>>,
    pub(super) metadata: Object<RawObject<'a>>,
    pub(super) forked_from: Object<RawObject<'a>>,
    // In plain messages.
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    // In titles, summaries and compactions.
    pub(super) title: Text<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) title_source: Text<'a>,
    pub(super) summary: Text<'a>,
    pub(super) trigger: Text<'a>,
    pub(super) messages: Count,
    pub(super) tokens_before: Count,
    pub(super) tokens_after: Count,
    // Needed only by the body.
    pub(super) preserved: Option<&'a RawValue>,
    pub(super) from: Text<'a>,
    pub(super) reason: Text<'a>,
    pub(super) target: Text<'a>,
    pub(super) after_target: Flag,
    pub(super) operation: Text<'a>,
    pub(super) takes_back: Text<'a>,
    pub(super) files: Option<&'a RawValue>,
    pub(super) folders: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) removed_folders: Option<&'a RawValue>,
    pub(super) message_id: Text<'a>,
    pub(super) snapshot: Option<&'a RawValue>,
    pub(super) is_snapshot_update: Flag,
    pub(super) todos: Option<&'a RawValue>,
    pub(super) thinking_metadata: Option<&'a RawValue>,
    pub(super) sender: Text<'a>,
    pub(super) display: Option<&'a RawValue>,
    pub(super) attachments: Option<&'a RawValue>,
    pub(super) reaction: Option<&'a RawValue>,
    pub(super) to_model: Option<&'a RawValue>,
    pub(super) instructs: Flag,
    pub(super) is_attached: Flag,
    pub(super) tool_notes: List<RawObject<'a>>,
    pub(super) replacement: Option<&'a RawValue>,
    pub(super) preserves_between: Flag,
    pub(super) preserved_first: Flag,
    pub(super) keeps_prompts: Flag,
    pub(super) cuts: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    pub(super) fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let class = self.record_class();
        let link = Link {
            id: self.uuid.clone().some(),
            at: self.timestamp.only_text(),
            is_sidechain: self.is_sidechain.0,
            is_numbered: self.fragment.0.is_some(),
            ..Link::new(text, class.kind)
        };
        if class.emit(link, self.parent_uuid.clone().some(), emit) && self.lacks_message(text) {
            emit(Event::MissingField("message"));
        }
        if class.kind == Kind::User && self.only_reacts() {
            emit(Event::Reaction);
        }
        if let Some(format) = self.format.0.filter(|format| *format > FORMAT) {
            emit(Event::NewerFormat(format));
        }
        if let Some(usage) = self.usage() {
            let model = self.model.clone().some().or_else(|| self.message()?.model.clone().some());
            let cost = self.usage.0.as_ref().and_then(Tokens::cost);
            emit(Event::Usage { request: None, usage, model, cost });
        }
        if let Some((text, source)) = self.title() {
            emit(Event::Title { text, source });
        }
        self.emit_keys_and_facts(emit);
    }

    pub(super) fn title(&self) -> Option<(Cow<'a, str>, TitleSource)> {
        let message = || {
            let text = lenient::text_or_json(self.message()?.content?);
            Some(Cow::Owned(text)).filter(|text: &Cow<'_, str>| !text.is_empty())
        };
        match self.type_name.0.as_deref() {
            Some("summary") => Some((self.summary.clone().some().or_else(message)?, TitleSource::Summary)),
            Some("custom_title") => {
                let text = self.title.clone().some().or_else(|| self.custom_title.clone().some()).or_else(message)?;
                let source = match self.title_source.0.as_deref() {
                    Some("automatic" | "auto") => TitleSource::Automatic,
                    _ => TitleSource::Manual,
                };
                Some((text, source))
            }
            _ => None,
        }
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let of_message = || self.message().and_then(|message| message.usage.0.as_ref());
        let tokens = self.usage.0.as_ref().or_else(of_message)?;
        Some(Usage {
            input: tokens.input_tokens.0,
            output: tokens.output_tokens.0,
            cache_read: tokens.cache_read_tokens.0,
            cache_write: tokens.cache_write_tokens.0,
            reasoning: tokens.reasoning_tokens.0,
        })
    }

    /// The message, if it is an object.
    pub(super) fn message(&self) -> Option<&Message<'a>> {
        if let ObjectOrText::Object(message) = &self.message { Some(message) } else { None }
    }

    /// Whether it is a message with nothing in it. A further line of an answer may have only its tokens.
    fn lacks_message(&self, text: &str) -> bool {
        let is_dialogue = matches!(self.type_name.0.as_deref(), Some("user" | "assistant"));
        let has_more = [self.content, self.attachments, self.reaction].iter().flatten().next().is_some()
            || !self.tool_results.0.is_empty()
            || self.fragment.0.is_some()
            || self.usage.0.is_some();
        let is_absent = matches!(self.message, ObjectOrText::Absent) && !lenient::has_field(text, "message");
        is_dialogue && !has_more && is_absent
    }

    /// Whether it is only a reaction.
    fn only_reacts(&self) -> bool {
        let is_empty = |raw: Option<&RawValue>| raw.is_none_or(|raw| matches!(raw.get(), "null" | "\"\"" | "[]"));
        let has_no_text = match &self.message {
            ObjectOrText::Absent => true,
            ObjectOrText::Object(message) => is_empty(message.content),
            ObjectOrText::Text(text) => text.is_empty(),
        };
        let reacts = self.reaction.is_some_and(|reaction| reaction.get() != "null");
        reacts && has_no_text && is_empty(self.content) && is_empty(self.attachments)
    }

    fn emit_keys_and_facts(self, emit: &mut dyn FnMut(Event<'a>)) {
        let metadata = self.metadata.0.unwrap_or_default();
        let context = self.context.0.unwrap_or_default();
        let mut model = self.model.some();
        let (mut calls, mut results) = (Vec::new(), self.tool_results.0);
        if let ObjectOrText::Object(message) = self.message {
            model = model.or(message.model.some());
            calls = message.tool_calls.0;
            results.extend(message.tool_results.0);
        }
        for id in calls.iter().filter(|call| !has_result(call)).filter_map(|call| call.text("id")) {
            emit(Event::Key(Key::Call(id)));
        }
        for result in results {
            let key = if result.flag("preliminary") { Key::PreliminaryResult } else { Key::Result };
            result.text("toolCallId").into_iter().for_each(|id| emit(Event::Key(key(id))));
        }
        emit(Event::Facts(SessionFacts {
            session: self.session_id.some(),
            cwd: context.cwd.some(),
            git_branch: context.git_branch.some(),
            platform: context.platform.some(),
            user_type: context.user_type.some(),
            version: self.version.some(),
            model,
            parent_session: metadata.text("parentSessionId"),
            parent_call: metadata.text("parentToolCallId"),
            forked_from: self.forked_from.0.and_then(|origin| origin.text("sessionId")),
        }));
    }
}

/// Whether the result of a call is stored with it.
fn has_result(call: &RawObject<'_>) -> bool {
    call.raw("about").is_some_and(|about| about.get().contains("\"state\":\"output-"))
}

/// Every line has it, so it is read without a map of its fields.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Context<'a> {
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) platform: Text<'a>,
    pub(super) user_type: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) model: Text<'a>,
    pub(super) tool_calls: List<RawObject<'a>>,
    pub(super) tool_results: List<RawObject<'a>>,
    /// Where other agents have it.
    pub(super) usage: Object<Tokens<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Tokens<'a> {
    #[serde(alias = "input_tokens")]
    pub(super) input_tokens: Count,
    #[serde(alias = "output_tokens")]
    pub(super) output_tokens: Count,
    #[serde(alias = "cache_read_input_tokens")]
    pub(super) cache_read_tokens: Count,
    #[serde(alias = "cache_creation_input_tokens")]
    pub(super) cache_write_tokens: Count,
    #[serde(alias = "reasoning_tokens")]
    pub(super) reasoning_tokens: Count,
    pub(super) cost_estimate: Amount,
    pub(super) currency: Text<'a>,
}

impl Tokens<'_> {
    /// The cost, where it is in dollars: nobody knows what another currency was worth that day.
    pub(super) fn cost(&self) -> Option<Cost> {
        let is_usd = self.currency.0.as_deref().is_none_or(|currency| currency.eq_ignore_ascii_case("usd"));
        self.cost_estimate.0.filter(|_| is_usd).and_then(Cost::recorded)
    }
}
