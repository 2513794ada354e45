//! The contents that an agent recorded, unchanged and in order; only what the API would refuse is repaired: the results of
//! one answer become one content.
//!
//! The history has noted the repairs already: calls without a result, results without a call, repeated ids.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value, json};

use super::super::{History, NO_RESULT, Turn, TurnItem, ViewOutput};
use crate::model::error::Result;
use crate::model::json;
use crate::model::record::ToolResult;
use crate::view::history::unique::UniqueIds;

pub(super) fn write(history: &History<'_>, out: &mut ViewOutput<'_>) -> Result<()> {
    let results = history.turns.iter().flat_map(|turn| &turn.items).filter_map(TurnItem::as_result);
    let results = results.map(|result| (result.call_id.as_str(), result)).collect();
    let (open, ids) = (Calls::default(), UniqueIds::default());
    let mut sender = ContentSender { results, open, ids, last: None, has_joined: false, has_begun: false, out };
    let mut seen = HashSet::new();
    for turn in &history.turns {
        for record in turn.records.iter().filter(|record| seen.insert(record.order())) {
            let contents = record.contents()?.unwrap_or_default();
            contents.into_iter().for_each(|content| sender.take(content, turn));
        }
    }
    sender.close();
    sender.send_last();
    Ok(())
}

struct ContentSender<'h, 'o, 'e> {
    /// The results in the history, by the ids of their calls.
    results: HashMap<&'h str, &'h ToolResult>,
    /// Calls that no response answers yet.
    open: Calls,
    /// The ids of all calls so far.
    ids: UniqueIds,
    /// The content before: a message in mid-turn is added to it, and further results of the same answer.
    last: Option<Map<String, Value>>,
    /// Results were added to the content before.
    has_joined: bool,
    has_begun: bool,
    out: &'o mut ViewOutput<'e>,
}

/// Calls of one answer, each until it is answered.
#[derive(Default)]
struct Calls {
    all: Vec<Option<OpenCall>>,
    by_id: HashMap<String, VecDeque<usize>>,
    by_name: HashMap<String, VecDeque<usize>>,
}

impl Calls {
    fn add(&mut self, call: OpenCall) {
        let at = self.all.len();
        self.by_id.entry(call.id.clone()).or_default().push_back(at);
        self.by_name.entry(call.name.clone()).or_default().push_back(at);
        self.all.push(Some(call));
    }

    /// The call that a response is for: by id, and by the tool's name where one of them has none.
    fn answered(&mut self, id: &str, name: &str) -> Option<OpenCall> {
        let Calls { all, by_id, by_name } = self;
        let mut take = |places: Option<&mut VecDeque<usize>>, fits: &dyn Fn(&OpenCall) -> bool| {
            let places = places?;
            while let Some(at) = places.pop_front() {
                if let Some(open) = all[at].take_if(|open| fits(open)) {
                    return Some(open);
                }
            }
            None
        };
        let by_id = take(by_id.get_mut(id).filter(|_| !id.is_empty()), &|_| true);
        by_id.or_else(|| take(by_name.get_mut(name), &|open| id.is_empty() || open.id.is_empty()))
    }
}

struct OpenCall {
    /// The recorded id; empty where the API left it out.
    id: String,
    /// The id that is sent.
    own: String,
    name: String,
}

impl ContentSender<'_, '_, '_> {
    fn take(&mut self, content: Value, turn: &Turn<'_>) {
        let Value::Object(mut content) = content else { return };
        let Some(Value::Array(parts)) = content.get_mut("parts").map(Value::take) else { return };
        let is_model = content.get("role").is_some_and(|role| role == "model");
        let responds = !is_model && parts.iter().any(|part| part.get("functionResponse").is_some());
        if !responds {
            self.close();
        }
        let parts: Vec<Value> = parts.into_iter().filter_map(|part| self.part(part, is_model)).collect();
        if parts.is_empty() || (responds && self.join_results(&parts, turn)) {
            return;
        }
        if !content.contains_key("role") {
            let before = self.last.as_mut().filter(|last| last.get("role").is_some_and(|role| role == "user"));
            if let Some(Value::Array(known)) = before.and_then(|last| last.get_mut("parts")) {
                known.extend(parts);
                return;
            }
            content.shift_insert(0, "role".to_owned(), "user".into());
        }
        if is_model && !self.has_begun {
            self.out.beginning(turn, super::beginning());
        }
        content.insert("parts".to_owned(), parts.into());
        self.send(content);
    }

    /// Adds results to the content with the first results of the same answer, because the API wants them in one.
    fn join_results(&mut self, parts: &[Value], turn: &Turn<'_>) -> bool {
        let before = self.last.as_mut().and_then(|last| last.get_mut("parts")).and_then(Value::as_array_mut);
        let is_response = |part: &Value| part.get("functionResponse").is_some();
        let Some(known) = before.filter(|known| known.iter().any(is_response)) else { return false };
        // A message in mid-turn follows the results.
        let is_result = |part: &Value| part.get("text").is_none();
        let end = known.iter().rposition(is_result).map_or(0, |last| last + 1);
        known.splice(end..end, parts.iter().cloned());
        if !std::mem::replace(&mut self.has_joined, true) {
            self.out.note(turn, "the results of one answer are sent as one content");
        }
        true
    }

    /// A part as it is, or `None` where there is nothing to send.
    fn part(&mut self, part: Value, is_model: bool) -> Option<Value> {
        let Value::Object(mut part) = part else { return None };
        let signed = part.contains_key("thoughtSignature");
        if let Some(call) = part.get_mut("functionCall") {
            self.call(call.as_object_mut().filter(|_| is_model)?);
        } else if let Some(response) = part.get_mut("functionResponse") {
            self.response(response.as_object_mut()?)?;
        } else if let Some(text) = part.get_mut("text") {
            if !text.is_string() {
                *text = json::to_string(text).into();
            }
            if text == "" && !signed {
                return None;
            }
        }
        (!part.is_empty()).then_some(part.into())
    }

    fn call(&mut self, call: &mut Map<String, Value>) {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, mut name) = (text("id"), text("name"));
        if name.is_empty() {
            name = "unknown".to_owned();
            call.insert("name".to_owned(), name.clone().into());
        }
        if let Some(args) = call.get_mut("args").filter(|args| !json::is_object(args) && !args.is_null()) {
            *args = json!({"input": args.take()});
        }
        let own = if id.is_empty() { String::new() } else { self.ids.take(&id, &id) };
        if own != id {
            call.insert("id".to_owned(), own.clone().into());
        }
        self.open.add(OpenCall { id, own, name });
    }

    /// A response to an open call, or `None`.
    fn response(&mut self, response: &mut Map<String, Value>) -> Option<()> {
        let text = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("id"), text("name"));
        let open = self.open.answered(id, name)?;
        if open.own.is_empty() {
            response.shift_remove("id");
        } else if id != open.own {
            response.insert("id".to_owned(), open.own.into());
        }
        let given = response.entry("response").or_insert(Value::Null);
        if !json::is_object(given) {
            *given = json!({"output": given.take()});
        }
        Some(())
    }

    /// Closes every open call by the result that the history has for it.
    fn close(&mut self) {
        let mut parts: Vec<Value> = Vec::new();
        for open in std::mem::take(&mut self.open).all.into_iter().flatten() {
            let known = self.results.get(open.own.as_str()).or_else(|| self.results.get(open.name.as_str()));
            let given = known.map_or_else(|| json!({"error": NO_RESULT}), |result| super::response_of(result).0);
            let mut response = json!({"name": open.name, "response": given});
            if !open.own.is_empty() {
                response["id"] = open.own.into();
            }
            parts.push(json!({"functionResponse": response}));
        }
        if parts.is_empty() {
            return;
        }
        // After the responses to calls of the same answer, if there are any.
        if let Some(Value::Array(known)) = self.last.as_mut().and_then(|last| last.get_mut("parts"))
            && let Some(at) = known.iter().rposition(|part| part.get("functionResponse").is_some())
        {
            known.splice(at + 1..at + 1, parts);
            return;
        }
        self.send(Map::from_iter([("role".to_owned(), "user".into()), ("parts".to_owned(), parts.into())]));
    }

    fn send(&mut self, content: Map<String, Value>) {
        self.send_last();
        (self.last, self.has_joined, self.has_begun) = (Some(content), false, true);
    }

    fn send_last(&mut self) {
        if let Some(content) = self.last.take() {
            self.out.message(content.into());
        }
    }
}
