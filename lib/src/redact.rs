//! The one place that every string passes before it is encoded: what is written has been through here.
//!
//! There are no rules yet, so that nothing is changed and nothing is held back.

use serde_json::{Map, Value};

use crate::message::{Part, ToolPart, ToolState};
use crate::record::{Body, Compaction, Outcome, Said, Todo, ToolResult};

/// Removes what must not be written down from a record.
pub(crate) fn scrub(mut body: Body) -> Body {
    each_string(&mut body, &mut scrub_text);
    body
}

/// Removes what must not be written down from one text.
pub(crate) fn scrub_text(_text: &mut String) {}

/// A text that arrives in pieces. Its end is held back while more could make it something that must not be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    text: String,
}

impl Held {
    /// Takes a piece, and gives what can be written.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        self.release()
    }

    /// Whether something is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Gives all that is held back: the part ends, or a second has passed.
    pub(crate) fn release(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        scrub_text(&mut text);
        text
    }
}

/// Shows each text of a body that came from outside. Kinds, ids and our own words are none.
fn each_string(body: &mut Body, see: &mut dyn FnMut(&mut String)) {
    match body {
        Body::User(said)
        | Body::Assistant(said)
        | Body::ToolResult(said)
        | Body::Attachment(said)
        | Body::System(said) => said_strings(said, see),
        Body::Snapshot(snapshot) => value_strings(&mut snapshot.states, see),
        Body::Title(title) => see(&mut title.text),
        Body::Compaction(compaction) => compaction_strings(compaction, see),
        Body::Rewind(rewind) => rewind.reason.iter_mut().for_each(see),
        Body::Restore(restore) => {
            value_strings(&mut restore.files, see);
            restore.todos.iter_mut().flatten().for_each(|todo| todo_strings(todo, see));
        }
        Body::Header(about) => map_strings(about, see),
        Body::Other(value) => value_strings(value, see),
    }
}

fn said_strings(said: &mut Said, see: &mut dyn FnMut(&mut String)) {
    let Said { parts, results, notes, model: _, usage: _, context, todos, thinking, sender, error, metadata, .. } =
        said;
    parts.iter_mut().for_each(|part| part_strings(part, see));
    results.iter_mut().for_each(|result| result_strings(result, see));
    notes.iter_mut().for_each(|note| map_strings(&mut note.about, see));
    context.cwd.iter_mut().for_each(&mut *see);
    context.git_branch.iter_mut().for_each(&mut *see);
    todos.iter_mut().flatten().for_each(|todo| todo_strings(todo, see));
    thinking
        .iter_mut()
        .flat_map(|thinking| &mut thinking.triggers)
        .for_each(|word| value_strings(word, see));
    sender.iter_mut().for_each(&mut *see);
    error.iter_mut().for_each(&mut *see);
    map_strings(metadata, see);
}

fn part_strings(part: &mut Part, see: &mut dyn FnMut(&mut String)) {
    match part {
        Part::Text(part) => {
            see(&mut part.text);
            part.citations.iter_mut().flatten().for_each(|citation| value_strings(citation, see));
            map_strings(&mut part.extra, see);
        }
        Part::Reasoning(part) => {
            see(&mut part.text);
            map_strings(&mut part.extra, see);
        }
        Part::File(part) => {
            see(&mut part.url);
            part.filename.iter_mut().for_each(&mut *see);
            map_strings(&mut part.extra, see);
        }
        Part::ReasoningFile(part) => {
            see(&mut part.url);
            map_strings(&mut part.extra, see);
        }
        Part::SourceUrl(part) => {
            see(&mut part.url);
            part.title.iter_mut().for_each(&mut *see);
            map_strings(&mut part.extra, see);
        }
        Part::SourceDocument(part) => {
            see(&mut part.title);
            part.filename.iter_mut().for_each(&mut *see);
            map_strings(&mut part.extra, see);
        }
        Part::Custom(part) => map_strings(&mut part.extra, see),
        // It holds texts and files only, so that this goes one level down.
        Part::Steering(part) => part.parts.iter_mut().for_each(|part| match part {
            Part::Steering(_) => {}
            part => part_strings(part, see),
        }),
        Part::StepStart => {}
        Part::Tool(call) => call_strings(call, see),
        Part::Data(part) => {
            value_strings(&mut part.data, see);
            map_strings(&mut part.extra, see);
        }
        Part::Other(value) => value_strings(value, see),
    }
}

fn call_strings(call: &mut ToolPart, see: &mut dyn FnMut(&mut String)) {
    call.title.iter_mut().for_each(&mut *see);
    map_strings(&mut call.extra, see);
    match &mut call.state {
        ToolState::InputStreaming { input } => input.iter_mut().for_each(|input| value_strings(input, see)),
        ToolState::InputAvailable { input }
        | ToolState::ApprovalRequested { input, .. }
        | ToolState::ApprovalResponded { input, .. }
        | ToolState::OutputDenied { input, .. } => value_strings(input, see),
        ToolState::OutputAvailable { input, output, .. } => {
            value_strings(input, see);
            output.iter_mut().for_each(|output| value_strings(output, see));
        }
        ToolState::OutputError { input, raw_input, error_text, .. } => {
            input.iter_mut().chain(raw_input).for_each(|input| value_strings(input, see));
            see(error_text);
        }
    }
}

fn result_strings(result: &mut ToolResult, see: &mut dyn FnMut(&mut String)) {
    value_strings(&mut result.output, see);
    match &mut result.outcome {
        Outcome::Done => {}
        Outcome::Failed(why) => see(why),
        Outcome::Denied(why) => why.iter_mut().for_each(&mut *see),
    }
    map_strings(&mut result.about, see);
}

fn compaction_strings(compaction: &mut Compaction, see: &mut dyn FnMut(&mut String)) {
    compaction.summary.iter_mut().for_each(&mut *see);
    for body in compaction.replacement.iter_mut().flatten() {
        // What replaces a conversation is messages: no compaction is inside another.
        if let Body::User(said) | Body::Assistant(said) | Body::ToolResult(said) | Body::System(said) = body {
            said_strings(said, see);
        }
    }
}

fn todo_strings(todo: &mut Todo, see: &mut dyn FnMut(&mut String)) {
    see(&mut todo.content);
    todo.active_form.iter_mut().for_each(&mut *see);
    map_strings(&mut todo.extra, see);
}

fn map_strings(map: &mut Map<String, Value>, see: &mut dyn FnMut(&mut String)) {
    map.values_mut().for_each(|value| value_strings(value, see));
}

/// Every string of a JSON value, however deep.
fn value_strings(value: &mut Value, see: &mut dyn FnMut(&mut String)) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => see(text),
            Value::Array(values) => open.extend(values),
            Value::Object(map) => open.extend(map.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
