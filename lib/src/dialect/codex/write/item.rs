//! Writes the parts of messages as items: text, reasoning, calls and files.

use serde_json::{Value, json};

use super::super::line::Payload;
use super::super::{context, local};
use super::record::Record;
use crate::dialect::line_builder::{Put, fields};
use crate::dialect::local::{Mark, TYPED_FIELD, typed_beside};
use crate::model::json;
use crate::model::loss::Lost;
use crate::model::message::{Approval, FilePart, Part, ReasoningPart, TextPart, ToolKind, ToolPart, ToolState};
use crate::model::record::{Content, Display, Kind};
use crate::model::wire::{self, file_words, media_type_of, own_result};

/// The longest name and id of a call that the API accepts.
pub(super) const NAME_CHARS: usize = 64;

/// The kind of a piece that an agent added for the model.
const AGENT_TEXT: &str = "scrollback.context";

impl Record<'_> {
    /// A prompt, and the event without which Codex does not list the session.
    pub(super) fn prompt(&mut self, content: &Content) {
        let mut pieces = self.pieces(&content.parts);
        self.losses().of_sender(content, &mut pieces);
        if pieces.is_empty() {
            return self.losses().dropped(Lost::EmptyMessage);
        }
        let texts = pieces.iter().filter_map(|piece| piece["text"].as_str());
        // Codex shows a person the event, and sends the item.
        let text = match &content.display {
            Some(Display::Typed { text }) => text.clone(),
            _ => texts.collect::<Vec<_>>().join("\n"),
        };
        let kinds = pieces.iter().map(|piece| if piece["type"] == "input_image" { "user.image" } else { "user.text" });
        let kinds: Vec<&str> = kinds.collect();
        let mut message = user_message(pieces);
        // A prompt that looks like context must say that a person typed it.
        if !is(&message, context::is_prompt) {
            message["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": kinds});
        }
        if let Some(typed) = typed_beside(content) {
            message[TYPED_FIELD] = typed.into();
        }
        self.item(message);
        let mut event = fields(json!({"type": "user_message"}));
        event.put("message", text);
        self.event(event.into());
    }

    /// A message that is sent to the model again and that no person typed. Codex has no such kind, and sends those that it does
    /// not know.
    pub(super) fn message_to_model(&mut self, content: &Content, kind: Kind) {
        let pieces = self.pieces(&content.parts);
        if pieces.is_empty() {
            return self.losses().dropped(kind);
        }
        let kinds = vec![AGENT_TEXT; pieces.len()];
        let mut message = user_message(pieces);
        if is(&message, context::is_prompt) || !is(&message, context::is_kept) {
            message["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": kinds});
        }
        self.losses().renamed_if(content.instructs || kind == Kind::System, Lost::Instruction);
        self.item(message);
        self.losses().dropped_besides_parts(content, &[]);
    }

    /// What a person did at the screen of an agent, as that agent sends it. Codex knows only its own tags.
    pub(super) fn local(&mut self, content: &Content, display: &Display) {
        let pieces = self.pieces(&content.parts);
        if pieces.is_empty() {
            return self.losses().dropped(Kind::System);
        }
        let kind = format!("{}{}", context::OURS, Mark::of(display).name());
        let kinds = vec![kind; pieces.len()];
        let mut message = user_message(pieces);
        if !is(&message, |message| local::display(message).is_some()) {
            message["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": kinds});
        }
        self.item(message);
        self.losses().dropped_besides_parts(content, &[Lost::Error]);
    }

    /// The texts and images of a message to the model; of other files it gets the name.
    fn pieces(&mut self, parts: &[Part]) -> Vec<Value> {
        let mut pieces = Vec::new();
        let text_piece = |text: &str| json!({"type": "input_text", "text": text});
        for part in parts {
            match part {
                Part::Text(text) if text.text.is_empty() => self.losses().dropped(Lost::Text),
                Part::Text(text) => {
                    self.text_details(text);
                    pieces.push(text_piece(&text.text));
                }
                Part::File(file) if file.media_type.starts_with("image") => {
                    self.image_details(file);
                    pieces.push(json!({"type": "input_image", "image_url": file.url}));
                }
                // Files of a room have no content, and a reaction is part of the conversation.
                Part::Data(data) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
                    self.losses().renamed(part);
                    pieces.push(text_piece(&json::to_string(&data.data)));
                }
                Part::File(file) => {
                    self.losses().dropped(part);
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
                | Part::Other(_) => self.losses().dropped(part),
            }
        }
        pieces
    }

    pub(super) fn answer_part(&mut self, part: &Part) {
        match part {
            Part::Text(text) if text.text.is_empty() => self.losses().dropped(Lost::Text),
            Part::Text(text) => {
                self.text_details(text);
                let content = json!([{"type": "output_text", "text": text.text}]);
                self.item(json!({"type": "message", "role": "assistant", "content": content}));
                self.event(json!({"type": "agent_message", "message": text.text}));
            }
            Part::Reasoning(thought) => self.reasoning(thought),
            Part::Tool(call) => self.call(call),
            Part::Steering(steering) => {
                self.losses().renamed(part);
                self.prompt(&Content::from(steering.parts.clone()));
            }
            // The items themselves show where a response starts.
            Part::StepStart => {}
            Part::File(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Data(_)
            | Part::Other(_) => self.losses().dropped(part),
        }
    }

    fn reasoning(&mut self, thought: &ReasoningPart) {
        let providers = || thought.provider_metadata.iter().flatten();
        let openai = thought.provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        let encrypted = openai.and_then(|openai| openai.get("reasoningEncryptedContent")).and_then(Value::as_str);
        if thought.text.is_empty() && encrypted.is_none() {
            return self.losses().dropped(Lost::Thinking);
        }
        let summary = Some(&thought.text).filter(|text| !text.is_empty());
        let summary: Vec<Value> =
            summary.map(|text| json!({"type": "summary_text", "text": text})).into_iter().collect();
        let mut item = fields(json!({"type": "reasoning", "summary": summary}));
        item.put_some("encrypted_content", encrypted);
        self.item(item.into());
        if !thought.text.is_empty() {
            self.event(json!({"type": "agent_reasoning", "text": thought.text}));
        }
        let facts: usize = providers().map(|(_, facts)| facts.as_object().map_or(1, |facts| facts.len())).sum();
        let has_more = facts > usize::from(encrypted.is_some()) || thought.id.is_some() || !thought.extra.is_empty();
        self.losses().dropped_if(has_more, Lost::Metadata);
    }

    /// A call, and its result if the part has it.
    fn call(&mut self, call: &ToolPart) {
        let (id, tool) = (wire::id(&call.call_id, NAME_CHARS), wire::tool_name(&call.name, NAME_CHARS));
        self.losses().renamed_if(id != call.call_id, Lost::CallId);
        self.losses().renamed_if(tool != call.name, Lost::ToolName);
        let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
        let arguments = match (call.input(), raw) {
            (None | Some(Value::Null), None) => {
                self.losses().synthesised(Lost::ToolInput);
                "{}".to_owned()
            }
            (Some(input), None) => json::to_string(input),
            // Malformed input stays as the model wrote it.
            (_, Some(Value::String(raw))) => raw.clone(),
            (_, Some(raw)) => json::to_string(raw),
        };
        let mut item = fields(json!({"type": "function_call", "name": tool, "arguments": arguments, "call_id": id}));
        let openai = call.call_provider_metadata.as_ref().and_then(|metadata| metadata.get("openai"));
        item.put_some("namespace", openai.and_then(|openai| openai.get("namespace")).and_then(Value::as_str));
        self.item(item.into());
        let only_namespace = call.call_provider_metadata.iter().flatten().all(|(provider, facts)| {
            provider == "openai" && facts.as_object().is_some_and(|facts| facts.keys().all(|key| key == "namespace"))
        });
        let has_metadata = call.result_provider_metadata.is_some() || call.tool_metadata.is_some();
        let has_details = has_metadata || !only_namespace || call.title.is_some() || !call.extra.is_empty();
        self.losses().dropped_if(has_details, Lost::CallDetails);
        self.losses().renamed_if(call.provider_executed == Some(true), Lost::ProviderCall);
        self.losses().renamed_if(call.kind == ToolKind::Static, Lost::CallDetails);
        let is_streaming = matches!(call.state, ToolState::InputStreaming { .. });
        self.losses().renamed_if(is_streaming, Lost::CallState);
        // A denial itself shows the answer.
        let is_denied = matches!(call.state, ToolState::OutputDenied { .. });
        let is_asked = |approval: &Approval| call.is_open() || *approval != Approval::default();
        let is_preliminary = matches!(call.state, ToolState::OutputAvailable { preliminary: Some(true), .. });
        let loses_approval = !is_denied && !is_preliminary && call.approval().is_some_and(is_asked);
        self.losses().dropped_if(loses_approval, Lost::Approval);
        own_result(call, &call.call_id).iter().for_each(|result| self.result(result));
    }

    fn text_details(&mut self, text: &TextPart) {
        let has_details = text.citations.is_some() || text.provider_metadata.is_some() || !text.extra.is_empty();
        self.losses().dropped_if(has_details, Lost::Metadata);
    }

    /// Only a `data:` URL has a media type.
    fn image_details(&mut self, file: &FilePart) {
        self.losses()
            .renamed_if(media_type_of(&file.url).unwrap_or("image") != file.media_type, Lost::MediaType);
        let is_at_provider = file.provider_metadata.is_some() || file.provider_reference.is_some();
        let has_details = is_at_provider || !file.extra.is_empty() || file.filename.is_some();
        self.losses().dropped_if(has_details, Lost::Metadata);
    }
}

/// A message of a person. Its pieces may be most of a file, so they are moved.
fn user_message(pieces: Vec<Value>) -> Value {
    let mut message = fields(json!({"type": "message", "role": "user"}));
    message.put("content", pieces);
    message.into()
}

/// Whether our reader classifies a message so.
fn is(message: &Value, class: fn(&Payload<'_>) -> bool) -> bool {
    let text = json::to_string(message);
    serde_json::from_str::<Payload<'_>>(&text).is_ok_and(|payload| class(&payload))
}
