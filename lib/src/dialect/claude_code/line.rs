//! The fields of a Claude Code line that its link needs. Any field may be missing or of any shape.

use serde::Deserialize;

use crate::model::lenient::{Count, Flag, List, Moment, Object, Text};

/// A line. What only a body needs is skipped unread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) subtype: Text<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) logical_parent_uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Moment<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) agent_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) request_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) forked_from: Object<Origin<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Object<Message<'a>>,
    #[serde(default)]
    pub(super) is_sidechain: Flag,
    #[serde(default)]
    pub(super) is_meta: Flag,
    #[serde(default)]
    pub(super) is_compact_summary: Flag,
    #[serde(default)]
    pub(super) is_api_error_message: Flag,
    #[serde(borrow, default)]
    pub(super) user_type: Text<'a>,
    // Of attachments.
    #[serde(borrow, default)]
    pub(super) attachment: Object<Attached<'a>>,
    // Of notices.
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    // Of titles and leaves.
    #[serde(borrow, default)]
    pub(super) summary: Text<'a>,
    #[serde(borrow, default)]
    pub(super) custom_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) ai_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) leaf_uuid: Text<'a>,
    #[serde(default)]
    pub(super) explicit: Flag,
}

/// Where a fork copied a line from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin<'a> {
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
}

/// What kind of thing an attachment is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) command_mode: Text<'a>,
}

/// The API's message, or one block of it.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
    #[serde(borrow, default)]
    pub(super) content: List<Block<'a>>,
}

/// What ties a content block to others.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Text<'a>,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens: Count,
    #[serde(default)]
    pub(super) cache_read_input_tokens: Count,
    #[serde(default)]
    pub(super) cache_creation_input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens_details: Object<OutputTokens>,
}

#[derive(Deserialize)]
pub(super) struct OutputTokens {
    #[serde(default)]
    pub(super) thinking_tokens: Count,
}

/// `agent-<id>.meta.json`, beside a sub-agent's file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    #[serde(borrow, default)]
    pub(super) description: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Text<'a>,
}
