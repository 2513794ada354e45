//! The class of a Claude Code line: by its type, and for prompts and notices by other fields.

use std::borrow::Cow;

use super::line::{Line, Message};
use super::{local, part};
use crate::dialect::local::Mark;
use crate::dialect::record_class::{RecordClass, TypeName};
use crate::model::lenient;
use crate::model::record::{Display, Kind};

/// Types of lines about the session, beside the conversation.
///
/// `progress` has a place in the chain, but some such lines have no successor: as links they would be false heads.
const SIDE_TYPES: &[&str] = &[
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

/// Subtypes of notices, besides compactions and failures. Those without a text are facts about the session.
const NOTICES: &[&str] =
    &["away_summary", "informational", "local_command", "microcompact_boundary", "stop_hook_summary", "turn_duration"];

/// Attachments with what the model was shown once, which no start of the agent repeats: what a prompt mentions, what a
/// compaction shows again, what hooks said, and instructions of a folder that it came to.
const SHOWN: &[&str] = &[
    "already_read_file",
    "compact_file_reference",
    "directory",
    "edited_text_file",
    "file",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_success",
    "invoked_skills",
    "mcp_resource",
    "nested_memory",
    "pdf_reference",
    "selected_lines_in_ide",
];

/// Who is the author, or what the mode is, of the end of a task in the background.
const NOTIFICATION: &str = "task-notification";

/// How the agent tells the model what a hook said that lets it go on.
const STOP_FEEDBACK: &str = "Stop hook feedback:\n";

/// An attachment with the task list.
pub(super) const TODO: &str = "todo";

/// An attachment that scrollback writes and the agent ignores: only the thinking mode.
pub(super) const THINKING_MODE: &str = "thinking_mode";

impl<'a> Line<'a> {
    pub(super) fn record_class(&self) -> RecordClass<'a> {
        let Some(name) = &self.name.0 else {
            return match self.message.0.as_ref().and_then(|message| message.role.0.as_deref()) {
                Some("assistant") => RecordClass::untyped(Kind::Assistant),
                Some("user") => RecordClass { type_name: TypeName::Missing, ..self.user_class() },
                _ => RecordClass::untyped(Kind::Other),
            };
        };
        match &**name {
            "user" => self.user_class(),
            "assistant" => {
                RecordClass { is_failure: self.is_api_error_message.0, ..RecordClass::link(Kind::Assistant) }
            }
            "attachment" if self.is_queued_notification() => RecordClass::link(Kind::System),
            "attachment" if self.is_queued_prompt() => RecordClass::link(Kind::User),
            "attachment" => RecordClass::link(Kind::Attachment),
            "system" => self.notice_class(),
            "summary" | "custom-title" | "ai-title" => RecordClass::side(Kind::Title),
            "file-history-snapshot" | "file-history-delta" => RecordClass::side(Kind::Snapshot),
            name if SIDE_TYPES.contains(&name) => RecordClass::side(Kind::Header),
            _ => RecordClass::link(Kind::Other).unknown(Some(name.clone())),
        }
    }

    /// Whether it waited in the queue while the model worked.
    pub(super) fn was_queued(&self) -> bool {
        self.attachment_type() == Some("queued_command")
    }

    /// Whether it is only the task list or the thinking mode of the message before it.
    pub(super) fn is_state_only(&self) -> bool {
        matches!(self.attachment_type(), Some(TODO | THINKING_MODE))
    }

    /// Whether it shows the model something that is sent again.
    pub(super) fn is_shown_again(&self) -> bool {
        self.attachment_type().is_some_and(|name| SHOWN.contains(&name))
    }

    pub(super) fn is_attachment(&self) -> bool {
        self.name.0.as_deref() == Some("attachment")
    }

    /// The type of an attachment.
    fn attachment_type(&self) -> Option<&str> {
        self.attachment.0.as_ref().filter(|_| self.is_attachment())?.name.0.as_deref()
    }

    /// Whether a person typed it while the model worked; the agent queues its own notices, too.
    fn is_queued_prompt(&self) -> bool {
        let mode = self.attachment.0.as_ref().and_then(|attachment| attachment.command_mode.0.as_deref());
        self.was_queued() && !self.is_meta.0 && matches!(mode, None | Some("prompt"))
    }

    /// Whether the agent told the model about the end of a task while it worked.
    pub(super) fn is_queued_notification(&self) -> bool {
        let attachment = self.attachment.0.as_ref().filter(|_| self.was_queued());
        let origin = attachment.and_then(|attachment| attachment.origin.0.as_ref()).and_then(|of| of.text("kind"));
        let mode = attachment.and_then(|attachment| attachment.command_mode.0.as_deref());
        !self.is_meta.0 && (origin.as_deref() == Some(NOTIFICATION) || mode == Some(NOTIFICATION))
    }

    /// The class of a message in the role `user`; the agent uses that role, too.
    fn user_class(&self) -> RecordClass<'a> {
        let blocks = self.message.0.as_ref().map_or(&[][..], |message| message.content.list());
        let results = blocks.iter().filter(|block| block.tool_use_id.0.is_some()).count();
        // A text beside a result is a person's: then it is a prompt with results.
        if results > 0 && results == blocks.len() {
            RecordClass::link(Kind::ToolResult)
        } else if self.is_compact_summary.0 {
            RecordClass::link(Kind::Compaction)
        } else if self.is_meta.0 && !self.is_stop_feedback() {
            RecordClass::link(Kind::Attachment)
        } else {
            match self.display() {
                Some(Display::Interrupted) => RecordClass { is_failure: true, ..RecordClass::link(Kind::System) },
                Some(_) if !self.is_prompt_command() => RecordClass::link(Kind::System),
                _ => RecordClass::link(Kind::User),
            }
        }
    }

    /// How people see what the agent wrote in the user's name. What a person typed is a text, whatever tags are in it.
    pub(super) fn display(&self) -> Option<Display> {
        match self.name.0.as_deref() {
            Some("system") if self.is_local_command() => local::display(self.content.0.as_deref()?),
            Some("user") if self.is_stop_feedback() => {
                Some(Display::Notification { text: self.message_text()?.to_owned() })
            }
            Some("user") | None if !self.is_typed() => match self.scrollback.0.as_deref().and_then(Mark::parse) {
                Some(mark) => Some(mark.display(&self.user_text()?)),
                None => local::display(&self.user_text()?),
            },
            _ => None,
        }
    }

    /// Whether it is a command of the agent that a person ran, or its output.
    fn is_local_command(&self) -> bool {
        self.subtype.0.as_deref() == Some("local_command")
    }

    /// Whether the agent sends the notice to the model.
    pub(super) fn is_sent_notice(&self) -> bool {
        self.name.0.as_deref() != Some("system") || (self.is_local_command() && !self.is_display_only.0)
    }

    /// Whether it is what a hook said when the model had ended its answer: the model answers it as a prompt.
    fn is_stop_feedback(&self) -> bool {
        self.is_meta.0 && self.message_text().is_some_and(|text| text.starts_with(STOP_FEEDBACK))
    }

    /// The only text of a message.
    fn message_text(&self) -> Option<&str> {
        self.message.0.as_ref()?.content.text()
    }

    fn is_prompt_command(&self) -> bool {
        self.user_text().is_some_and(|text| local::is_prompt(&text))
    }

    /// Whether the line says that a person typed this text; older versions do not say. A command that stands for a prompt is a
    /// person's, too, but the agent wrote its text.
    pub(super) fn is_typed(&self) -> bool {
        let origin = self.origin.0.as_ref().and_then(|origin| origin.text("kind"));
        let is_from_a_person = origin.is_some_and(|kind| kind == "human");
        is_from_a_person && (self.prompt_source.0.is_some() || !self.is_prompt_command())
    }

    /// The only text of a message, if it begins as those do that the agent writes itself.
    fn user_text(&self) -> Option<Cow<'_, str>> {
        let content = &self.message.0.as_ref()?.content;
        let text = match content.list() {
            [block] => Cow::Owned(block.text.filter(|text| text.get().starts_with("\"[")).and_then(lenient::parsed)?),
            _ => Cow::Borrowed(content.text()?),
        };
        Some(text).filter(|text| text.trim_start().starts_with(['<', '[']))
    }

    fn notice_class(&self) -> RecordClass<'a> {
        let has_text = self.content.0.as_ref().is_some_and(|content| !content.is_empty());
        let class = RecordClass::link(if has_text { Kind::System } else { Kind::Header });
        match self.subtype.0.as_deref() {
            Some("compact_boundary") => RecordClass::link(Kind::Compaction),
            // The parent of the answer that follows is the prompt, not the failed attempt.
            Some("api_error") => RecordClass { is_failure: true, ..RecordClass::side(Kind::System) },
            Some(name) if !NOTICES.contains(&name) => class.unknown(Some(format!("system/{name}"))),
            _ => class,
        }
    }

    /// Whether it has the API's own ids and blocks, or a type that only this agent writes.
    pub(super) fn is_recognized(&self) -> bool {
        let name = self.name.0.as_deref().unwrap_or_default();
        let is_of_api = |message: &Message<'_>| {
            let is_api_block = |kind: &str| part::is_call(kind) || kind == "tool_result" || kind == "thinking";
            let blocks = message.content.list().iter().filter_map(|block| block.name.0.as_deref());
            message.id.0.is_some() || blocks.into_iter().any(is_api_block)
        };
        match name {
            "user" | "assistant" => {
                self.user_type.0.is_some()
                    || self.request_id.0.is_some()
                    || self.message.0.as_ref().is_some_and(is_of_api)
            }
            "system" => !self.subtype.0.as_deref().unwrap_or_default().is_empty(),
            "attachment" | "custom-title" | "ai-title" | "file-history-snapshot" | "file-history-delta" => true,
            name => SIDE_TYPES.contains(&name),
        }
    }
}
