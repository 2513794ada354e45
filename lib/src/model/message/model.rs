//! Messages as they are sent to a model: what `convertToModelMessages` of `ai` 7 returns for valid messages.
//!
//! Each step of an answer is one message of the assistant, then one with the results of its tools. What only people see
//! (data, sources) is not sent. Checked against the real package: `lib/tests/view/aisdk.rs`.

mod href;

use std::mem;

use serde_json::{Map, Value, json};

use super::keys::{object, put};
use super::{Approval, Message, Part, Role, ToolKind, ToolPart, ToolState};
use href::href;

/// What the SDK sends to the model for a refusal without a reason.
pub(super) const DENIED: &str = "Tool call execution denied.";

/// What the SDK sends in place of the output of a tool that no longer exists.
const UNAVAILABLE: &str = "Tool output omitted because the tool is no longer available.";

/// The model messages of these messages, which must be ready for SDK 7 ([`Message::for_sdk`]).
///
/// ```
/// use scrollback::model::{Message, Part, Role, model_messages};
/// use serde_json::json;
///
/// let asked = Message::new("m1", Role::User, vec![Part::text("Two and two?")]);
/// assert_eq!(
///     model_messages(&[asked]),
///     [json!({"role": "user", "content": [{"type": "text", "text": "Two and two?"}]})],
/// );
/// ```
pub fn model_messages(messages: &[Message]) -> Vec<Value> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let mut sent = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Role::System => sent.push(system(&message.parts)),
            Role::User => sent.push(json!({"role": "user", "content": user(&message.parts)})),
            Role::Assistant => {
                let asks = at >= last_user;
                let mut answer = Answer { sent: &mut sent, content: Vec::new(), results: Vec::new(), asks };
                message.parts.iter().for_each(|part| answer.take(part));
                answer.send();
            }
        }
    }
    sent
}

fn system(parts: &[Part]) -> Value {
    let (mut content, mut options) = (String::new(), Map::new());
    for part in parts {
        if let Part::Text(text) = part {
            content.push_str(&text.text);
            options.extend(text.provider_metadata.clone().unwrap_or_default());
        }
    }
    let message = json!({"role": "system", "content": content});
    with_options(message, Some(&options).filter(|options| !options.is_empty()))
}

fn user(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(text_or_file).collect()
}

/// A text or a file: both roles can send them.
fn text_or_file(part: &Part) -> Option<Value> {
    if let Part::Text(part) = part {
        let text = json!({"type": "text", "text": part.text});
        return Some(with_options(text, part.provider_metadata.as_ref()));
    }
    let Part::File(part) = part else { return None };
    let data = match &part.provider_reference {
        Some(reference) => json!({"type": "reference", "reference": reference}),
        None => json!({"type": "url", "url": href(&part.url)}),
    };
    let mut file = json!({"type": "file", "mediaType": part.media_type, "data": data});
    if let Some(name) = &part.filename {
        file["filename"] = name.as_str().into();
    }
    Some(with_options(file, part.provider_metadata.as_ref()))
}

/// One message of the assistant, step by step.
struct Answer<'a> {
    sent: &'a mut Vec<Value>,
    /// The step's content so far, and the results of its calls.
    content: Vec<Value>,
    results: Vec<Value>,
    /// Open questions to the user are sent: no prompt followed them.
    asks: bool,
}

impl Answer<'_> {
    fn take(&mut self, part: &Part) {
        let content = match part {
            Part::StepStart => return self.send(),
            Part::Steering(steering) => {
                self.send();
                return self.sent.push(json!({"role": "user", "content": user(&steering.parts)}));
            }
            Part::Tool(call) if matches!(call.state, ToolState::ApprovalRequested { .. }) && !self.asks => return,
            Part::Tool(call) => {
                add_call(call, &mut self.content);
                return add_results(call, &mut self.results);
            }
            Part::Text(_) | Part::File(_) => return self.content.extend(text_or_file(part)),
            Part::Reasoning(part) => {
                let reasoning = json!({"type": "reasoning", "text": part.text});
                with_options(reasoning, part.provider_metadata.as_ref())
            }
            Part::ReasoningFile(part) => {
                let data = json!({"type": "url", "url": href(&part.url)});
                let file = json!({"type": "reasoning-file", "data": data, "mediaType": part.media_type});
                with_options(file, part.provider_metadata.as_ref())
            }
            Part::Custom(part) => {
                let custom = json!({"type": "custom", "kind": part.kind});
                with_options(custom, part.provider_metadata.as_ref())
            }
            Part::SourceUrl(_) | Part::SourceDocument(_) | Part::Data(_) | Part::Other(_) => return,
        };
        self.content.push(content);
    }

    /// Sends the step: the model's content, then the results of its tools.
    fn send(&mut self) {
        for (role, content) in [("assistant", &mut self.content), ("tool", &mut self.results)] {
            if !content.is_empty() {
                self.sent.push(json!({"role": role, "content": mem::take(content)}));
            }
        }
    }
}

/// Adds the call, the question whether it may run, and the result of a tool that the provider ran itself.
fn add_call(call: &ToolPart, content: &mut Vec<Value>) {
    let failed = matches!(call.state, ToolState::OutputError { .. });
    let input = match &call.state {
        ToolState::InputStreaming { .. } => return,
        ToolState::OutputError { input, raw_input, .. } => {
            let known = input.as_ref().filter(|input| !input.is_null());
            known.or(raw_input.as_ref()).cloned()
        }
        _ => call.input().cloned(),
    };
    let mut item = named("tool-call", call);
    put(&mut item, "input", input);
    put(&mut item, "providerExecuted", call.provider_executed);
    let of_result = call.result_provider_metadata.as_ref();
    let of_call = call.call_provider_metadata.as_ref();
    content.push(with_options(item.into(), of_call.or(of_result.filter(|_| failed))));
    content.extend(call.approval().map(|approval| question(call, approval)));
    if call.provider_executed == Some(true) {
        let output = match &call.state {
            ToolState::OutputAvailable { output, .. } => output_of(call, output.as_ref()),
            ToolState::OutputError { error_text, .. } => json!({"type": "error-json", "value": error_text}),
            _ => return,
        };
        content.push(result(call, output, of_result.or(of_call)));
    }
}

fn question(call: &ToolPart, approval: &Approval) -> Value {
    let mut question =
        object(json!({"type": "tool-approval-request", "approvalId": approval.id, "toolCallId": call.call_id,
               "isAutomatic": approval.is_automatic, "reason": approval.request_reason}));
    put(&mut question, "inputSchemaInput", approval.input_schema_input.clone());
    put(&mut question, "signature", approval.signature.clone());
    question.into()
}

/// Adds the user's answer, and the tool's output.
fn add_results(call: &ToolPart, results: &mut Vec<Value>) {
    let answer = call.approval().and_then(|approval| Some((approval, approval.approved?)));
    results.extend(answer.map(|(approval, approved)| {
        let response = json!({"type": "tool-approval-response", "approvalId": approval.id, "approved": approved,
                   "reason": approval.reason, "providerExecuted": call.provider_executed});
        object(response).into()
    }));
    let output = match (&call.state, answer) {
        (ToolState::ApprovalResponded { .. }, Some((approval, false))) => {
            object(json!({"type": "execution-denied", "reason": approval.reason})).into()
        }
        _ if call.provider_executed == Some(true) => return,
        (ToolState::OutputDenied { approval, .. }, _) => {
            json!({"type": "error-text", "value": approval.reason.as_deref().unwrap_or(DENIED)})
        }
        (ToolState::OutputError { error_text, .. }, _) => json!({"type": "error-text", "value": error_text}),
        (ToolState::OutputAvailable { output, .. }, _) => output_of(call, output.as_ref()),
        _ => return,
    };
    results.push(result(call, output, call.call_provider_metadata.as_ref()));
}

fn output_of(call: &ToolPart, output: Option<&Value>) -> Value {
    let is_gone = call.kind == ToolKind::Dynamic && call.extra.get("dynamic") == Some(&Value::Bool(false));
    match output {
        _ if is_gone => json!({"type": "text", "value": UNAVAILABLE}),
        Some(Value::String(text)) => json!({"type": "text", "value": text}),
        output => json!({"type": "json", "value": output}),
    }
}

fn result(call: &ToolPart, output: Value, options: Option<&Map<String, Value>>) -> Value {
    let mut result = named("tool-result", call);
    result.insert("output".to_owned(), output);
    with_options(result.into(), options)
}

fn named(kind: &str, call: &ToolPart) -> Map<String, Value> {
    object(json!({"type": kind, "toolCallId": call.call_id, "toolName": call.name}))
}

fn with_options(mut content: Value, options: Option<&Map<String, Value>>) -> Value {
    if let Some(options) = options {
        content["providerOptions"] = options.clone().into();
    }
    content
}
