//! Builds turns from records: joins the blocks of one answer and assigns results to calls.

use hashbrown::HashMap;

use super::closing::TurnDraft;
use super::start::ContextPolicy;
use super::unique::UniqueIds;
use super::window::is_model;
use super::{Note, Turn, TurnItem, TurnOrigin};
use crate::model::message::{Part, Role, ToolPart};
use crate::model::record::{Body, Content, ToolResult};
use crate::model::wire::own_result;
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;

/// Whether a part has no content for a model.
pub(super) fn is_empty(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.text.is_empty(),
        Part::Reasoning(part) => part.text.is_empty() && part.provider_metadata.is_none(),
        Part::StepStart => true,
        _ => false,
    }
}

/// The calls of one answer that share an id, which is usually one.
#[derive(Default)]
struct CallsOfId {
    draft: usize,
    /// Their places among the items.
    items: Vec<usize>,
    /// All items before this one have a final result.
    first_open: usize,
}

#[derive(Default)]
pub(super) struct TurnDrafts<'s> {
    context: ContextPolicy,
    drafts: Vec<TurnDraft<'s>>,
    /// The calls with each id in the latest answer that has any.
    calls: HashMap<String, CallsOfId>,
    /// The ids that calls have now.
    ids: UniqueIds,
    /// Results whose call has not been seen.
    early: HashMap<String, Vec<(RecordRef<'s>, ToolResult)>>,
    /// The draft that the last record was a block of, until another turn begins.
    answer: Option<usize>,
    /// The last record was an item of an answer.
    in_items: bool,
    /// How many drafts come before the last failure that the agent reported in the model's place.
    after_failure: usize,
    pub(super) notes: Vec<Note>,
}

impl<'s> TurnDrafts<'s> {
    pub(super) fn new(context: ContextPolicy) -> Self {
        TurnDrafts { context, ..TurnDrafts::default() }
    }

    /// Adds the turns of a record.
    pub(super) fn take(&mut self, record: RecordRef<'s>, body: Body) {
        self.add(record, body, record.keys(KeyRole::Group).next(), record.is_item());
    }

    /// Adds a body of a compaction's replacement. Consecutive answers are one.
    pub(super) fn replace(&mut self, compaction: RecordRef<'s>, body: Body) {
        self.add(compaction, body, None, true);
    }

    /// Adds a summary of the history before it.
    pub(super) fn summary(&mut self, record: RecordRef<'s>, summary: Option<String>) {
        let parts = summary.map(Part::text).into_iter().collect();
        self.add_turn(record, Role::User, TurnOrigin::Summary, Content { parts, ..Content::default() });
    }

    /// `group` is the answer that the record is a block of; `is_item` is whether it is an item of an answer.
    fn add(&mut self, record: RecordRef<'s>, body: Body, group: Option<u64>, is_item: bool) {
        match body {
            Body::User(mut content) => {
                self.results(record, std::mem::take(&mut content.results));
                self.add_turn(record, Role::User, TurnOrigin::Prompt, content);
            }
            // The agent reports a failure in the model's place.
            Body::Assistant(content) if record.is_failure() && content.model.is_none() => {
                self.after_failure = self.drafts.len();
                self.notes.push(Note::new(record, "it reports a failure; it is not sent"));
            }
            Body::Assistant(content) => self.answer(record, content, group, is_item),
            Body::ToolResult(mut content) => {
                self.in_items = false;
                self.results(record, std::mem::take(&mut content.results));
                // A message while the tools ran.
                if !content.parts.is_empty() {
                    self.add_turn(record, Role::User, TurnOrigin::MidTurn, content);
                }
            }
            Body::Attachment(mut content) => {
                self.results(record, std::mem::take(&mut content.results));
                let origin = if content.to_model { TurnOrigin::Injected } else { TurnOrigin::Context };
                if !content.to_model {
                    // The agent's own data about it was not sent to the model.
                    content.parts.retain(|part| !matches!(part, Part::Data(data) if data.kind == "attachment"));
                    if content.parts.is_empty() {
                        return;
                    }
                }
                let is_sent = content.to_model || self.context == ContextPolicy::Include;
                match (is_sent, content.is_attached) {
                    (true, true) => self.attach(record, origin, content.parts),
                    (true, false) => {
                        // What the agent sends again is for every model; of the APIs, one knows the system in that place.
                        let is_system = content.instructs && !content.to_model;
                        self.add_turn(record, if is_system { Role::System } else { Role::User }, origin, content);
                    }
                    (false, true) => self.omit_attached(),
                    (false, false) => {}
                }
            }
            // What a person did beside the conversation, or how it was stopped.
            Body::System(content) if content.to_model && content.display.is_some() => {
                self.add_turn(record, Role::User, TurnOrigin::Injected, content);
            }
            Body::System(content) if content.to_model && !record.is_failure() => {
                self.add_turn(record, Role::System, TurnOrigin::Instruction, content);
            }
            // Notices are for people.
            Body::System(_) => {}
            Body::Compaction(compaction) => {
                if compaction.summary.is_some() {
                    self.summary(record, compaction.summary);
                }
            }
            Body::Other(_) if !record.is_side() => {
                self.notes.push(Note::new(record, "its kind is unknown; it is not sent"));
            }
            Body::Other(_)
            | Body::Snapshot(_)
            | Body::Title(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_) => {}
        }
    }

    /// Puts an attachment before all that was said since the last answer and its results, after earlier attachments: in the
    /// prompt, if nothing else stands there.
    ///
    /// ```text
    /// records   answer  command  prompt  attachment      prompt  attachment
    /// sent      answer  attachment  command  prompt      [attachment  prompt]
    /// ```
    fn attach(&mut self, record: RecordRef<'s>, origin: TurnOrigin, parts: Vec<Part>) {
        let start = self.attachments_start();
        let can_hold = |draft: &TurnDraft<'_>| draft.attached > 0 || draft.turn.origin == TurnOrigin::Prompt;
        if !self.drafts.get(start).is_some_and(can_hold) {
            self.answer = None;
            self.in_items = false;
            self.drafts.insert(start, TurnDraft::new(Turn::new(Role::User, origin)));
        }
        let TurnDraft { turn, attached, .. } = &mut self.drafts[start];
        let parts = parts.into_iter().filter(|part| !is_empty(part)).map(TurnItem::Part);
        let before = turn.items.len();
        turn.items.splice(*attached..*attached, parts);
        *attached += turn.items.len() - before;
        turn.begins_attached = true;
        turn.records.push(record);
    }

    /// Where attachments go: after the last answer, or after what the agent reported in its place.
    fn attachments_start(&self) -> usize {
        let answer = self.drafts.iter().rposition(|draft| draft.turn.role == Role::Assistant);
        answer.map_or(0, |at| at + 1).max(self.after_failure)
    }

    /// An attachment that this history leaves out: the agent sends it between the two texts that are now next to each other.
    fn omit_attached(&mut self) {
        let start = self.attachments_start();
        if let Some(draft) = self.drafts.get_mut(start) {
            draft.turn.begins_attached = true;
        }
    }

    /// Adds a turn that is not the model's.
    fn add_turn(&mut self, record: RecordRef<'s>, role: Role, origin: TurnOrigin, content: Content) {
        (self.answer, self.in_items) = (None, false);
        let (sender, instructs) = (content.sender, content.instructs);
        let mut turn = Turn { records: vec![record], sender, instructs, ..Turn::new(role, origin) };
        for part in content.parts {
            match part {
                Part::Tool(call) => {
                    self.notes.push(Note::new(
                        record,
                        format!("a call of {} that is not the model's is not sent", call.name),
                    ));
                }
                Part::StepStart => {}
                part => self.push_part(&mut turn, record, part),
            }
        }
        if turn.items.is_empty() {
            self.notes.push(Note::new(record, "it is empty; it is not sent"));
        } else {
            self.push(TurnDraft::new(turn));
        }
    }

    /// Items are large and turns short: unused capacity would be most of a long history.
    fn push(&mut self, draft: TurnDraft<'s>) {
        if let Some(before) = self.drafts.last_mut() {
            before.turn.items.shrink_to_fit();
        }
        self.drafts.push(draft);
    }

    fn push_part(&mut self, turn: &mut Turn<'s>, record: RecordRef<'s>, part: Part) {
        if is_empty(&part) {
            self.notes.push(Note::new(record, "an empty part is not sent"));
        } else {
            turn.items.push(TurnItem::Part(part));
        }
    }

    fn answer(&mut self, record: RecordRef<'s>, content: Content, group: Option<u64>, is_item: bool) {
        let same = |draft: &TurnDraft<'_>| group.is_some() && draft.group == group;
        let continued = self.answer.filter(|at| (is_item && self.in_items) || same(&self.drafts[*at]));
        let mut at = match continued {
            Some(at) => at,
            None => self.begin_answer(record, group),
        };
        let first = at;
        self.in_items = is_item;
        let mut steering = Vec::new();
        for part in content.parts {
            match part {
                Part::StepStart if self.drafts[at].turn.items.is_empty() => {}
                Part::StepStart => {
                    self.finish_step(record, &mut steering);
                    at = self.begin_answer(record, group);
                }
                Part::Tool(call) => self.call(record, at, call),
                Part::Steering(content) => steering.push(content.parts),
                part => {
                    let mut draft =
                        std::mem::replace(&mut self.drafts[at].turn, Turn::new(Role::Assistant, TurnOrigin::Answer));
                    self.push_part(&mut draft, record, part);
                    self.drafts[at].turn = draft;
                }
            }
        }
        // Each step of a record is the same model's.
        let model = content.model.filter(|model| !model.is_empty());
        for turn in self.drafts[first..=at].iter_mut().map(|draft| &mut draft.turn) {
            if turn.role == Role::Assistant {
                turn.model = model.clone().or(turn.model.take());
                turn.sender = content.sender.clone().or(turn.sender.take());
            }
        }
        let turn = &mut self.drafts[at].turn;
        if turn.records.last() != Some(&record) {
            turn.records.push(record);
        }
        self.results(record, content.results);
        self.finish_step(record, &mut steering);
    }

    fn begin_answer(&mut self, record: RecordRef<'s>, group: Option<u64>) -> usize {
        let turn = Turn { records: vec![record], ..Turn::new(Role::Assistant, TurnOrigin::Answer) };
        self.push(TurnDraft { group, ..TurnDraft::new(turn) });
        let at = self.drafts.len() - 1;
        self.answer = Some(at);
        at
    }

    /// Adds messages that arrived during a step after its results.
    fn finish_step(&mut self, record: RecordRef<'s>, steering: &mut Vec<Vec<Part>>) {
        for parts in steering.drain(..) {
            self.add_turn(record, Role::User, TurnOrigin::MidTurn, Content { parts, ..Content::default() });
        }
    }

    fn call(&mut self, record: RecordRef<'s>, at: usize, mut call: Box<ToolPart>) {
        let id = std::mem::take(&mut call.call_id);
        let (first, stem) = if id.is_empty() { ("call_1", "call") } else { (id.as_str(), id.as_str()) };
        let (result, own) = (own_result(&call, &id), self.ids.take(first, stem));
        // The id of a call that the provider ran is not needed.
        if own != id && !(id.is_empty() && call.provider_executed == Some(true)) {
            let what = if id.is_empty() { "has no id" } else { "has an id that was used before" };
            self.notes.push(Note::new(record, format!("a call of {} {what}; it is sent as {own}", call.name)));
        }
        call.call_id = own;
        if call.name.is_empty() {
            self.notes.push(Note::new(record, "a call has no name; it is sent as unknown"));
            call.name = "unknown".to_owned();
        }
        let item = self.drafts[at].turn.items.len();
        self.drafts[at].turn.items.push(TurnItem::Call(call));
        let waiting = self.early.remove(&id).unwrap_or_default();
        let calls = self.calls.entry(id).or_default();
        if calls.draft != at {
            *calls = CallsOfId { draft: at, ..CallsOfId::default() };
        }
        calls.items.push(item);
        waiting.into_iter().for_each(|(record, result)| self.result(record, result));
        if let Some(result) = result {
            self.give((at, item), record, result);
        }
    }

    fn results(&mut self, record: RecordRef<'s>, results: Vec<ToolResult>) {
        results.into_iter().for_each(|result| self.result(record, result));
    }

    /// Calls of one answer that share an id get their results in order.
    pub(super) fn result(&mut self, record: RecordRef<'s>, result: ToolResult) {
        let Some(CallsOfId { draft, items, first_open }) = self.calls.get_mut(&result.call_id) else {
            self.early.entry(result.call_id.clone()).or_default().push((record, result));
            return;
        };
        let results = &self.drafts[*draft].results;
        let is_open =
            |item: &usize| results.get(*item).and_then(Option::as_deref).is_none_or(|(_, known)| known.preliminary);
        *first_open += items[*first_open..].iter().take_while(|item| !is_open(item)).count();
        let place = items.get(*first_open).or(items.last()).map(|item| (*draft, *item));
        if let Some(place) = place {
            self.give(place, record, result);
        }
    }

    fn given(&self, at: usize, item: usize) -> Option<&(RecordRef<'s>, ToolResult)> {
        self.drafts[at].results.get(item)?.as_deref()
    }

    /// The records that results of calls with this id came from.
    pub(super) fn sources(&self, call: &str) -> impl Iterator<Item = RecordRef<'s>> {
        let calls = self.calls.get(call).into_iter();
        let given = calls.flat_map(|calls| calls.items.iter().filter_map(|item| self.given(calls.draft, *item)));
        given.map(|(record, _)| *record)
    }

    /// The first final result of a call counts, of preliminary ones the last. A result before the call counts only if there is
    /// none after it: it may answer an earlier call with that id.
    fn give(&mut self, (at, item): (usize, usize), record: RecordRef<'s>, result: ToolResult) {
        let made = self.drafts[at].turn.records.first().map(|record| record.order());
        let is_early = |record: &RecordRef<'_>| made.is_some_and(|made| record.order() < made);
        let results = &mut self.drafts[at].results;
        if results.len() <= item {
            results.resize_with(item + 1, || None);
        }
        match results[item].as_deref() {
            Some((known_in, known)) if !known.preliminary && (!is_early(known_in) || is_early(&record)) => {
                if !result.preliminary {
                    let what = format!("another result of call {} is not sent; the first one counts", result.call_id);
                    self.notes.push(Note::new(record, what));
                }
            }
            _ => {
                if let Some(calls) = self.calls.get_mut(&result.call_id).filter(|calls| calls.draft == at)
                    && result.preliminary
                {
                    let place = calls.items.binary_search(&item).unwrap_or(0);
                    calls.first_open = calls.first_open.min(place);
                }
                results[item] = Some(Box::new((record, result)));
            }
        }
    }

    /// The calls without a result, by their original ids.
    pub(super) fn open_calls(&self) -> Vec<String> {
        let open = self
            .calls
            .iter()
            .filter(|(_, calls)| calls.items.iter().any(|item| self.given(calls.draft, *item).is_none()));
        open.map(|(id, _)| id.clone()).collect()
    }

    /// The records of all turns.
    pub(super) fn records(&self) -> impl Iterator<Item = RecordRef<'s>> {
        self.drafts.iter().flat_map(|draft| {
            draft.turn.records.iter().copied().chain(draft.results.iter().flatten().map(|result| result.0))
        })
    }

    /// The model of the last turn so far that has one.
    pub(super) fn model(&self) -> Option<String> {
        let mut models = self.drafts.iter().rev().filter_map(|draft| draft.turn.model.as_deref());
        models.find(|model| is_model(model)).map(str::to_owned)
    }

    /// Whether the last turn is an answer that ends in a text and makes no call: what follows is another message in every view.
    pub(super) fn ends_with_text(&self) -> bool {
        let Some(Turn { origin: TurnOrigin::Answer, items, .. }) = self.drafts.last().map(|draft| &draft.turn) else {
            return false;
        };
        let makes_call = items.iter().any(|item| matches!(item, TurnItem::Call(_)));
        matches!(items.last(), Some(TurnItem::Part(Part::Text(text))) if !makes_call && !text.text.trim().is_empty())
    }

    /// The turns so far, and the notes on them. What follows begins anew; only the ids of calls stay taken.
    pub(super) fn finish(&mut self) -> (Vec<Turn<'s>>, Vec<Note>) {
        self.calls.clear();
        (self.answer, self.in_items, self.after_failure) = (None, false, 0);
        let mut notes = std::mem::take(&mut self.notes);
        let mut orphans: Vec<(RecordRef<'s>, ToolResult)> =
            self.early.drain().flat_map(|(_, results)| results).collect();
        orphans.sort_by_key(|(record, _)| record.order());
        for (record, result) in orphans {
            let what = format!("the result of call {} is not sent: its call is missing", result.call_id);
            notes.push(Note::new(record, what));
        }
        let mut turns = Vec::new();
        for mut draft in std::mem::take(&mut self.drafts) {
            let results = draft.close(&mut notes);
            if draft.turn.items.is_empty() {
                notes.extend(draft.turn.records.iter().map(|record| Note::new(*record, "it is empty; it is not sent")));
                continue;
            }
            let follows_results = turns
                .last()
                .is_some_and(|turn: &Turn<'_>| matches!(turn.origin, TurnOrigin::Results | TurnOrigin::MidTurn));
            if draft.turn.origin == TurnOrigin::Prompt && follows_results {
                draft.turn.origin = TurnOrigin::MidTurn;
            }
            turns.push(draft.turn);
            turns.extend(results);
        }
        (turns, notes)
    }
}
