//! What a line of Claude Code is: by its type, and for prompts and notices by a closer look.

use std::borrow::Cow;

use super::block;
use super::line::{Line, Message};
use crate::dialect::record_class::RecordClass;
use crate::model::record::Kind;

/// Lines that tell something about the session and are no part of the conversation.
///
/// `progress` has a place in the chain, but the agent also leaves such lines hanging: as links they would be false heads.
const ASIDE: &[&str] = &[
    "agent-color",
    "agent-name",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "content-replacement",
    "cost-state",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "speculation-accept",
    "tag",
    "task-summary",
    "tools-used",
    "worktree-state",
];

/// Notices, besides compactions and failures. Those without words are facts about the session.
const NOTICES: &[&str] =
    &["away_summary", "informational", "local_command", "microcompact_boundary", "stop_hook_summary", "turn_duration"];

/// An attachment that tells the task list.
pub(super) const TODO: &str = "todo";

/// An attachment of ours, which the agent passes over: the thinking mode alone.
pub(super) const THINKING_MODE: &str = "thinking_mode";

impl<'a> Line<'a> {
    /// What the line is, and its name when that is not known.
    pub(super) fn record_class(&self) -> (RecordClass, Option<Cow<'a, str>>) {
        let Some(name) = &self.name.0 else {
            let kind = match self.message.0.as_ref().and_then(|message| message.role.0.as_deref()) {
                Some("assistant") => Kind::Assistant,
                Some("user") => self.of_user(),
                _ => Kind::Other,
            };
            return (RecordClass::link(kind), None);
        };
        let class = match &**name {
            "user" => RecordClass::link(self.of_user()),
            "assistant" => {
                RecordClass { is_failure: self.is_api_error_message.0, ..RecordClass::link(Kind::Assistant) }
            }
            "attachment" if self.is_typed() => RecordClass::link(Kind::User),
            "attachment" => RecordClass::link(Kind::Attachment),
            "system" => return self.notice(),
            "summary" | "custom-title" | "ai-title" => RecordClass::side(Kind::Title),
            "file-history-snapshot" | "file-history-delta" => RecordClass::side(Kind::Snapshot),
            name if ASIDE.contains(&name) => RecordClass::side(Kind::Header),
            _ => return (RecordClass::link(Kind::Other), Some(name.clone())),
        };
        (class, None)
    }

    /// Something that waited until the model had time for it.
    pub(super) fn was_queued(&self) -> bool {
        self.attached() == Some("queued_command")
    }

    /// The task list, or the thinking mode, of the message before it.
    pub(super) fn tells_state(&self) -> bool {
        matches!(self.attached(), Some(TODO | THINKING_MODE))
    }

    /// What an attachment is.
    fn attached(&self) -> Option<&str> {
        let is_one = self.name.0.as_deref() == Some("attachment");
        self.attachment.0.as_ref().filter(|_| is_one).and_then(|attached| attached.name.0.as_deref())
    }

    /// A prompt that somebody typed while the model was at work; the agent queues notices of its own, too.
    fn is_typed(&self) -> bool {
        let mode = self.attachment.0.as_ref().and_then(|attached| attached.command_mode.0.as_deref());
        self.was_queued() && !self.is_meta.0 && matches!(mode, None | Some("prompt"))
    }

    /// The agent speaks to the model in the user's name, too.
    fn of_user(&self) -> Kind {
        let blocks = self.message.0.as_ref().map_or(&[][..], |message| &message.content.0);
        let results = blocks.iter().filter(|block| block.tool_use_id.0.is_some()).count();
        // Words beside a result are somebody's: then it is a prompt that brings results along.
        if results > 0 && results == blocks.len() {
            Kind::ToolResult
        } else if self.is_compact_summary.0 {
            Kind::Compaction
        } else if self.is_meta.0 {
            Kind::Attachment
        } else {
            Kind::User
        }
    }

    fn notice(&self) -> (RecordClass, Option<Cow<'a, str>>) {
        let says_something = self.content.0.as_ref().is_some_and(|content| !content.is_empty());
        let told = RecordClass::link(if says_something { Kind::System } else { Kind::Header });
        match self.subtype.0.as_deref() {
            Some("compact_boundary") => (RecordClass::link(Kind::Compaction), None),
            // The answer that came after all hangs on what it answers, not on the failed attempt.
            Some("api_error") => (RecordClass { is_failure: true, ..RecordClass::side(Kind::System) }, None),
            Some(name) if !NOTICES.contains(&name) => (told, Some(format!("system/{name}").into())),
            _ => (told, None),
        }
    }

    /// The API's own ids and blocks, and lines that no other agent writes.
    pub(super) fn recognizes(&self) -> bool {
        let name = self.name.0.as_deref().unwrap_or_default();
        let of_api = |message: &Message<'_>| {
            let is_ours = |kind: &str| block::is_call(kind) || kind == "tool_result" || kind == "thinking";
            let blocks = message.content.0.iter().filter_map(|block| block.name.0.as_deref());
            message.id.0.is_some() || blocks.into_iter().any(is_ours)
        };
        match name {
            "user" | "assistant" => {
                self.user_type.0.is_some() || self.request_id.0.is_some() || self.message.0.as_ref().is_some_and(of_api)
            }
            "system" => !self.subtype.0.as_deref().unwrap_or_default().is_empty(),
            "attachment" | "custom-title" | "ai-title" | "file-history-snapshot" | "file-history-delta" => true,
            name => ASIDE.contains(&name),
        }
    }
}
