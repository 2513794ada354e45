//! What the lines of Codex are, by name: types of lines, of items and of events.

use std::borrow::Cow;

use super::line::Line;

/// What the `type` of a line says.
#[derive(Clone)]
pub(super) enum Type<'a> {
    Meta,
    /// Facts about a turn, or the world around it.
    Surroundings,
    Item,
    Event,
    Usage,
    Compacted,
    /// An item or a header without its envelope.
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

impl<'a> Type<'a> {
    pub(super) fn of(line: &Line<'a>) -> Type<'a> {
        match line.kind.0.as_deref() {
            Some("session_meta") => Type::Meta,
            Some("turn_context" | "world_state" | "inter_agent_communication_metadata") => Type::Surroundings,
            Some("response_item") => Type::Item,
            Some("event_msg") => Type::Event,
            Some("token_usage_record") => Type::Usage,
            Some("compacted") => Type::Compacted,
            Some(item) if line.payload.0.is_none() && Item::is_bare(item, line) => Type::Bare(Bare::Item),
            Some(_) => line.kind.0.clone().map_or(Type::Untyped, Type::Unknown),
            None if line.record_type.0.is_some() => Type::Bare(Bare::State),
            // Many programs write an id and a time; this one also wrote its instructions, if only as null.
            None if line.id.0.is_some() && line.payload.0.is_none() && line.instructions.0 => Type::Bare(Bare::Meta),
            None => Type::Untyped,
        }
    }
}

/// What a `response_item` is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Message,
    Reasoning,
    /// A call, answered by a result of its own.
    Call,
    /// A call that the provider ran itself; nothing answers it.
    Hosted,
    Result,
    /// What only the model is meant to see.
    Context,
    Snapshot,
}

impl Item {
    /// Whether a line is such an item without its envelope: others have lines of these names too, of other fields.
    fn is_bare(name: &str, line: &Line<'_>) -> bool {
        match Item::named(name) {
            Some(Item::Message) => line.role.0.is_some() && line.content.is_some(),
            // Younger than the envelope.
            None | Some(Item::Context) => false,
            Some(_) => true,
        }
    }

    pub(super) fn named(name: &str) -> Option<Item> {
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

/// What `event_msg` lines say: each repeats an item, or tells of the work around it.
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
