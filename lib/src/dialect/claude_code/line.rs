//! The fields of a Claude Code line that its link needs. Any field may be missing or of any shape.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::lenient::{Amount, Count, Flag, List, Moment, Object, Text};

/// A line. What only a body needs is skipped unread.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) subtype: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Text<'a>,
    pub(super) logical_parent_uuid: Text<'a>,
    pub(super) timestamp: Moment<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) agent_id: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) request_id: Text<'a>,
    pub(super) forked_from: Object<Origin<'a>>,
    pub(super) message: Object<Message<'a>>,
    pub(super) is_sidechain: Flag,
    pub(super) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_api_error_message: Flag,
    pub(super) user_type: Text<'a>,
    // Of attachments.
    pub(super) attachment: Object<Attached<'a>>,
    // Of notices.
    pub(super) content: Text<'a>,
    // Of answers in old versions.
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Amount,
    // Of `cost-state`.
    pub(super) model_usage: Object<BTreeMap<Cow<'a, str>, Object<ModelUsage>>>,
    // Of titles and leaves.
    pub(super) summary: Text<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) ai_title: Text<'a>,
    pub(super) leaf_uuid: Text<'a>,
    pub(super) explicit: Flag,
}

/// Where a fork copied a line from.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Origin<'a> {
    pub(super) session_id: Text<'a>,
}

/// What kind of thing an attachment is.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Attached<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) command_mode: Text<'a>,
}

/// The API's message, or one block of it.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) id: Text<'a>,
    pub(super) role: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Tokens>,
    pub(super) content: List<Block<'a>>,
}

/// What ties a content block to others.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) tool_use_id: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) output_tokens_details: Object<OutputTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OutputTokens {
    pub(super) thinking_tokens: Count,
}

/// What all requests of a session to one model used, as `cost-state` counts it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ModelUsage {
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Amount,
}

/// `agent-<id>.meta.json`, beside a sub-agent's file.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Meta<'a> {
    pub(super) description: Text<'a>,
    pub(super) tool_use_id: Text<'a>,
}
