//! Repairs calls and results that do not match in the source: other agents reject such sessions.
//!
//! Every call gets a unique id. A result belongs to the call that `show` shows it with: the next open one of its id, in the last
//! turn of its branch that has one. A result without a call gets a call; a second result of a call is dropped. Both are reported.
//! Calls without results stay as they are.

mod lanes;

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::loss::{LossKind, Lost};
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Body, Content, Kind, ToolResult};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;
use crate::view::history::UniqueIds;
use lanes::{LanePlace, Lanes};

/// How many turns and branches before a result are searched for its call, if several calls have its id. Nearly all results are in
/// the turn of their call; each step costs a lookup for each result.
const LANES_BEFORE_A_RESULT: usize = 500;

/// The hash of a call's id, and whether it is in a sidechain: those have calls of their own.
type CallKey = (u64, bool);

/// The calls so far, and which of them have results.
#[derive(Default)]
pub(super) struct Pairing {
    calls: Vec<Call>,
    lanes: Lanes,
    /// The calls of an id that are made on a lane.
    made_on: HashMap<(CallKey, usize), Made>,
    /// The last call of each id.
    last: HashMap<CallKey, usize>,
    /// Ids of several calls.
    shared: HashSet<CallKey>,
    /// Calls in later records, and the new ids of those whose results came first.
    expected: HashSet<CallKey>,
    answered_early: HashMap<CallKey, VecDeque<Option<String>>>,
    ids: UniqueIds,
}

struct Call {
    /// Its new id, if it has one.
    id: Option<String>,
    is_answered: bool,
}

/// Calls of one id on one lane, in its order.
#[derive(Default)]
struct Made {
    /// The places and the calls.
    calls: Vec<(usize, usize)>,
    /// How many of the first are known to be answered: calls never open again.
    answered: usize,
}

/// The repairs of one body.
#[derive(Default)]
pub(super) struct Repairs {
    /// Calls to write before it.
    pub(super) calls: Vec<Part>,
    pub(super) losses: Vec<(LossKind, Lost)>,
}

impl Pairing {
    /// Adds the calls of a record that will be replayed.
    pub(super) fn expect(&mut self, record: RecordRef<'_>) {
        self.expected.extend(record.keys(KeyRole::Call).map(|hash| (hash, record.is_sidechain())));
    }

    /// Adds the calls and results of a record that is in the file already.
    pub(super) fn add_facts(&mut self, record: RecordRef<'_>) {
        for hash in record.keys(KeyRole::Call) {
            self.ids.add_facts(hash);
            self.add((hash, record.is_sidechain()), &[record], Call { id: None, is_answered: false });
        }
        for hash in record.keys(KeyRole::Result) {
            if let Some(call) = self.open_call((hash, record.is_sidechain()), record) {
                self.calls[call].is_answered = true;
            }
        }
    }

    /// Repairs the body of some records.
    pub(super) fn repair(&mut self, body: &mut Body, records: &[RecordRef<'_>]) -> Repairs {
        let mut repairs = Repairs::default();
        self.lanes.join(records);
        let is_answer = body.kind() == Kind::Assistant;
        if let Some(content) = body.content_mut() {
            if is_answer {
                self.add_calls(&mut content.parts, records);
            }
            self.match_results(content, records, &mut repairs);
            if is_answer {
                content.parts.append(&mut repairs.calls);
            }
        }
        repairs
    }

    fn add_calls(&mut self, parts: &mut [Part], records: &[RecordRef<'_>]) {
        for part in parts {
            let Part::Tool(call) = part else { continue };
            let key = key_of(&call.call_id, records);
            let early = self.answered_early.get_mut(&key).and_then(VecDeque::pop_front);
            let is_answered = early.is_some() || !call.is_open();
            let id = early.unwrap_or_else(|| self.ids.other_than(&call.call_id));
            if let Some(id) = &id {
                call.call_id.clone_from(id);
            }
            self.add(key, records, Call { id, is_answered });
        }
    }

    fn match_results(&mut self, content: &mut Content, records: &[RecordRef<'_>], repairs: &mut Repairs) {
        let mut renamed: HashMap<String, Option<String>> = HashMap::new();
        content.results.retain_mut(|result| {
            let Some(id) = self.match_result(result, records, repairs) else {
                repairs.losses.push((LossKind::Dropped, Lost::DuplicateResult));
                return false;
            };
            renamed.insert(result.call_id.clone(), id.clone());
            result.call_id = id.unwrap_or(std::mem::take(&mut result.call_id));
            true
        });
        for note in &mut content.notes {
            let of_result = renamed.get(&note.call_id).cloned();
            let last = || self.calls.get(*self.last.get(&key_of(&note.call_id, records))?)?.id.clone();
            note.call_id = of_result.unwrap_or_else(last).unwrap_or(std::mem::take(&mut note.call_id));
        }
    }

    /// The new id of a result's call, if it has one; `None` if the call has its result already.
    fn match_result(
        &mut self,
        result: &ToolResult,
        records: &[RecordRef<'_>],
        repairs: &mut Repairs,
    ) -> Option<Option<String>> {
        let key = key_of(&result.call_id, records);
        let Some(last) = self.last.get(&key).copied() else {
            let id = self.ids.other_than(&result.call_id);
            if self.expected.contains(&key) {
                self.answered_early.entry(key).or_default().push_back(id.clone());
                return Some(id);
            }
            repairs.calls.push(call_of(result, id.as_deref()));
            repairs.losses.push((LossKind::Synthesised, Lost::ToolCall));
            self.add(key, records, Call { id: id.clone(), is_answered: !result.preliminary });
            return Some(id);
        };
        let open = records.first().and_then(|record| self.open_call(key, *record));
        match self.calls.get_mut(open.unwrap_or(last)) {
            Some(call) if open.is_some() || result.preliminary => {
                call.is_answered |= !result.preliminary;
                Some(call.id.clone())
            }
            Some(_) | None => None,
        }
    }

    fn add(&mut self, key: CallKey, records: &[RecordRef<'_>], call: Call) {
        let at = self.calls.len();
        self.calls.push(call);
        if let Some(first) = records.first() {
            let LanePlace { lane, place } = self.lanes.place_of(*first);
            self.made_on.entry((key, lane)).or_default().calls.push((place, at));
        }
        if self.last.insert(key, at).is_some() {
            self.shared.insert(key);
        }
    }

    /// The open call that a record's result of this id belongs to.
    fn open_call(&mut self, key: CallKey, record: RecordRef<'_>) -> Option<usize> {
        // The calls of the turn: whether there are any, and the first that is open.
        let (mut is_made, mut open) = (false, None::<usize>);
        if self.shared.contains(&key) {
            let place = self.lanes.place_of(record);
            for (LanePlace { lane, place }, starts_turn) in self.lanes.up_from(place).take(LANES_BEFORE_A_RESULT) {
                if let Some(made) = self.made_on.get_mut(&(key, lane)) {
                    is_made |= made.calls.first().is_some_and(|(first, _)| *first <= place);
                    open = made.first_open(place, &self.calls).into_iter().chain(open).min();
                }
                if is_made && starts_turn {
                    break;
                }
            }
        }
        // Without a call before the result, the last call of that id is taken.
        let last = || self.last.get(&key).copied().filter(|call| !self.calls[*call].is_answered);
        if is_made { open } else { last() }
    }
}

impl Made {
    /// The first open call up to a place.
    fn first_open(&mut self, until: usize, calls: &[Call]) -> Option<usize> {
        let is_answered = |(_, call): &&(usize, usize)| calls.get(*call).is_some_and(|call| call.is_answered);
        self.answered += self.calls[self.answered..].iter().take_while(is_answered).count();
        self.calls.get(self.answered).filter(|(place, _)| *place <= until).map(|(_, call)| *call)
    }
}

fn call_of(result: &ToolResult, id: Option<&str>) -> Part {
    let name = result.name.clone().unwrap_or_else(|| "unknown".to_owned());
    let id = id.unwrap_or(&result.call_id);
    ToolPart::dynamic(name, id, ToolState::called(Value::Object(Default::default()))).into()
}

fn key_of(call: &str, records: &[RecordRef<'_>]) -> CallKey {
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
        pairing.repair(&mut joined(&records).unwrap(), &records);
        assert_eq!(pairing.calls.len(), RECORDS);
        assert_eq!(pairing.made_on.values().map(|made| made.calls.len()).sum::<usize>(), RECORDS);
        // Whichever of its records is the parent of a result, the first call of its id is the open one.
        for record in [records[0], records[RECORDS / 2], records[RECORDS - 1]] {
            assert_eq!(pairing.open_call((xxh3_64(b"t1"), false), record), Some(1));
        }
    }
}
