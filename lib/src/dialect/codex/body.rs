//! What a line says.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::kind::{Bare, Item, Type};
use super::line::{Line, Payload};
use super::{context, output};
use crate::model::lenient::{self, Count, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, ToolPart, ToolState};
use crate::model::record::{Body, Compaction, Content, Context, Rewind, Snapshot};

/// The envelope, its content left as text.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Envelope<'a> {
    payload: Option<&'a RawValue>,
}

/// The fields of an item, of a compaction and of a step back.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ItemPayload<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    id: Text<'a>,
    call_id: Text<'a>,
    name: Text<'a>,
    namespace: Text<'a>,
    status: Text<'a>,
    message: Text<'a>,
    encrypted_content: Text<'a>,
    revised_prompt: Text<'a>,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    num_turns: Count,
    replacement_history: Option<&'a RawValue>,
    model: Text<'a>,
    cwd: Text<'a>,
}

pub(super) fn of(text: &str) -> Body {
    let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return Body::Other(text.into()) };
    let of_type = Type::of(&line);
    let envelope = serde_json::from_str::<Envelope<'_>>(text).ok().and_then(|envelope| envelope.payload);
    let inner = if matches!(of_type, Type::Bare(_)) { text } else { envelope.map_or("{}", RawValue::get) };
    let content = || serde_json::from_str::<ItemPayload<'_>>(inner).unwrap_or_default();
    match of_type {
        Type::Item | Type::Bare(Bare::Item) => item(text, inner, content()),
        Type::Compacted => Body::Compaction(compaction(content())),
        Type::Event if content().kind.0.as_deref() == Some("thread_rolled_back") => {
            let turns = content().num_turns.0.unwrap_or(0);
            let plural = if turns == 1 { "" } else { "s" };
            Body::Rewind(Rewind { from: None, reason: Some(format!("{turns} turn{plural} taken back")) })
        }
        Type::Surroundings if content().model.0.is_some() => surroundings(inner, content()),
        Type::Meta | Type::Surroundings | Type::Event | Type::Usage | Type::Bare(Bare::Meta | Bare::State) => {
            match serde_json::from_str(inner) {
                Ok(Value::Object(facts)) => Body::Header(facts),
                _ => Body::Header(Map::new()),
            }
        }
        Type::Untyped | Type::Unknown(_) => other(text),
    }
}

fn other(text: &str) -> Body {
    Body::Other(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// Where and by whom the answers that follow are given.
fn surroundings(inner: &str, content: ItemPayload<'_>) -> Body {
    let data = Part::data("context", serde_json::from_str::<Value>(inner).unwrap_or_default());
    let context = Context { cwd: content.cwd.owned(), ..Context::default() };
    Body::Attachment(Content { parts: vec![data], model: content.model.owned(), context, ..Content::default() })
}

/// Without a `replacement_history` the prompts and the summary are what the model still sees.
fn compaction(content: ItemPayload<'_>) -> Compaction {
    let items = content
        .replacement_history
        .and_then(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()).ok());
    let body =
        |item: &RawValue| self::item(item.get(), item.get(), serde_json::from_str(item.get()).unwrap_or_default());
    let replacement = items.map(|items| items.into_iter().map(body).collect());
    Compaction {
        summary: content.message.owned(),
        replacement,
        cuts: true,
        keeps_prompts: true,
        ..Compaction::default()
    }
}

fn item(text: &str, inner: &str, content: ItemPayload<'_>) -> Body {
    let of_model = |part: Part| Body::Assistant(Content { parts: vec![part], ..Content::default() });
    match content.kind.0.as_deref().and_then(Item::named) {
        Some(Item::Message) => message(inner, content),
        Some(Item::Reasoning) => of_model(reasoning(content)),
        Some(Item::Call) => of_model(call(content)),
        Some(Item::Hosted) => of_model(hosted(content)),
        Some(Item::Result) => {
            let call = content.call_id.owned().unwrap_or_default();
            let result = output::result(call, content.output.or(content.tools));
            Body::ToolResult(Content { results: vec![result], ..Content::default() })
        }
        Some(Item::Context) => {
            let data = Part::data("context", serde_json::from_str::<Value>(inner).unwrap_or_default());
            // A compaction that only the model can read; the tools are told anew.
            let to_model = content.kind.0.as_deref() != Some("additional_tools");
            Body::Attachment(Content { parts: vec![data], to_model, ..Content::default() })
        }
        Some(Item::Snapshot) => {
            Body::Snapshot(Snapshot { extra: serde_json::from_str(inner).unwrap_or_default(), ..Snapshot::default() })
        }
        None => other(text),
    }
}

fn message(inner: &str, content: ItemPayload<'_>) -> Body {
    let said = Content { parts: parts(content.content), ..Content::default() };
    let payload = serde_json::from_str::<Payload<'_>>(inner).unwrap_or_default();
    match payload.role.0.as_deref() {
        Some("assistant") => Body::Assistant(said),
        Some("user") if context::is_prompt(&payload) => Body::User(said),
        Some("user") => Body::Attachment(Content { to_model: context::is_told(&payload), ..said }),
        role => Body::Attachment(Content { instructs: matches!(role, Some("developer" | "system")), ..said }),
    }
}

/// The parts of a `content`: a text, or a list of pieces.
fn parts(content: Option<&RawValue>) -> Vec<Part> {
    match content.map(lenient::value) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![Part::text(text)],
        Some(Value::Array(pieces)) => pieces.into_iter().map(piece).collect(),
        Some(other) => vec![piece(other)],
    }
}

fn piece(piece: Value) -> Part {
    let text = |key| piece.get(key).and_then(Value::as_str);
    match (text("type"), text("text").or(text("refusal")), text("image_url").or(text("file_url"))) {
        (Some("input_text" | "output_text" | "text" | "refusal"), Some(content), _) => Part::text(content),
        (Some("input_image" | "image" | "input_file"), _, Some(url)) => file(url, text("filename")),
        (Some("input_file"), _, None) => match text("file_data") {
            Some(url) => file(url, text("filename")),
            None => Part::data("content", piece),
        },
        _ => Part::data("content", piece),
    }
}

fn file(url: &str, name: Option<&str>) -> Part {
    let described = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    let media_type = described.filter(|media_type| media_type.contains('/')).unwrap_or("image").to_owned();
    Part::File(FilePart { media_type, url: url.to_owned(), filename: name.map(str::to_owned), ..FilePart::default() })
}

/// What the model thought: the summary that people may read, then the thoughts themselves where they were told.
fn reasoning(content: ItemPayload<'_>) -> Part {
    let texts = |raw: Option<&RawValue>| match raw.map(lenient::value) {
        Some(Value::Array(pieces)) => {
            let texts = pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str).map(str::to_owned));
            texts.collect()
        }
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    };
    let said = [texts(content.summary), texts(content.content)].concat();
    let mut openai = Map::new();
    openai.extend(content.id.owned().map(|id| ("itemId".to_owned(), id.into())));
    let encrypted = content.encrypted_content.owned();
    openai.extend(encrypted.map(|text| ("reasoningEncryptedContent".to_owned(), text.into())));
    Part::Reasoning(ReasoningPart {
        text: said.join("\n\n"),
        provider_metadata: of_openai(openai),
        ..ReasoningPart::default()
    })
}

fn of_openai(facts: Map<String, Value>) -> Option<Map<String, Value>> {
    (!facts.is_empty()).then(|| Map::from_iter([("openai".to_owned(), facts.into())]))
}

fn call(content: ItemPayload<'_>) -> Part {
    let input = match (content.arguments, content.input, content.action) {
        // Arguments are JSON in a string; what the model got wrong stays as it wrote it.
        (Some(arguments), _, _) => match lenient::value(arguments) {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            other => other,
        },
        (None, Some(input), _) => lenient::value(input),
        (None, None, Some(action)) => lenient::value(action),
        (None, None, None) => Value::Null,
    };
    let name = content.name.owned().unwrap_or_else(|| tool_of(content.kind.0.as_deref()));
    let id = content.call_id.owned().or_else(|| content.id.clone().owned()).unwrap_or_default();
    let mut openai = Map::new();
    openai.extend(content.id.owned().map(|id| ("itemId".to_owned(), id.into())));
    openai.extend(content.namespace.owned().map(|namespace| ("namespace".to_owned(), namespace.into())));
    let mut part = ToolPart::dynamic(name, id, ToolState::called(input));
    part.call_provider_metadata = of_openai(openai);
    part.into()
}

/// `web_search_call` is a call of `web_search`.
fn tool_of(kind: Option<&str>) -> String {
    kind.and_then(|kind| kind.strip_suffix("_call")).unwrap_or("unknown").to_owned()
}

/// A call that the provider ran: its result is in the answer that follows, or in the item itself.
fn hosted(content: ItemPayload<'_>) -> Part {
    let name = tool_of(content.kind.0.as_deref());
    let input = match (content.action, content.revised_prompt.owned()) {
        (Some(action), _) => lenient::value(action),
        (None, Some(prompt)) => Value::from_iter([("prompt", prompt)]),
        (None, None) => Value::Null,
    };
    let state = match content.status.0.as_deref() {
        Some("failed") => ToolState::failed(input, "the provider says that it failed"),
        _ => ToolState::OutputAvailable {
            input,
            output: content.result.map(lenient::value),
            preliminary: None,
            approval: None,
        },
    };
    let mut part = ToolPart::dynamic(name, content.id.owned().unwrap_or_default(), state);
    part.provider_executed = Some(true);
    part.into()
}
