//! The class of a Codex line: the types of lines, of items and of events.

use std::borrow::Cow;

use super::line::Line;

/// The `type` of a line.
#[derive(Clone)]
pub(super) enum LineType<'a> {
    Meta,
    /// Facts about a turn or its environment.
    Context,
    Item,
    Event,
    Usage,
    Compacted,
    /// A line without the envelope, in the oldest files.
    Bare(Bare),
    Untyped,
    Unknown(Cow<'a, str>),
}

#[derive(Clone, Copy)]
pub(super) enum Bare {
    Meta,
    Item,
    State,
}

impl<'a> LineType<'a> {
    pub(super) fn from_line(line: &Line<'a>) -> LineType<'a> {
        match line.kind.0.as_deref() {
            Some("session_meta") => LineType::Meta,
            Some("turn_context" | "world_state" | "inter_agent_communication_metadata") => LineType::Context,
            Some("response_item") => LineType::Item,
            Some("event_msg") => LineType::Event,
            Some("token_usage_record") => LineType::Usage,
            Some("compacted") => LineType::Compacted,
            Some(item) if line.payload.0.is_none() && Item::is_bare(item, line) => LineType::Bare(Bare::Item),
            Some(_) => line.kind.0.clone().map_or(LineType::Untyped, LineType::Unknown),
            None if line.record_type.0.is_some() => LineType::Bare(Bare::State),
            // Many programs write an id and a time; Codex also wrote its instructions, at least as null.
            None if line.id.0.is_some() && line.payload.0.is_none() && line.instructions.0 => {
                LineType::Bare(Bare::Meta)
            }
            None => LineType::Untyped,
        }
    }
}

/// The type of a `response_item`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Message,
    Reasoning,
    /// A call that a `Result` answers.
    Call,
    /// A call that the provider ran; no item answers it.
    Hosted,
    Result,
    /// Context for the model only.
    Context,
    Snapshot,
}

impl Item {
    /// Whether a line without an envelope is such an item: other agents use these types with other fields.
    fn is_bare(name: &str, line: &Line<'_>) -> bool {
        match Item::from_type(name) {
            Some(Item::Message) => line.role.0.is_some() && line.content.is_some(),
            // Newer than the envelope.
            None | Some(Item::Context) => false,
            Some(_) => true,
        }
    }

    pub(super) fn from_type(name: &str) -> Option<Item> {
        Some(match name {
            "message" | "agent_message" => Item::Message,
            "reasoning" => Item::Reasoning,
            "function_call" | "local_shell_call" | "custom_tool_call" | "tool_search_call" => Item::Call,
            "web_search_call" | "image_generation_call" => Item::Hosted,
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => Item::Result,
            "additional_tools" | "compaction" | "compaction_summary" | "context_compaction" => Item::Context,
            "ghost_snapshot" => Item::Snapshot,
            _ => return None,
        })
    }
}

/// The types of `event_msg` lines: each repeats an item or reports progress.
pub(super) const EVENTS: &[&str] = &[
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "background_event",
    "context_compacted",
    "entered_review_mode",
    "error",
    "exec_command_begin",
    "exec_command_end",
    "exited_review_mode",
    "image_generation_end",
    "item_completed",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "stream_error",
    "task_complete",
    "task_started",
    "thread_goal_updated",
    "thread_name_updated",
    "thread_rolled_back",
    "thread_settings_applied",
    "token_count",
    "turn_aborted",
    "turn_complete",
    "turn_diff",
    "turn_started",
    "undo_completed",
    "user_message",
    "view_image_tool_call",
    "warning",
    "web_search_begin",
    "web_search_end",
];
