//! The fields of a message, and of an object with messages, that a link needs.

use std::borrow::Cow;

use hashbrown::HashSet;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::Moment;
use super::moment;
use crate::model::json;
use crate::model::lenient::{Count, List, Object, RawObject, Text};
use crate::model::record::Usage;

/// An object that may contain messages, or be a row of the `agents` table.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Document<'a> {
    pub(super) id: Text<'a>,
    pub(super) title: Text<'a>,
    messages: Option<&'a RawValue>,
    role: Text<'a>,
    #[serde(deserialize_with = "even_null")]
    prompt: Option<&'a RawValue>,
    #[serde(deserialize_with = "even_null")]
    status: Option<&'a RawValue>,
    #[serde(deserialize_with = "even_null")]
    model: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

impl<'a> Document<'a> {
    /// Whether only the SDK, or the program with the table, writes such objects. A list of parts may be empty, or contain
    /// anything.
    pub(super) fn is_recognized(&self) -> bool {
        let has_list = self.parts.is_some_and(|parts| parts.get().starts_with('['));
        let is_text = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get().starts_with('"'));
        (self.is_row() && is_text(self.status) && is_text(self.model)) || (has_list && self.role.0.is_some())
    }

    pub(super) fn messages(&self) -> Option<Vec<&'a RawValue>> {
        let messages = self.messages.filter(|_| self.role.0.is_none())?;
        json::from_str(messages.get()).ok()
    }

    /// Any column of a row may be null, or have another type than it should.
    pub(super) fn is_row(&self) -> bool {
        let is_text = |raw: &RawValue| raw.get().starts_with('"') || raw.get() == "null";
        self.role.0.is_none() && self.status.is_some() && self.model.is_some() && self.prompt.is_some_and(is_text)
    }
}

/// A field that is present, even as null.
fn even_null<'de: 'a, 'a, D: serde::Deserializer<'de>>(field: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

/// A message of any major version.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    pub(super) id: Text<'a>,
    pub(super) role: Text<'a>,
    pub(super) metadata: Object<Metadata<'a>>,
    pub(super) parts: List<PartLine<'a>>,
    content: Text<'a>,
    created_at: Moment<'a>,
    tool_invocations: List<Invocation<'a>>,
    #[serde(rename = "experimental_attachments")]
    attachments: List<RawObject<'a>>,
    // In SDK 3, as OpenAI's API writes them.
    #[serde(rename = "tool_calls")]
    api_calls: List<RawObject<'a>>,
    #[serde(rename = "function_call")]
    function_call: Object<RawObject<'a>>,
    #[serde(rename = "tool_call_id")]
    tool_call_id: Text<'a>,
    name: Text<'a>,
}

/// The id of a call that has none: a message has at most one such call, and its result names the function.
pub(super) fn id_of_function(name: &str) -> String {
    format!("function-{name}")
}

/// What applications record about a message, in the SDK's names and in ours.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Metadata<'a> {
    pub(super) model: Text<'a>,
    created_at: Moment<'a>,
    timestamp: Moment<'a>,
    total_usage: Object<Tokens>,
    usage: Object<Tokens>,
    // In our messages only.
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) sender: Text<'a>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    cached_input_tokens: Count,
    reasoning_tokens: Count,
    input: Count,
    output: Count,
    cache_read: Count,
    cache_write: Count,
    reasoning: Count,
}

/// The fields of a part that a link needs.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct PartLine<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    state: Text<'a>,
    tool_call_id: Text<'a>,
    tool_invocation: Object<Invocation<'a>>,
    data: Object<RawObject<'a>>,
}

/// A tool call of SDK 3 and 4.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Invocation<'a> {
    state: Text<'a>,
    tool_call_id: Text<'a>,
}

impl<'a> Line<'a> {
    /// SDK 3 and 4 always put the text into `content`.
    pub(super) fn is_legacy(&self) -> bool {
        self.content.0.is_some() || !self.api_calls.0.is_empty() || self.function_call.0.is_some()
    }

    /// The call that a message of SDK 3 answers.
    pub(super) fn answered(&self) -> Option<Cow<'a, str>> {
        let named = || Some(Cow::Owned(id_of_function(self.name.0.as_deref()?)));
        self.tool_call_id.clone().some().or_else(named)
    }

    /// Whether our own writer wrote it for a compaction: a single part that names the message itself.
    pub(super) fn is_compaction(&self) -> bool {
        let [part] = self.parts.0.as_slice() else { return false };
        let named = part.data.0.as_ref().and_then(|data| data.text("record"));
        part.kind.0.as_deref() == Some("data-compaction") && named.is_some() && named == self.id.0
    }

    /// Whether only the SDK writes such objects.
    pub(super) fn is_recognized(&self) -> bool {
        let has_parts = !self.parts.0.is_empty() && self.parts.0.iter().all(|part| part.kind.0.is_some());
        let of_legacy = !self.tool_invocations.0.is_empty()
            || !self.attachments.0.is_empty()
            || (self.is_legacy() && self.id.0.is_some() && !matches!(self.created_at, Moment::Absent));
        self.role.0.is_some() && (has_parts || of_legacy)
    }

    pub(super) fn at(&self) -> Moment<'a> {
        let of_metadata = || self.metadata.0.as_ref().map_or(Moment::Absent, Metadata::at);
        if matches!(self.created_at, Moment::Absent) { of_metadata() } else { moment(&self.created_at) }
    }

    /// The calls without a result.
    pub(super) fn open_calls(self) -> impl Iterator<Item = Cow<'a, str>> {
        let of_parts = self.parts.0.into_iter().filter_map(|part| match part.tool_invocation.0 {
            Some(invocation) => Some((invocation.state, invocation.tool_call_id)),
            None if part.kind.0.is_some_and(|kind| kind == "dynamic-tool" || kind.starts_with("tool-")) => {
                Some((part.state, part.tool_call_id))
            }
            None => None,
        });
        let mut calls: Vec<(Text<'a>, Text<'a>)> = of_parts.collect();
        // The list beside the parts repeats them.
        let mut known: HashSet<Option<Cow<'a, str>>> = calls.iter().map(|(_, id)| id.0.clone()).collect();
        for invocation in self.tool_invocations.0 {
            if known.insert(invocation.tool_call_id.0.clone()) {
                calls.push((invocation.state, invocation.tool_call_id));
            }
        }
        let of_api = self.api_calls.0.into_iter().filter_map(|call| call.text("id"));
        let function = self.function_call.0.and_then(|call| call.text("name"));
        let of_api = of_api.chain(function.map(|name| Cow::Owned(id_of_function(&name))));
        let open = calls.into_iter().filter_map(|(state, call)| {
            let open = matches!(
                state.0.as_deref()?,
                "input-streaming"
                    | "input-available"
                    | "approval-requested"
                    | "approval-responded"
                    | "call"
                    | "partial-call"
            );
            call.some().filter(|_| open)
        });
        open.chain(of_api)
    }
}

impl Metadata<'_> {
    pub(super) fn at(&self) -> Moment<'static> {
        let mut moments = [&self.created_at, &self.timestamp].into_iter();
        moments.find(|at| !matches!(at, Moment::Absent)).map_or(Moment::Absent, moment)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let tokens = self.total_usage.0.as_ref().or(self.usage.0.as_ref())?;
        // The SDK includes cached tokens in the input.
        let cached = tokens.cached_input_tokens.0;
        let sent = tokens.input_tokens.0.map(|sent| sent.saturating_sub(cached.unwrap_or(0)));
        Usage {
            input: sent.or(tokens.input.0),
            output: tokens.output_tokens.0.or(tokens.output.0),
            cache_read: cached.or(tokens.cache_read.0),
            cache_write: tokens.cache_write.0,
            reasoning: tokens.reasoning_tokens.0.or(tokens.reasoning.0),
        }
        .known()
    }
}
