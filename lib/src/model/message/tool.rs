//! Tool calls: the call and its result are one part with a state.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::keys::{Field, Keys, json_structs};
use crate::model::json::{self, is_object};

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPart {
    /// The tool's name.
    pub name: String,
    /// The call's id, which its results repeat.
    pub call_id: String,
    /// How the part states the name.
    pub kind: ToolKind,
    /// The progress of the call.
    pub state: ToolState,
    /// A name for people.
    pub title: Option<String>,
    /// Whether the provider runs the tool itself.
    pub provider_executed: Option<bool>,
    /// One object per provider, about the call; ours is `scrollback`.
    pub call_provider_metadata: Option<Map<String, Value>>,
    /// One object per provider, about the result.
    pub result_provider_metadata: Option<Map<String, Value>>,
    /// Metadata of the tool's definition.
    pub tool_metadata: Option<Map<String, Value>>,
    /// The arguments as the model wrote them, where the agent recorded that text and the input is not the same when it is
    /// written again; not a part of the message.
    pub input_text: Option<Box<str>>,
    /// All other keys; must not repeat a field or a key of the state.
    pub extra: Map<String, Value>,
}

/// How a tool part states its tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// `dynamic-tool` with a `toolName`: the tool is known only at run time.
    Dynamic,
    /// `tool-<name>`: the application defines the tool.
    Static,
}

/// The progress of a tool call, with what is known then.
///
/// ```
/// use scrollback::model::{ToolPart, ToolState};
/// use serde_json::json;
///
/// let mut call = ToolPart::dynamic("Read", "call-1", ToolState::called(json!({"path": "a.rs"})));
/// assert!(call.is_open());
///
/// call.state = ToolState::done(json!({"path": "a.rs"}), json!("fn main() {}"));
/// assert!(!call.is_open());
/// assert_eq!(call.output(), Some(&json!("fn main() {}")));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ToolState {
    /// The model is still writing the input.
    InputStreaming {
        /// The input as far as it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// The call is complete and has no result.
    InputAvailable {
        /// The arguments.
        input: Value,
    },
    /// The user was asked whether the call may run.
    ApprovalRequested {
        /// The arguments.
        input: Value,
        /// The question.
        approval: Approval,
    },
    /// The user has answered, and the tool has not run yet.
    ApprovalResponded {
        /// The arguments.
        input: Value,
        /// The question and the answer.
        approval: Approval,
    },
    /// The tool has run.
    OutputAvailable {
        /// The arguments.
        input: Value,
        /// The result. JSON drops what JavaScript calls undefined, so a tool without a result leaves none.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// Whether a later result will replace this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        preliminary: Option<bool>,
        /// The permission, where one was needed.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval: Option<Approval>,
    },
    /// The tool has failed, or its input was invalid.
    OutputError {
        /// The arguments, if they could be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The arguments as the model wrote them, if they could not.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_input: Option<Value>,
        /// What went wrong.
        error_text: String,
        /// The permission, where one was needed.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval: Option<Approval>,
    },
    /// The user refused.
    OutputDenied {
        /// The arguments.
        input: Value,
        /// The question and the answer.
        approval: Approval,
    },
}

json_structs! {
    /// The question whether a call may run, and the answer once there is one.
    Approval {
        /// The question's id.
        "id" id: String,
        /// The answer.
        "approved" approved: Option<bool>,
        /// The reason for the answer.
        "reason" reason: Option<String>,
        /// Whether a rule has answered instead of the user (SDK 7).
        "isAutomatic" is_automatic: Option<bool>,
        /// The reason for the question (SDK 7).
        "requestReason" request_reason: Option<String>,
        /// Proves that the server asked this question (SDK 6 and 7).
        "signature" signature: Option<String>,
        /// What the application shows with the question (SDK 6 and 7).
        "descriptor" descriptor: Option<Value>,
        /// The input before the tool's schema transformed it (SDK 6 and 7).
        "inputSchemaInput" input_schema_input: Option<Value>,
    }
}

impl ToolPart {
    /// The keys that identify the call.
    pub(crate) const NAMED: [&str; 5] = ["type", "toolName", "toolCallId", "input", "dynamic"];

    /// Those, and the keys of its state; all others are metadata.
    pub(crate) const STATED: [&str; 11] = [
        "type",
        "toolName",
        "toolCallId",
        "input",
        "dynamic",
        "state",
        "rawInput",
        "output",
        "errorText",
        "preliminary",
        "approval",
    ];

    /// The question whether it may run.
    pub fn approval(&self) -> Option<&Approval> {
        match &self.state {
            ToolState::ApprovalRequested { approval, .. }
            | ToolState::ApprovalResponded { approval, .. }
            | ToolState::OutputDenied { approval, .. } => Some(approval),
            ToolState::OutputAvailable { approval, .. } | ToolState::OutputError { approval, .. } => approval.as_ref(),
            ToolState::InputStreaming { .. } | ToolState::InputAvailable { .. } => None,
        }
    }

    /// Its input as every API accepts it: an object. Any other value is the `input` of one.
    pub(crate) fn arguments(&self) -> Value {
        let raw = if let ToolState::OutputError { raw_input, .. } = &self.state { raw_input.as_ref() } else { None };
        match self.input().or(raw) {
            Some(input) if is_object(input) => input.clone(),
            None | Some(Value::Null) => Map::new().into(),
            Some(other) => json!({"input": other}),
        }
    }

    /// Makes a `dynamic-tool` part, the kind for tools that are not declared to the SDK.
    pub fn dynamic(name: impl Into<String>, call_id: impl Into<String>, state: ToolState) -> ToolPart {
        ToolPart {
            name: name.into(),
            call_id: call_id.into(),
            kind: ToolKind::Dynamic,
            state,
            title: None,
            provider_executed: None,
            call_provider_metadata: None,
            result_provider_metadata: None,
            tool_metadata: None,
            input_text: None,
            extra: Map::new(),
        }
    }

    /// A call whose arguments are JSON in a text. Malformed JSON stays a string.
    pub(crate) fn from_input_text(name: impl Into<String>, call_id: impl Into<String>, text: String) -> ToolPart {
        let input = json::parse(&text).unwrap_or_else(|_| Value::String(text.clone()));
        let written = json::to_string(&input);
        let is_canonical = is_object(&input) && written == text;
        let call = ToolPart::dynamic(name, call_id, ToolState::called(input));
        ToolPart { input_text: (!is_canonical).then(|| text.into_boxed_str()), ..call }
    }

    /// Returns the arguments, if they are known.
    pub fn input(&self) -> Option<&Value> {
        match &self.state {
            ToolState::InputStreaming { input } | ToolState::OutputError { input, .. } => input.as_ref(),
            ToolState::InputAvailable { input }
            | ToolState::ApprovalRequested { input, .. }
            | ToolState::ApprovalResponded { input, .. }
            | ToolState::OutputAvailable { input, .. }
            | ToolState::OutputDenied { input, .. } => Some(input),
        }
    }

    /// Returns the result of a call that succeeded.
    pub fn output(&self) -> Option<&Value> {
        if let ToolState::OutputAvailable { output, .. } = &self.state { output.as_ref() } else { None }
    }

    /// Whether a result may still come: there is none, or one that is not final.
    pub(crate) fn takes_result(&self) -> bool {
        self.is_open() || matches!(self.state, ToolState::OutputAvailable { preliminary: Some(true), .. })
    }

    /// Whether the call has no result yet.
    pub fn is_open(&self) -> bool {
        let has_outcome = matches!(
            self.state,
            ToolState::OutputAvailable { .. } | ToolState::OutputError { .. } | ToolState::OutputDenied { .. }
        );
        !has_outcome
    }
}

impl ToolState {
    /// Makes the state of a call without a result.
    pub fn called(input: impl Into<Value>) -> ToolState {
        ToolState::InputAvailable { input: input.into() }
    }

    /// Makes the state of a call that succeeded.
    pub fn done(input: impl Into<Value>, output: impl Into<Value>) -> ToolState {
        ToolState::OutputAvailable {
            input: input.into(),
            output: Some(output.into()),
            preliminary: None,
            approval: None,
        }
    }

    /// Makes the state of a call that failed.
    pub fn failed(input: impl Into<Value>, error_text: impl Into<String>) -> ToolState {
        ToolState::OutputError {
            input: Some(input.into()),
            raw_input: None,
            error_text: error_text.into(),
            approval: None,
        }
    }
}

impl Serialize for ToolPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Keys<'a> {
            r#type: Cow<'a, str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_name: Option<&'a str>,
            tool_call_id: &'a str,
            #[serde(flatten)]
            state: &'a ToolState,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            provider_executed: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            call_provider_metadata: &'a Option<Map<String, Value>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            result_provider_metadata: &'a Option<Map<String, Value>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_metadata: &'a Option<Map<String, Value>>,
            #[serde(flatten)]
            extra: &'a Map<String, Value>,
        }
        let (r#type, tool_name) = match self.kind {
            ToolKind::Dynamic => (Cow::Borrowed("dynamic-tool"), Some(self.name.as_str())),
            ToolKind::Static => (Cow::Owned(format!("tool-{}", self.name)), None),
        };
        Keys {
            r#type,
            tool_name,
            tool_call_id: &self.call_id,
            state: &self.state,
            title: &self.title,
            provider_executed: self.provider_executed,
            call_provider_metadata: &self.call_provider_metadata,
            result_provider_metadata: &self.result_provider_metadata,
            tool_metadata: &self.tool_metadata,
            extra: &self.extra,
        }
        .serialize(serializer)
    }
}
