//! The class of a Qwen Code record: by its type and its subtype.

use super::line::{Line, Part};
use crate::dialect::local::Mark;
use crate::dialect::record_class::RecordClass;
use crate::model::lenient::{ObjectOrText, RawObject};
use crate::model::record::Kind;

/// Subtypes of `system` with facts about the session, in the parent chain.
const FACT_SUBTYPES: &[&str] = &[
    "agent_bootstrap",
    "agent_retry",
    "agent_session_ready",
    "attribution_snapshot",
    "background_task_completed",
    "branch_checkpoint",
    "goal_state",
    "goal_turn_end",
    "omni_recall",
    "parent_session",
    "session_approval_mode",
    "session_execution_engine",
    "session_model",
    "session_notes",
    "session_source",
    "ui_telemetry",
    "user_text_elements",
];

/// Subtypes of `system` beside the parent chain: nothing follows them.
const SIDE_SUBTYPES: &[&str] = &["session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot"];

/// Subtypes of `user` that the agent itself wrote for the model.
const INJECTED_SUBTYPES: &[&str] = &["cron", "goal_runtime", "notification"];

impl<'a> Line<'a> {
    pub(super) fn record_class(&self) -> RecordClass<'a> {
        let subtype = self.subtype.0.as_deref().filter(|subtype| !subtype.is_empty());
        let unknown = |class: RecordClass<'a>| {
            class.unknown(subtype.map(|subtype| format!("{}/{subtype}", self.name.0.as_deref().unwrap_or("?"))))
        };
        match self.name.0.as_deref() {
            Some("user") => match subtype {
                None | Some("mid_turn_user_message") => RecordClass::link(self.user_kind()),
                Some("notification") if self.mark().is_some() => {
                    let is_failure = self.mark() == Some(Mark::Interrupted);
                    RecordClass { is_failure, ..RecordClass::link(Kind::System) }
                }
                Some(injected) if INJECTED_SUBTYPES.contains(&injected) => RecordClass::link(Kind::Attachment),
                // Transcribed from speech, and never sent to the model.
                Some("realtime_message") => RecordClass::link(Kind::System),
                // An unknown subtype may have a person's text.
                Some(_) => unknown(RecordClass::link(self.user_kind())),
            },
            Some("assistant") => unknown(RecordClass::link(Kind::Assistant)),
            Some("tool_result") => unknown(RecordClass::link(Kind::ToolResult)),
            Some("system") => self.system_class(subtype).unwrap_or_else(|| unknown(RecordClass::link(Kind::Other))),
            Some(name) => RecordClass::link(Kind::Other).unknown(Some(name.to_owned())),
            None => RecordClass::untyped(match &self.message {
                ObjectOrText::Object(content) => match content.role.0.as_deref() {
                    Some("model") => Kind::Assistant,
                    Some("user") => self.user_kind(),
                    _ => Kind::Other,
                },
                ObjectOrText::Text(_) | ObjectOrText::Absent => Kind::Other,
            }),
        }
    }

    /// What we say that a message is which came from another agent.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.scrollback.0.as_deref().and_then(Mark::parse)
    }

    /// Whether it says that a person typed it.
    pub(super) fn is_typed(&self) -> bool {
        self.provenance.0.as_deref() == Some("real_user")
    }

    fn user_kind(&self) -> Kind {
        let responds = |part: &Part<'_>| part.function_response.0.is_some();
        let is_of_agent = matches!(self.provenance.0.as_deref(), Some("goal_runtime" | "system"));
        if !self.parts().is_empty() && self.parts().iter().all(responds) {
            Kind::ToolResult
        } else if is_of_agent || self.external_input_kind.0.as_deref() == Some("notification") {
            Kind::Attachment
        } else {
            Kind::User
        }
    }

    fn system_class(&self, subtype: Option<&str>) -> Option<RecordClass<'a>> {
        let payload = self.system_payload.0.as_ref();
        let notice = |has_text: bool| RecordClass::link(if has_text { Kind::System } else { Kind::Header });
        Some(match subtype {
            Some("chat_compression") => RecordClass::link(Kind::Compaction),
            Some("custom_title") => RecordClass::link(Kind::Title),
            Some("rewind") => RecordClass::link(Kind::Rewind),
            Some("file_history_snapshot") => RecordClass::link(Kind::Snapshot),
            Some("agent_launch_prompt") => RecordClass::link(Kind::Attachment),
            Some("slash_command") => RecordClass::link(Kind::System),
            Some("at_command") => match payload {
                Some(payload) if payload.text("message").is_some() => notice(true),
                Some(payload) if !files_read(payload).is_empty() => RecordClass::link(Kind::Attachment),
                _ => notice(false),
            },
            Some("ui_telemetry") if payload.and_then(api_error).is_some() => {
                RecordClass { is_failure: true, ..notice(true) }
            }
            Some("turn_result") => {
                let failure = payload.is_some_and(|payload| payload.text("state").as_deref() == Some("error"));
                RecordClass { is_failure: failure, ..notice(failure) }
            }
            Some(aside) if SIDE_SUBTYPES.contains(&aside) => RecordClass::side(Kind::Header),
            Some(fact) if FACT_SUBTYPES.contains(&fact) => RecordClass::link(Kind::Header),
            Some(_) => return None,
            None => notice(!matches!(self.message, ObjectOrText::Absent)),
        })
    }

    /// Whether it has the API's content or fields that only this agent writes.
    pub(super) fn is_recognized(&self) -> bool {
        let model =
            matches!(&self.message, ObjectOrText::Object(content) if content.role.0.as_deref() == Some("model"));
        let known_subtype = self.name.0.as_deref() == Some("system") && self.system_payload.0.is_some();
        let tools = self.tool_call_result.0.is_some() || !self.tool_calls_metadata.0.is_empty();
        let tokens = self.usage_metadata.0.is_some() || self.tokens.0.is_some();
        model
            || !self.parts().is_empty()
            || known_subtype
            || tools
            || tokens
            || self.thoughts.is_some()
            || self.provenance.0.is_some()
    }
}

/// The files that a prompt mentions and the agent read, from `at_command`.
pub(super) fn files_read(payload: &RawObject<'_>) -> Vec<String> {
    payload.parsed("filesRead").unwrap_or_default()
}

/// The failure of a request for the conversation itself, from `ui_telemetry`: requests of sub-agents name them.
pub(super) fn api_error<'a>(payload: &RawObject<'a>) -> Option<RawObject<'a>> {
    let event = payload.object("uiEvent");
    let is_error = event.text("event.name").as_deref() == Some("qwen-code.api_error");
    (is_error && event.text("subagent_name").is_none() && event.text("error_message").is_some()).then_some(event)
}
