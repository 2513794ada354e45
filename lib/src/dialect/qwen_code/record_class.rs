//! What a record of Qwen Code is: by its type and its subtype.

use std::borrow::Cow;

use super::line::{Line, Part};
use crate::dialect::record_class::RecordClass;
use crate::model::lenient::ObjectOrText;
use crate::model::record::Kind;

/// Subtypes of `system` that tell something about the session. All are links of the parent chain.
const FACTS: &[&str] = &[
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

/// Subtypes of `system` that hang beside the chain: nothing goes on from them.
const ASIDE: &[&str] = &["session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot"];

/// Subtypes of `user` that nobody typed: the agent speaks to the model.
const INJECTED: &[&str] = &["cron", "goal_runtime", "notification"];

impl<'a> Line<'a> {
    /// What the record is, and its name when that is not known.
    pub(super) fn record_class(&self) -> (RecordClass, Option<Cow<'a, str>>) {
        let subtype = self.subtype.0.as_deref().filter(|subtype| !subtype.is_empty());
        let unknown =
            || subtype.map(|subtype| Cow::Owned(format!("{}/{subtype}", self.name.0.as_deref().unwrap_or("?"))));
        match self.name.0.as_deref() {
            Some("user") => match subtype {
                None | Some("mid_turn_user_message") => (RecordClass::link(self.of_user()), None),
                Some(injected) if INJECTED.contains(&injected) => (RecordClass::link(Kind::Attachment), None),
                // Spoken, and never sent to the model.
                Some("realtime_message") => (RecordClass::link(Kind::System), None),
                // Whoever said it: words are not lost.
                Some(_) => (RecordClass::link(self.of_user()), unknown()),
            },
            Some("assistant") => (RecordClass::link(Kind::Assistant), unknown()),
            Some("tool_result") => (RecordClass::link(Kind::ToolResult), unknown()),
            Some("system") => self
                .of_system(subtype)
                .map_or_else(|| (RecordClass::link(Kind::Other), unknown()), |class| (class, None)),
            Some(name) => (RecordClass::link(Kind::Other), Some(Cow::Owned(name.to_owned()))),
            None => {
                let role =
                    if let ObjectOrText::Object(content) = &self.message { content.role.0.as_deref() } else { None };
                let kind = match role {
                    Some("model") => Kind::Assistant,
                    Some("user") => self.of_user(),
                    _ => Kind::Other,
                };
                (RecordClass::link(kind), None)
            }
        }
    }

    fn of_user(&self) -> Kind {
        let responds = |part: &Part<'_>| part.function_response.0.is_some();
        let of_agent = matches!(self.provenance.0.as_deref(), Some("goal_runtime" | "system"));
        if !self.parts().is_empty() && self.parts().iter().all(responds) {
            Kind::ToolResult
        } else if of_agent || self.external_input_kind.0.as_deref() == Some("notification") {
            Kind::Attachment
        } else {
            Kind::User
        }
    }

    fn of_system(&self, subtype: Option<&str>) -> Option<RecordClass> {
        let payload = self.system_payload.0.as_ref();
        let says = |content: bool| RecordClass::link(if content { Kind::System } else { Kind::Header });
        Some(match subtype {
            Some("chat_compression") => RecordClass::link(Kind::Compaction),
            Some("custom_title") => RecordClass::link(Kind::Title),
            Some("rewind") => RecordClass::link(Kind::Rewind),
            Some("file_history_snapshot") => RecordClass::link(Kind::Snapshot),
            Some("agent_launch_prompt") => RecordClass::link(Kind::Attachment),
            Some("slash_command") => RecordClass::link(Kind::System),
            Some("at_command") => says(payload.is_some_and(|payload| payload.message.clone().some().is_some())),
            Some("turn_result") => {
                let failure = payload.is_some_and(|payload| payload.state.0.as_deref() == Some("error"));
                RecordClass { is_failure: failure, ..says(failure) }
            }
            Some(aside) if ASIDE.contains(&aside) => RecordClass { is_side: true, ..RecordClass::link(Kind::Header) },
            Some(fact) if FACTS.contains(&fact) => RecordClass::link(Kind::Header),
            Some(_) => return None,
            None => says(!matches!(self.message, ObjectOrText::Absent)),
        })
    }

    pub(super) fn parts(&self) -> &[Part<'a>] {
        match &self.message {
            ObjectOrText::Object(content) => &content.parts.0,
            ObjectOrText::Text(_) | ObjectOrText::Absent => &[],
        }
    }

    /// The API's content and the fields that no other agent has.
    pub(super) fn recognizes(&self) -> bool {
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
