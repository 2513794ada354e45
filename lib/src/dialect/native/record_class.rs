//! The class of a native line: by its type, or by the role of a plain message.

use super::line::Line;
use crate::dialect::record_class::{RecordClass, TypeName};
use crate::model::record::Kind;

impl<'a> Line<'a> {
    pub(super) fn record_class(&self) -> RecordClass<'a> {
        let message_role = self.message().and_then(|message| message.role.0.as_deref());
        match (&self.type_name.0, &self.role.0) {
            (Some(name), _) => match kind_from_type(name) {
                Some(Kind::Snapshot) => RecordClass::side(Kind::Snapshot),
                Some(Kind::Title) if self.parent_uuid.clone().some().is_none() => RecordClass::side(Kind::Title),
                Some(kind) => RecordClass { is_failure: name == "error", ..RecordClass::link(kind) },
                None => RecordClass::link(Kind::Other).unknown(Some(name.clone())),
            },
            (None, Some(role)) if self.message().is_none() => match kind_from_role(Some(role)) {
                Kind::Other => RecordClass::link(Kind::Other).unknown(Some(format!("role {role}"))),
                kind => RecordClass { type_name: TypeName::Plain, ..RecordClass::link(kind) },
            },
            _ => RecordClass::untyped(kind_from_role(message_role)),
        }
    }

    /// Whether it has fields that only this format has.
    pub(super) fn is_recognized(&self) -> bool {
        self.format.0.is_some()
            || self.context.0.is_some()
            || !self.tool_results.0.is_empty()
            || self.message().is_some_and(|message| !message.tool_calls.0.is_empty())
    }
}

fn kind_from_type(name: &str) -> Option<Kind> {
    Some(match name {
        "user" => Kind::User,
        "assistant" => Kind::Assistant,
        "tool_result" => Kind::ToolResult,
        "attachment" => Kind::Attachment,
        "system" | "error" => Kind::System,
        "summary" | "custom_title" => Kind::Title,
        "file_history_snapshot" => Kind::Snapshot,
        "compaction" => Kind::Compaction,
        "rewind" => Kind::Rewind,
        "restore" => Kind::Restore,
        _ => return None,
    })
}

fn kind_from_role(role: Option<&str>) -> Kind {
    match role {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        Some("system" | "error") => Kind::System,
        Some("tool") => Kind::ToolResult,
        _ => Kind::Other,
    }
}
