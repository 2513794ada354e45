//! A turn by itself, for formats that write whole turns: its calls have their results, whoever brought them.

use hashbrown::{HashMap, HashSet};

use crate::dialect::writer::{NewRecord, Written};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Content, ToolResult};
use crate::model::settle::{annotate, orphan, settle_in_turn, take_first_final};

/// What one record says, with each result where it belongs.
pub(crate) struct Closed {
    /// The parts; a call whose result came with it has it.
    pub(crate) parts: Vec<Part>,
    /// Results of calls that are not among them, each as a call of which only the result is known.
    pub(crate) strays: Vec<Part>,
}

/// Gives the calls of a record the results and notes that the record brings.
pub(crate) fn closed(content: &Content, written: &mut Written) -> Closed {
    let mut parts = content.parts.clone();
    let mut results: HashMap<String, Vec<(usize, ToolResult)>> = HashMap::new();
    for (order, result) in content.results.iter().cloned().enumerate() {
        results.entry(result.call_id.clone()).or_default().push((order, result));
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
    let mut strays = Vec::new();
    for (call, left) in results.into_iter().filter(|(_, left)| !left.is_empty()) {
        match called.contains(&call) {
            true => written.losses.dropped(Lost::DuplicateResult),
            false => strays.extend(left),
        }
    }
    if content.notes.iter().any(|note| !called.contains(&note.call_id)) {
        written.losses.dropped(Lost::RunNotes);
    }
    strays.sort_by_key(|(order, _)| *order);
    annotate(content.notes.clone(), &mut parts);
    Closed { parts, strays: strays.into_iter().map(|(_, result)| orphan(result)).collect() }
}

/// Of where something was said, no format of turns has a place for all.
pub(crate) fn lose_surroundings(content: &Content, written: &mut Written) {
    if content.context.platform.is_some() || content.context.user_type.is_some() {
        written.losses.dropped(Lost::Platform);
    }
}

/// Notes where a session forgets, at its first record, which one it was forked from.
pub(crate) fn told_of_fork(draft: &NewRecord<'_>, mut written: Written) -> Written {
    if draft.forked_from.is_some() && draft.parent.is_none() {
        written.losses.dropped(Lost::Fork);
    }
    written
}
