//! Builds one message from the bodies of its records.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::model::divider;
use crate::model::error::Result;
use crate::model::message::{DataPart, Message, Part, Role, SteeringPart};
use crate::model::metadata::MessageMetadata;
use crate::model::record::{Body, Compaction, Content, Display, Kind, ToolNote, ToolResult};
use crate::model::settle::{annotate, done, orphan, settle, take_first_final};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;
use crate::view::tool_view::tagged_name;

/// What a message is read from.
#[derive(Clone, Copy)]
pub(crate) struct MessageRecords<'r, 's> {
    pub(crate) records: &'r [RecordRef<'s>],
    /// Records beside the conversation that tell how calls ended after their results.
    pub(crate) late_results: &'r [RecordRef<'s>],
}

/// Reads the bodies of the records and builds one message. `is_called` returns whether a call with this id is on the branch.
pub(crate) fn message(
    id: String,
    role: Role,
    MessageRecords { records, late_results }: MessageRecords<'_, '_>,
    continues: Option<String>,
    is_called: &dyn Fn(&str) -> bool,
) -> Result<Message> {
    let mut builder = MessageBuilder::default();
    for record in records {
        builder.add(role, *record, record.body()?);
    }
    for record in late_results {
        builder.late_results.extend(record.late_result()?.map(|late| (late.call_id.clone(), late)));
    }
    let answer = records.iter().find(|record| record.kind() == Kind::Assistant);
    if let (None, Some(surroundings)) = (&builder.about.model, answer.and_then(|answer| answer.surroundings())) {
        // The context record before it names the model.
        builder.about.model = surroundings.body()?.content().and_then(|content| content.model.clone());
    }
    let parts = builder.finish(is_called);
    let mut metadata = builder.about.metadata();
    metadata.insert("records".to_owned(), records.iter().map(|record| record.id()).collect());
    if let Some(continues) = continues {
        metadata.insert("continues".to_owned(), continues.into());
    }
    Ok(Message { metadata: Some(metadata), ..Message::new(id, role, parts) })
}

#[derive(Default)]
struct MessageBuilder {
    parts: Vec<Part>,
    /// Results by call id, each with its order on the branch.
    results: HashMap<String, VecDeque<(usize, ToolResult)>>,
    results_seen: usize,
    /// How calls ended after their results, by call id.
    late_results: HashMap<String, ToolResult>,
    notes: Vec<ToolNote>,
    about: MessageMetadata,
    /// The answer that the last block belonged to.
    answer: Option<u64>,
    /// The last record was an item of an answer.
    in_items: bool,
    /// A request failed, and no answer followed.
    failed_request: bool,
}

impl MessageBuilder {
    fn add(&mut self, role: Role, record: RecordRef<'_>, body: Body) {
        match body {
            // In an answer, only the tool results of a prompt.
            Body::User(content) if role == Role::Assistant => self.keep(content.results),
            Body::User(content) | Body::Attachment(content) => self.add_content(record, content),
            Body::System(content) if record.is_failure() => self.fail(record, content),
            Body::System(content) => self.add_content(record, content),
            Body::Assistant(content) => self.answer(record, content),
            Body::ToolResult(content) => self.results(record, content),
            Body::Compaction(compaction) => self.compact(record, compaction),
            Body::Rewind(rewind) => {
                // People see no id of what is only beside a message.
                let is_seen = |record: &RecordRef<'_>| {
                    !record.kind().is_about_session() && record.kind() != Kind::Attachment && !record.is_side()
                };
                let to = std::iter::successors(record.parent(), |record| record.parent()).find(is_seen);
                let to = to.map(|to| to.id());
                self.parts.push(divider::rewind(&record.id(), &rewind, to.as_deref()));
            }
            Body::Restore(restore) => {
                self.parts.push(divider::restore(&record.id(), &restore));
                self.about.set_todos(restore.todos);
            }
            Body::Snapshot(_) | Body::Title(_) | Body::Header(_) | Body::Other(_) => {}
        }
    }

    fn add_content(&mut self, record: RecordRef<'_>, mut content: Content) {
        self.parts.append(&mut content.parts);
        self.notes.append(&mut content.notes);
        self.keep(std::mem::take(&mut content.results));
        self.about.add(record.at(), content);
    }

    fn answer(&mut self, record: RecordRef<'_>, mut content: Content) {
        // An imported answer states the kind of its failure; only the record of a failure alone has a kind of its own.
        self.about.error |= record.is_failure() || content.error.is_some();
        if record.is_message() {
            return self.add_content(record, content);
        }
        let group = record.keys(KeyRole::Group).next();
        let continues = record.is_item() && self.in_items;
        let new_answer = !continues && (group.is_none() || group != self.answer);
        (self.answer, self.in_items) = (group, record.is_item());
        if new_answer {
            self.note_success(record);
            self.parts.push(Part::StepStart);
        }
        self.parts.extend(content.parts.drain(..).map(done));
        // Each block of an answer repeats what the whole cost, more or less finished.
        match (content.usage.take(), self.about.usages.last_mut()) {
            (Some(usage), Some(known)) if !new_answer => {
                *known = if usage.output >= known.output { usage } else { *known }
            }
            (usage, _) => self.about.usages.extend(usage),
        }
        self.notes.append(&mut content.notes);
        self.keep(std::mem::take(&mut content.results));
        self.about.add(record.at(), content);
    }

    /// An answer after failed requests: the agent has tried again, and the turn has not failed.
    fn note_success(&mut self, answer: RecordRef<'_>) {
        if answer.is_failure() {
            return;
        }
        self.failed_request = false;
        if let Some(Part::Data(before)) = self.parts.last_mut() {
            divider::mark_retried(before);
        }
    }

    /// The summary may be in a record of its own, after the one that cuts; between them is at most what only the model sees.
    fn compact(&mut self, record: RecordRef<'_>, compaction: Compaction) {
        let is_seen = |above: &RecordRef<'_>| above.kind() != Kind::Attachment;
        if let (Some(Part::Data(cut)), false) = (self.parts.last_mut(), compaction.cuts)
            && cut.kind == "compaction"
            && cut.data["summary"].is_null()
            && let Some(above) = std::iter::successors(record.parent(), |above| above.parent()).find(is_seen)
            && cut.data["record"] == *above.id()
        {
            cut.data["summary"] = compaction.summary.into();
            return;
        }
        self.parts.push(divider::compaction(&record.id(), &compaction));
    }

    fn fail(&mut self, record: RecordRef<'_>, content: Content) {
        let is_stopped = content.display == Some(Display::Interrupted);
        let is_again = |known: &DataPart| {
            // Records beside the conversation are attempts of one request.
            divider::is_failure_of(known, &content) && (record.is_side() || known.data["text"] == *content.text())
        };
        match self.parts.last_mut() {
            Some(Part::Data(known)) if !is_stopped && is_again(known) => divider::add_retry(known, &content),
            _ => self.parts.push(divider::failure(&record.id(), &content)),
        }
        self.failed_request |= !record.is_side() && !is_stopped;
        let content = Content { display: None, ..content };
        self.about.add(record.at(), content);
    }

    fn results(&mut self, record: RecordRef<'_>, mut content: Content) {
        self.in_items = false;
        if !content.results.is_empty() && !content.parts.is_empty() {
            // A message while the tools ran.
            let (id, parts) = (record.id().into_owned(), std::mem::take(&mut content.parts));
            self.parts.push(Part::Steering(SteeringPart { id, parts, ..SteeringPart::default() }));
        }
        self.add_content(record, content);
    }

    fn keep(&mut self, results: Vec<ToolResult>) {
        for result in results {
            self.results_seen += 1;
            self.results.entry(result.call_id.clone()).or_default().push_back((self.results_seen, result));
        }
    }

    /// Adds each result to its call; results without a call on the branch follow alone.
    fn finish(&mut self, is_called: &dyn Fn(&str) -> bool) -> Vec<Part> {
        self.about.error |= self.failed_request;
        let mut parts = std::mem::take(&mut self.parts);
        name_pictures(&mut parts);
        for part in &mut parts {
            if let Part::Tool(call) = part
                && call.is_open()
                && let Some(results) = self.results.get_mut(&call.call_id)
                && let Some(result) = take_first_final(results)
            {
                let late = self.late_results.remove(&call.call_id);
                settle(call, late.map_or(result.clone(), |late| ToolResult { about: result.about, ..late }));
            }
        }
        let left = self.results.drain().filter(|(call, _)| !is_called(call)).flat_map(|(_, results)| results);
        let mut left: Vec<(usize, ToolResult)> = left.collect();
        left.sort_by_key(|(order, _)| *order);
        parts.extend(left.into_iter().map(|(_, result)| orphan(result)));
        annotate(std::mem::take(&mut self.notes), &mut parts);
        parts
    }
}

/// Gives pictures the names that are in the tags before them, as Codex writes them.
fn name_pictures(parts: &mut [Part]) {
    for at in 0..parts.len() {
        let name = tagged_name(parts, at).map(str::to_owned);
        if let (Part::File(file), Some(name)) = (&mut parts[at], name) {
            file.filename.get_or_insert(name);
        }
    }
}
