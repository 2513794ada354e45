//! A turn whose calls contain their results, for formats that write whole turns.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::dialect::writer::{NewRecord, Written};
use crate::model::loss::{Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Content, ToolResult};
use crate::model::settle::{annotate, orphan, settle_in_turn, take_first_final};

/// The parts of one record, each result in its call.
pub(crate) struct ResolvedTurn {
    /// The parts; a call has its result if the record contains it.
    pub(crate) parts: Vec<Part>,
    /// Results of calls that are not among the parts, each as a call of which only the result is known.
    pub(crate) unmatched: Vec<Part>,
}

/// Adds the results and notes of a record to its calls.
pub(crate) fn resolve(content: &Content, losses: &mut Losses) -> ResolvedTurn {
    let mut parts = content.parts.clone();
    let mut results: HashMap<String, VecDeque<(usize, ToolResult)>> = HashMap::new();
    for (order, result) in content.results.iter().cloned().enumerate() {
        results.entry(result.call_id.clone()).or_default().push_back((order, result));
    }
    let mut called = HashSet::new();
    for part in &mut parts {
        let Part::Tool(call) = part else { continue };
        called.insert(call.call_id.clone());
        if call.takes_result()
            && let Some(result) = results.get_mut(&call.call_id).and_then(take_first_final)
        {
            settle_in_turn(call, result);
        }
    }
    let mut unmatched = Vec::new();
    for (call, left) in results.into_iter().filter(|(_, left)| !left.is_empty()) {
        match called.contains(&call) {
            true => losses.dropped(Lost::DuplicateResult),
            false => unmatched.extend(left),
        }
    }
    losses.dropped_if(content.notes.iter().any(|note| !called.contains(&note.call_id)), Lost::RunNotes);
    unmatched.sort_by_key(|(order, _)| *order);
    annotate(content.notes.clone(), &mut parts);
    ResolvedTurn { parts, unmatched: unmatched.into_iter().map(|(_, result)| orphan(result)).collect() }
}

/// Reports at a session's first record that the format does not name the session that it was forked from.
pub(crate) fn without_fork(draft: &NewRecord<'_>, mut written: Written) -> Written {
    written.losses.dropped_if(draft.forked_from.is_some() && draft.parent.is_none(), Lost::Fork);
    written
}
