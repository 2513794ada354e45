//! Calls and results that do not pair up in the source, made to pair up: other agents refuse what theirs let pass.
//!
//! Every call gets an id of its own, and a result goes to the call that people see it with: the next open one of its id in the
//! last turn of its branch that made one. A result without a call gets one, and a further result of a call stays behind. Each is
//! a loss. Calls that wait for their results go on waiting.
use crate::model::loss::{LossKind, Lost};
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Body, Content, Kind, ToolResult};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;
use crate::view::history::UniqueIds;
use hashbrown::{HashMap, HashSet};
use serde_json::Value;
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64;

/// So many records before a result are asked for its call, where several have its id: a turn is seldom longer.
const RECORDS_BEFORE_A_RESULT: usize = 10_000;

/// A call by the hash of its id; a side conversation's calls are its own.
type Called = (u64, bool);

/// The calls that were said so far, and which of them have their results.
#[derive(Default)]
pub(super) struct Pairing {
    calls: Vec<Call>,
    /// The calls of an id that an answer makes, by its first record.
    made_by: HashMap<(Called, usize), Vec<usize>>,
    /// The first records of answers that are several, by each of theirs.
    first_of: HashMap<usize, usize>,
    /// The last call of each id.
    last: HashMap<Called, usize>,
    /// Ids that several calls have.
    shared: HashSet<Called>,
    /// Calls that are still to be said, and what those are called whose results came before them.
    expected: HashSet<Called>,
    answered_early: HashMap<Called, VecDeque<Option<String>>>,
    ids: UniqueIds,
}

struct Call {
    /// What it is called now, where that is another id.
    id: Option<String>,
    is_answered: bool,
}

/// What it took to make one body pair up.
#[derive(Default)]
pub(super) struct Sanitized {
    /// Calls that must be said before it.
    pub(super) calls: Vec<Part>,
    /// What was changed.
    pub(super) losses: Vec<(LossKind, Lost)>,
}

impl Pairing {
    /// Learns the calls of a record that is still to be said.
    pub(super) fn expect(&mut self, record: RecordRef<'_>) {
        self.expected.extend(record.keys(KeyRole::Call).map(|hash| (hash, record.is_sidechain())));
    }

    /// Learns the calls and results of a record that is in the file already.
    pub(super) fn know(&mut self, record: RecordRef<'_>) {
        for hash in record.keys(KeyRole::Call) {
            self.ids.know(hash);
            self.add((hash, record.is_sidechain()), &[record], Call { id: None, is_answered: false });
        }
        for hash in record.keys(KeyRole::Result) {
            if let Some(call) = self.open_call((hash, record.is_sidechain()), record) {
                self.calls[call].is_answered = true;
            }
        }
    }

    /// Makes the body of some records pair up with what was said before it.
    pub(super) fn mend(&mut self, body: &mut Body, records: &[RecordRef<'_>]) -> Sanitized {
        let mut sanitized = Sanitized::default();
        if let [first, _, ..] = records {
            self.first_of.extend(records.iter().map(|record| (record.order(), first.order())));
        }
        match body {
            Body::Assistant(content) => {
                self.make_calls(&mut content.parts, records);
                self.give_results(content, records, &mut sanitized);
                // The answer itself can make the call.
                content.parts.append(&mut sanitized.calls);
            }
            Body::User(content) | Body::ToolResult(content) | Body::Attachment(content) | Body::System(content) => {
                self.give_results(content, records, &mut sanitized);
            }
            Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => {}
        }
        sanitized
    }

    fn make_calls(&mut self, parts: &mut [Part], records: &[RecordRef<'_>]) {
        for part in parts {
            let Part::Tool(call) = part else { continue };
            let called = named(&call.call_id, records);
            let early = self.answered_early.get_mut(&called).and_then(VecDeque::pop_front);
            let is_answered = early.is_some() || !call.is_open();
            let id = early.unwrap_or_else(|| self.ids.other_than(&call.call_id));
            if let Some(id) = &id {
                call.call_id.clone_from(id);
            }
            self.add(called, records, Call { id, is_answered });
        }
    }

    fn give_results(&mut self, content: &mut Content, records: &[RecordRef<'_>], sanitized: &mut Sanitized) {
        let mut renamed: HashMap<String, Option<String>> = HashMap::new();
        content.results.retain_mut(|result| {
            let Some(id) = self.take_result(result, records, sanitized) else {
                sanitized.losses.push((LossKind::Dropped, Lost::DuplicateResult));
                return false;
            };
            renamed.insert(result.call_id.clone(), id.clone());
            result.call_id = id.unwrap_or(std::mem::take(&mut result.call_id));
            true
        });
        for note in &mut content.notes {
            let of_result = renamed.get(&note.call_id).cloned();
            let last = || self.calls.get(*self.last.get(&named(&note.call_id, records))?)?.id.clone();
            note.call_id = of_result.unwrap_or_else(last).unwrap_or(std::mem::take(&mut note.call_id));
        }
    }

    /// What the call of a result is called now, where that is another id; nothing where the call has its result.
    fn take_result(
        &mut self,
        result: &ToolResult,
        records: &[RecordRef<'_>],
        sanitized: &mut Sanitized,
    ) -> Option<Option<String>> {
        let called = named(&result.call_id, records);
        let Some(last) = self.last.get(&called) else {
            let id = self.ids.other_than(&result.call_id);
            if self.expected.contains(&called) {
                self.answered_early.entry(called).or_default().push_back(id.clone());
                return Some(id);
            }
            sanitized.calls.push(call_of(result, id.as_deref()));
            sanitized.losses.push((LossKind::Synthesised, Lost::ToolCall));
            self.add(called, records, Call { id: id.clone(), is_answered: !result.preliminary });
            return Some(id);
        };
        let open = records.first().and_then(|record| self.open_call(called, *record));
        match self.calls.get_mut(open.unwrap_or(*last)) {
            Some(call) if open.is_some() || result.preliminary => {
                call.is_answered |= !result.preliminary;
                Some(call.id.clone())
            }
            Some(_) | None => None,
        }
    }

    fn add(&mut self, called: Called, records: &[RecordRef<'_>], call: Call) {
        let at = self.calls.len();
        self.calls.push(call);
        if let Some(first) = records.first() {
            self.made_by.entry((called, self.first_of(*first))).or_default().push(at);
        }
        if self.last.insert(called, at).is_some() {
            self.shared.insert(called);
        }
    }

    /// The call that a record's result of this id belongs to, if it has none.
    fn open_call(&self, called: Called, record: RecordRef<'_>) -> Option<usize> {
        // The calls of the turn: whether there are any, and the first that is open.
        let (mut is_made, mut open) = (false, None::<usize>);
        let is_open = |call: &usize| !self.calls[*call].is_answered;
        if self.shared.contains(&called) {
            let before = std::iter::successors(Some(record), |record| record.parent());
            let mut seen = HashSet::new();
            for record in before.take(RECORDS_BEFORE_A_RESULT) {
                let first = self.first_of(record);
                // An answer of many records is asked once.
                if let Some(made) = self.made_by.get(&(called, first)).filter(|_| seen.insert(first)) {
                    is_made = true;
                    open = made.iter().copied().filter(is_open).chain(open).min();
                }
                if is_made && begins_a_turn(record) {
                    break;
                }
            }
        }
        // Where no record before it makes the call, the last one does.
        if is_made { open } else { self.last.get(&called).copied().filter(is_open) }
    }

    /// The first record of the answer that a record belongs to, or itself.
    fn first_of(&self, record: RecordRef<'_>) -> usize {
        self.first_of.get(&record.order()).copied().unwrap_or_else(|| record.order())
    }
}

/// Whether people see a new message begin with a record.
fn begins_a_turn(record: RecordRef<'_>) -> bool {
    match record.kind() {
        Kind::User => true,
        Kind::System => !record.is_failure(),
        Kind::Assistant => record.is_message(),
        Kind::ToolResult
        | Kind::Attachment
        | Kind::Snapshot
        | Kind::Title
        | Kind::Compaction
        | Kind::Rewind
        | Kind::Restore
        | Kind::Header
        | Kind::Other => false,
    }
}

fn call_of(result: &ToolResult, id: Option<&str>) -> Part {
    let name = result.name.clone().unwrap_or_else(|| "unknown".to_owned());
    let id = id.unwrap_or(&result.call_id);
    ToolPart::dynamic(name, id, ToolState::called(Value::Object(Default::default()))).into()
}

fn named(call: &str, records: &[RecordRef<'_>]) -> Called {
    (xxh3_64(call.as_bytes()), records.first().is_some_and(|record| record.is_sidechain()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use crate::session::read::open::ReadOptions;
    use crate::transfer::convert::answers::joined;

    #[test]
    fn an_answer_of_many_records_notes_each_call_once() {
        const RECORDS: usize = 300;
        let line = |at: usize| {
            let parent = at.checked_sub(1).map(|before| format!("r{before}"));
            let call =
                serde_json::json!({"type": "tool_use", "id": format!("t{}", at % 2), "name": "Read", "input": {}});
            let message = serde_json::json!({"id": "m", "role": "assistant", "model": "x", "content": [call]});
            let uuid = format!("r{at}");
            let line = serde_json::json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message});
            format!("{line}\n")
        };
        let bytes: String = (0..RECORDS).map(line).collect();
        let dialect = crate::dialect::named("claude-code").unwrap();
        let session =
            Session::from_bytes(dialect, bytes.into_bytes(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH));
        let records: Vec<RecordRef<'_>> = session.records().collect();
        let mut pairing = Pairing::default();
        pairing.mend(&mut joined(&records).unwrap(), &records);
        assert_eq!(pairing.calls.len(), RECORDS);
        assert_eq!(pairing.made_by.values().map(Vec::len).sum::<usize>(), RECORDS);
        // Whichever of its records a result hangs on, the first call of its id is the one that waits.
        for record in [records[0], records[RECORDS / 2], records[RECORDS - 1]] {
            let called = (xxh3_64(b"t1"), false);
            assert_eq!(pairing.open_call(called, record), Some(1));
        }
    }
}
