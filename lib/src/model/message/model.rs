//! Messages as a model is sent them: what `convertToModelMessages` of `ai` 7 makes of messages that it takes.
//!
//! Each step of an answer is one message of the assistant, then one with the results of its tools. What only people see
//! (data, sources) has no place there. Checked against the real package: `lib/tests/aisdk.rs`.

mod href;

use std::mem;

use serde_json::{Map, Value, json};

use super::{Approval, FilePart, Message, Part, Role, ToolKind, ToolPart, ToolState};
use href::href;

/// What the SDK tells the model of a refusal without a reason.
const DENIED: &str = "Tool call execution denied.";

/// What the SDK tells the model in place of an output of a tool that is gone.
const UNAVAILABLE: &str = "Tool output omitted because the tool is no longer available.";

/// The model messages of these messages, which must be ready for SDK 7 ([`Message::for_sdk`]).
///
/// ```
/// use scrollback::model::message::{Message, Part, Role, model_messages};
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
                let mut answer = Answer { sent: &mut sent, block: Vec::new(), asks: at >= last_user };
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
    let mut message = Map::from_iter([("role".to_owned(), "system".into()), ("content".to_owned(), content.into())]);
    put(&mut message, "providerOptions", Some(options).filter(|options| !options.is_empty()));
    message.into()
}

fn user(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(spoken).collect()
}

/// A text or a file, as both sides can send it.
fn spoken(part: &Part) -> Option<Value> {
    match part {
        Part::Text(part) => {
            let text = json!({"type": "text", "text": part.text});
            Some(with_options(text, part.provider_metadata.as_ref()))
        }
        Part::File(part) => Some(file(part)),
        Part::Reasoning(_)
        | Part::ReasoningFile(_)
        | Part::SourceUrl(_)
        | Part::SourceDocument(_)
        | Part::Custom(_)
        | Part::Steering(_)
        | Part::StepStart
        | Part::Tool(_)
        | Part::Data(_)
        | Part::Other(_) => None,
    }
}

fn file(part: &FilePart) -> Value {
    let data = match &part.provider_reference {
        Some(reference) => json!({"type": "reference", "reference": reference}),
        None => json!({"type": "url", "url": href(&part.url)}),
    };
    let mut file = Map::from_iter([
        ("type".to_owned(), "file".into()),
        ("mediaType".to_owned(), part.media_type.clone().into()),
        ("data".to_owned(), data),
    ]);
    put(&mut file, "filename", part.filename.clone());
    with_options(file.into(), part.provider_metadata.as_ref())
}

/// One message of the assistant, step by step.
struct Answer<'a, 'm> {
    sent: &'a mut Vec<Value>,
    /// The step's parts so far.
    block: Vec<&'m Part>,
    /// Questions to the person still count: no prompt came after them.
    asks: bool,
}

impl<'m> Answer<'_, 'm> {
    fn take(&mut self, part: &'m Part) {
        match part {
            Part::StepStart => self.send(),
            Part::Steering(content) => {
                self.send();
                self.sent.push(json!({"role": "user", "content": user(&content.parts)}));
            }
            Part::Tool(call) if matches!(call.state, ToolState::ApprovalRequested { .. }) && !self.asks => {}
            Part::Text(_)
            | Part::Reasoning(_)
            | Part::ReasoningFile(_)
            | Part::File(_)
            | Part::Custom(_)
            | Part::Tool(_)
            | Part::Data(_) => self.block.push(part),
            Part::SourceUrl(_) | Part::SourceDocument(_) | Part::Other(_) => {}
        }
    }

    /// Sends the step: what the model said, then what its tools gave back.
    fn send(&mut self) {
        let (mut said, mut results) = (Vec::new(), Vec::new());
        for part in mem::take(&mut self.block) {
            match part {
                Part::Reasoning(part) => {
                    let thought = json!({"type": "reasoning", "text": part.text});
                    said.push(with_options(thought, part.provider_metadata.as_ref()));
                }
                Part::ReasoningFile(part) => {
                    let data = json!({"type": "url", "url": href(&part.url)});
                    let file = json!({"type": "reasoning-file", "data": data, "mediaType": part.media_type});
                    said.push(with_options(file, part.provider_metadata.as_ref()));
                }
                Part::Custom(part) => {
                    let custom = json!({"type": "custom", "kind": part.kind});
                    said.push(with_options(custom, part.provider_metadata.as_ref()));
                }
                Part::Tool(call) => {
                    call_of(call, &mut said);
                    results_of(call, &mut results);
                }
                part => said.extend(spoken(part)),
            }
        }
        for (role, content) in [("assistant", said), ("tool", results)] {
            if !content.is_empty() {
                self.sent.push(json!({"role": role, "content": content}));
            }
        }
    }
}

/// The call, the question whether it may run, and the result of a tool that the provider ran itself.
fn call_of(call: &ToolPart, content: &mut Vec<Value>) {
    let mut made = named("tool-call", call);
    let failed = matches!(call.state, ToolState::OutputError { .. });
    let input = match &call.state {
        ToolState::InputStreaming { .. } => return,
        ToolState::OutputError { input, raw_input, .. } => {
            let known = input.as_ref().filter(|input| !input.is_null());
            known.or(raw_input.as_ref()).cloned()
        }
        _ => call.input().cloned(),
    };
    put(&mut made, "input", input);
    put(&mut made, "providerExecuted", call.provider_executed);
    let of_result = call.result_provider_metadata.as_ref();
    let of_call = call.call_provider_metadata.as_ref();
    content.push(with_options(made.into(), of_call.or(of_result.filter(|_| failed))));
    content.extend(call.approval().map(|approval| question(call, approval)));
    if call.provider_executed == Some(true) {
        let output = match &call.state {
            ToolState::OutputAvailable { output, .. } => output_of(call, output.as_ref()),
            ToolState::OutputError { error_text, .. } => json!({"type": "error-json", "value": error_text}),
            _ => return,
        };
        let mut result = named("tool-result", call);
        result.insert("output".to_owned(), output);
        content.push(with_options(result.into(), of_result.or(of_call)));
    }
}

fn question(call: &ToolPart, approval: &Approval) -> Value {
    let mut question = Map::from_iter([
        ("type".to_owned(), "tool-approval-request".into()),
        ("approvalId".to_owned(), approval.id.clone().into()),
        ("toolCallId".to_owned(), call.call_id.clone().into()),
    ]);
    put(&mut question, "isAutomatic", approval.is_automatic);
    put(&mut question, "reason", approval.request_reason.clone());
    put(&mut question, "inputSchemaInput", approval.input_schema_input.clone());
    put(&mut question, "signature", approval.signature.clone());
    question.into()
}

/// The person's answer, and what the tool gave back.
fn results_of(call: &ToolPart, results: &mut Vec<Value>) {
    let provided = call.provider_executed == Some(true);
    let answer = call.approval().and_then(|approval| Some((approval, approval.approved?)));
    if let Some((approval, approved)) = answer {
        let mut told = Map::from_iter([
            ("type".to_owned(), "tool-approval-response".into()),
            ("approvalId".to_owned(), approval.id.clone().into()),
            ("approved".to_owned(), approved.into()),
        ]);
        put(&mut told, "reason", approval.reason.clone());
        put(&mut told, "providerExecuted", call.provider_executed);
        results.push(told.into());
    }
    let output = match (&call.state, answer) {
        (ToolState::ApprovalResponded { .. }, Some((approval, false))) => {
            let mut denied = Map::from_iter([("type".to_owned(), "execution-denied".into())]);
            put(&mut denied, "reason", approval.reason.clone());
            denied.into()
        }
        _ if provided => return,
        (ToolState::OutputDenied { approval, .. }, _) => {
            json!({"type": "error-text", "value": approval.reason.as_deref().unwrap_or(DENIED)})
        }
        (ToolState::OutputError { error_text, .. }, _) => json!({"type": "error-text", "value": error_text}),
        (ToolState::OutputAvailable { output, .. }, _) => output_of(call, output.as_ref()),
        _ => return,
    };
    let mut result = named("tool-result", call);
    result.insert("output".to_owned(), output);
    results.push(with_options(result.into(), call.call_provider_metadata.as_ref()));
}

fn output_of(call: &ToolPart, output: Option<&Value>) -> Value {
    let gone = call.kind == ToolKind::Dynamic && call.extra.get("dynamic") == Some(&Value::Bool(false));
    match output {
        _ if gone => json!({"type": "text", "value": UNAVAILABLE}),
        Some(Value::String(text)) => json!({"type": "text", "value": text}),
        output => json!({"type": "json", "value": output}),
    }
}

fn named(kind: &str, call: &ToolPart) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), kind.into()),
        ("toolCallId".to_owned(), call.call_id.clone().into()),
        ("toolName".to_owned(), call.name.clone().into()),
    ])
}

fn with_options(mut content: Value, options: Option<&Map<String, Value>>) -> Value {
    if let (Value::Object(content), Some(options)) = (&mut content, options) {
        content.insert("providerOptions".to_owned(), options.clone().into());
    }
    content
}

/// JSON drops what JavaScript calls undefined.
fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}
