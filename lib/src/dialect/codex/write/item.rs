//! Parts of messages as items: what people say, what the model says, thinks and calls.

use serde_json::{Value, json};

use super::super::context;
use super::super::line::Payload;
use super::script::Script;
use crate::model::loss::Lost;
use crate::model::message::{Approval, FilePart, Part, ReasoningPart, TextPart, ToolKind, ToolPart, ToolState};
use crate::model::record::{Content, Kind, Outcome, ToolResult};
use crate::model::wire::{self, file_words, name_sender};

/// What the API takes for names and ids of calls.
pub(super) const NAME_CHARS: usize = 64;

impl Script<'_> {
    /// What somebody asks, and the event without which Codex does not list the session.
    pub(super) fn prompt(&mut self, parts: &[Part], sender: Option<&str>) {
        let mut pieces = self.pieces(parts);
        match name_sender(sender, &mut pieces) {
            true => self.rename(Lost::Sender),
            false if sender.is_some() => self.drop(Lost::Sender),
            false => {}
        }
        let texts = pieces.iter().filter_map(|piece| piece["text"].as_str());
        let words = texts.collect::<Vec<_>>().join("\n");
        if pieces.is_empty() {
            return self.drop(Lost::EmptyMessage);
        }
        let kinds = pieces.iter().map(|piece| if piece["type"] == "input_image" { "user.image" } else { "user.text" });
        let kinds: Vec<&str> = kinds.collect();
        let mut message = json!({"type": "message", "role": "user", "content": pieces});
        // Words that read like context are a prompt all the same, if it says so.
        if !is(&message, context::is_prompt) {
            message["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": kinds});
        }
        self.item(message);
        self.event(json!({"type": "user_message", "message": words}));
    }

    /// What the model is told again that nobody typed.
    pub(super) fn told(&mut self, content: &Content, what: Kind) {
        let pieces = self.pieces(&content.parts);
        if pieces.is_empty() {
            return self.drop(what);
        }
        let mut message = json!({"type": "message", "role": "user", "content": pieces});
        if is(&message, context::is_prompt) || !is(&message, context::is_kept) {
            message["role"] = "developer".into();
            self.rename(what);
        }
        self.item(message);
        self.lose_the_rest(content);
    }

    /// Texts and pictures of a message that the model gets; of other files it gets the name.
    fn pieces(&mut self, parts: &[Part]) -> Vec<Value> {
        let mut pieces = Vec::new();
        let text_piece = |text: &str| json!({"type": "input_text", "text": text});
        for part in parts {
            match part {
                Part::Text(text) if text.text.is_empty() => self.drop(Lost::Text),
                Part::Text(text) => {
                    self.lose_of_text(text);
                    pieces.push(text_piece(&text.text));
                }
                Part::File(file) if file.media_type.starts_with("image") => {
                    self.lose_of_image(file);
                    pieces.push(json!({"type": "input_image", "image_url": file.url}));
                }
                // A room's files have no content, and a reaction is what was said.
                Part::Data(data) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
                    self.rename(part);
                    pieces.push(text_piece(&data.data.to_string()));
                }
                Part::File(file) => {
                    self.drop(part);
                    pieces.push(text_piece(&file_words(file)));
                }
                Part::StepStart => {}
                Part::Reasoning(_)
                | Part::ReasoningFile(_)
                | Part::SourceUrl(_)
                | Part::SourceDocument(_)
                | Part::Custom(_)
                | Part::Steering(_)
                | Part::Tool(_)
                | Part::Data(_)
                | Part::Other(_) => self.drop(part),
            }
        }
        pieces
    }

    pub(super) fn said_by_model(&mut self, part: &Part) {
        match part {
            Part::Text(text) if text.text.is_empty() => self.drop(Lost::Text),
            Part::Text(text) => {
                self.lose_of_text(text);
                let content = json!([{"type": "output_text", "text": text.text}]);
                self.item(json!({"type": "message", "role": "assistant", "content": content}));
                self.event(json!({"type": "agent_message", "message": text.text}));
            }
            Part::Reasoning(thought) => self.thought(thought),
            Part::Tool(call) => self.call(call),
            Part::Steering(steering) => {
                self.rename(part);
                self.prompt(&steering.parts, None);
            }
            // The items themselves tell where a response begins.
            Part::StepStart => {}
            Part::File(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Data(_)
            | Part::Other(_) => self.drop(part),
        }
    }

    fn thought(&mut self, thought: &ReasoningPart) {
        let openai = thought.provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        let encrypted = openai.and_then(|ours| ours.get("reasoningEncryptedContent")).and_then(Value::as_str);
        if thought.text.is_empty() && encrypted.is_none() {
            return self.drop(Lost::Thinking);
        }
        let summary =
            if thought.text.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": thought.text}]) };
        let mut item = json!({"type": "reasoning", "summary": summary});
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        self.item(item);
        if !thought.text.is_empty() {
            self.event(json!({"type": "agent_reasoning", "text": thought.text}));
        }
        let kept = usize::from(encrypted.is_some());
        let told = thought
            .provider_metadata
            .iter()
            .flatten()
            .map(|(_, facts)| facts.as_object().map_or(1, |facts| facts.len()));
        if told.sum::<usize>() > kept || thought.id.is_some() || !thought.extra.is_empty() {
            self.drop(Lost::Metadata);
        }
    }

    /// A call, and its result where the part has it.
    fn call(&mut self, call: &ToolPart) {
        let (id, tool) = (wire::id(&call.call_id, NAME_CHARS), wire::tool_name(&call.name, NAME_CHARS));
        if id != call.call_id {
            self.rename(Lost::CallId);
        }
        if tool != call.name {
            self.rename(Lost::ToolName);
        }
        let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
        let arguments = match (call.input(), raw) {
            (None | Some(Value::Null), None) => {
                self.make_up(Lost::ToolInput);
                "{}".to_owned()
            }
            (Some(input), None) => input.to_string(),
            // The model got it wrong: it stays as the model wrote it.
            (_, Some(Value::String(raw))) => raw.clone(),
            (_, Some(raw)) => raw.to_string(),
        };
        let mut item = json!({"type": "function_call", "name": tool, "arguments": arguments, "call_id": id});
        let openai = call.call_provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        let namespace = openai.and_then(|ours| ours.get("namespace")).and_then(Value::as_str);
        if let Some(namespace) = namespace {
            item["namespace"] = namespace.into();
        }
        self.item(item);
        let only_namespace = call.call_provider_metadata.iter().flatten().all(|(provider, facts)| {
            provider == "openai" && facts.as_object().is_some_and(|facts| facts.keys().all(|key| key == "namespace"))
        });
        let more = [&call.result_provider_metadata, &call.tool_metadata].into_iter().flatten().count();
        if more > 0 || !only_namespace || call.title.is_some() || !call.extra.is_empty() {
            self.drop(Lost::CallDetails);
        }
        if call.provider_executed == Some(true) {
            self.rename(Lost::ProviderCall);
        }
        if call.kind == ToolKind::Static {
            self.rename(Lost::CallDetails);
        }
        self.outcome(call);
    }

    fn outcome(&mut self, call: &ToolPart) {
        let (output, outcome, approval) = match &call.state {
            ToolState::InputStreaming { .. } => return self.rename(Lost::CallState),
            ToolState::InputAvailable { .. } => return,
            ToolState::ApprovalRequested { .. } | ToolState::ApprovalResponded { .. } => {
                return self.drop(Lost::Approval);
            }
            ToolState::OutputAvailable { preliminary: Some(true), .. } => return self.drop(Lost::PreliminaryResult),
            ToolState::OutputAvailable { output, approval, .. } => {
                (output.clone().unwrap_or_default(), Outcome::Done, approval.as_ref())
            }
            ToolState::OutputError { error_text, approval, .. } => {
                (Value::Null, Outcome::Failed(error_text.clone()), approval.as_ref())
            }
            ToolState::OutputDenied { approval, .. } => (Value::Null, Outcome::Denied(approval.reason.clone()), None),
        };
        if approval.is_some_and(|approval| *approval != Approval::default()) {
            self.drop(Lost::Approval);
        }
        self.result(&ToolResult {
            call_id: call.call_id.clone(),
            name: None,
            output,
            outcome,
            preliminary: false,
            duration_ms: None,
            about: serde_json::Map::new(),
        });
    }

    fn lose_of_text(&mut self, text: &TextPart) {
        if text.citations.is_some() || text.provider_metadata.is_some() || !text.extra.is_empty() {
            self.drop(Lost::Metadata);
        }
    }

    /// Only a `data:` URL tells its type.
    fn lose_of_image(&mut self, file: &FilePart) {
        let told = file.url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
        if told.unwrap_or("image") != file.media_type {
            self.rename(Lost::MediaType);
        }
        let more = file.provider_metadata.is_some() || file.provider_reference.is_some() || !file.extra.is_empty();
        if more || file.filename.is_some() {
            self.drop(Lost::Metadata);
        }
    }
}

/// Whether our own reader takes a message for something.
fn is(message: &Value, what: fn(&Payload<'_>) -> bool) -> bool {
    let text = message.to_string();
    serde_json::from_str::<Payload<'_>>(&text).is_ok_and(|payload| what(&payload))
}
