//! Where a long history can be written before the rest of it is read.
//!
//! ```text
//! records   u1 a1(call) r1 a2 | u2 a3 | u3 a4(call) u4 r4 a5 | u5 …      |: everything before is settled
//! ```
//!
//! Every view sends an answer that ends in a text and the prompt after it as two messages. So a window ends there, if no call
//! before it has a result after it: the records' keys tell, without their bodies.

use hashbrown::HashMap;

use super::draft::is_empty;
use crate::model::error::Result;
use crate::model::message::Part;
use crate::model::record::{Body, Kind};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;

/// A window is at least this much of the file: large enough that its end costs nothing, small beside a session that needs windows.
pub(super) const BYTES: u64 = 4 * 1024 * 1024;

/// For each record, whether nothing before it depends on it or on a later one: each call before it has its result or never gets
/// one, and each result its call. A later call with the same id counts as one that depends on it: the answer may have made two calls
/// of that id, which its keys do not tell.
pub(super) fn settled(records: &[RecordRef<'_>]) -> Vec<bool> {
    // How many dependencies begin at a record, less those that have ended before it.
    let mut begin = vec![0_i32; records.len() + 1];
    // The last record with each call id.
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        for role in [KeyRole::Call, KeyRole::Result, KeyRole::Interim] {
            let is_call = role == KeyRole::Call;
            for call in record.keys(role) {
                let before = last.get(&call).copied();
                last.insert(call, at);
                let from = match before {
                    // The replacement of a compaction may have made the call.
                    None if is_call => continue,
                    None => 0,
                    Some(before) => before + 1,
                };
                begin[from] += 1;
                begin[at + 1] -= 1;
            }
        }
    }
    let open = begin.iter().scan(0, |open, begin| {
        *open += begin;
        Some(*open == 0)
    });
    open.take(records.len()).collect()
}

/// Whether a record is a prompt that every view sends.
pub(super) fn begins(body: &Body) -> bool {
    let Body::User(content) = body else { return false };
    let has_text = content.parts.iter().filter_map(Part::as_text).any(|text| !text.trim().is_empty());
    has_text && content.results.is_empty()
}

/// Whether a model's name is one: the agent's own messages are not from a model.
pub(super) fn is_model(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('<')
}

/// The model that continues the session: that of the last answer.
pub(super) fn model(records: &[RecordRef<'_>]) -> Result<Option<String>> {
    if records.first().is_none_or(|record| record.session.models().is_empty()) {
        return Ok(None);
    }
    for record in records.iter().rev().filter(|record| record.kind() == Kind::Assistant) {
        let body = record.body()?;
        let content = body.content().filter(|content| !content.parts.iter().all(is_empty));
        let model = content.and_then(|content| content.model.as_deref());
        if let Some(model) = model.filter(|model| is_model(model)) {
            return Ok(Some(model.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
