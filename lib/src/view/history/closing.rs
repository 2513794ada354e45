//! One unfinished turn, and how it is closed: every call gets a result.

use hashbrown::HashSet;
use serde_json::Value;

use super::{NO_RESULT, Note, Turn, TurnItem, TurnOrigin};
use crate::dialect::ResultOrder;
use crate::model::message::Role;
use crate::model::record::{Outcome, ToolResult};
use crate::session::RecordRef;

/// A turn and, for an answer, the results of its calls.
pub(super) struct TurnDraft<'s> {
    pub(super) turn: Turn<'s>,
    /// The answer that it is, where the agent names answers.
    pub(super) group: Option<u64>,
    /// By the call's position among the items. Most turns have one or none, so that a map for each would cost too much.
    pub(super) results: Vec<Option<Box<(RecordRef<'s>, ToolResult)>>>,
    /// How many of its first items are of attachments.
    pub(super) attached: usize,
}

impl<'s> TurnDraft<'s> {
    pub(super) fn new(turn: Turn<'s>) -> TurnDraft<'s> {
        TurnDraft { turn, group: None, results: Vec::new(), attached: 0 }
    }

    /// The results of its calls, in the order of the calls or in the agent's own; a call without one gets a failed one.
    pub(super) fn close(&mut self, notes: &mut Vec<Note>) -> Option<Turn<'s>> {
        let last = self.turn.records.last().copied();
        let mut turn = Turn::new(Role::User, TurnOrigin::Results);
        let (mut known, mut places) = (HashSet::new(), Vec::new());
        for (at, item) in self.turn.items.iter().enumerate() {
            let TurnItem::Call(call) = item else { continue };
            let result = match self.results.get_mut(at).and_then(Option::take).map(|result| *result) {
                Some((record, result)) => {
                    if result.preliminary {
                        let what = format!("call {} has only a preliminary result; it is sent", call.call_id);
                        notes.push(Note::new(record, what));
                    }
                    turn.records.extend(known.insert(record.order()).then_some(record));
                    places.push(Some(record.order()));
                    result
                }
                None => {
                    let what = format!("call {} has no result; a failed result is added", call.call_id);
                    notes.extend(last.map(|record| Note::new(record, what)));
                    places.push(None);
                    ToolResult::new(String::new(), Value::Null, Outcome::Failed(NO_RESULT.to_owned()))
                }
            };
            let (call_id, name) = (call.call_id.clone(), Some(call.name.clone()));
            turn.items.push(TurnItem::Result(ToolResult { call_id, name, ..result }));
        }
        if turn.records.is_empty() {
            turn.records.extend(last);
        }
        if let Some(record) = last {
            arrange(&mut turn.items, &places, record.session.dialect().traits().result_order);
        }
        turn.items.shrink_to_fit();
        (!turn.items.is_empty()).then_some(turn)
    }
}

/// Sorts results from the order of the calls into the order in which the agent sends them; `places` are those of their records.
fn arrange(items: &mut Vec<TurnItem>, places: &[Option<usize>], order: ResultOrder) {
    let first = places.iter().flatten().min().copied();
    let rank = |place: &Option<usize>| match (order, place) {
        (ResultOrder::AsCalled, _) => 0,
        (ResultOrder::AsReceived, place) => place.unwrap_or(usize::MAX),
        (ResultOrder::FirstRecordThenMissing, Some(at)) if Some(*at) == first => 0,
        (ResultOrder::FirstRecordThenMissing, None) => 1,
        (ResultOrder::FirstRecordThenMissing, Some(_)) => 2,
    };
    let mut ranked: Vec<(usize, TurnItem)> = places.iter().map(rank).zip(items.drain(..)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    items.extend(ranked.into_iter().map(|(_, item)| item));
}
