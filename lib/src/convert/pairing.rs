//! Calls and results that do not pair up in the source, made to pair up: other agents refuse what theirs let pass.
//!
//! A result without a call gets one, a further result of a call stays behind, and two calls of one answer with the same id
//! become two ids. Each is a loss. Calls that wait for their results go on waiting.

use hashbrown::{HashMap, HashSet};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::message::{Part, ToolPart, ToolState};
use crate::record::{Body, Said, ToolResult};
use crate::session::RecordRef;
use crate::skeleton::KeyRole;
use crate::writing::Loss;

/// A call by the hash of its id; a side conversation's calls are its own.
type Call = (u64, bool);

/// Which calls are made by all that is said, and how many results they were given so far.
#[derive(Default)]
pub(super) struct Pairing {
    called: HashMap<Call, usize>,
    answered: HashMap<Call, usize>,
}

/// What it took to make one body pair up.
#[derive(Default)]
pub(super) struct Mended {
    /// Calls that must be said before it.
    pub(super) calls: Vec<Part>,
    pub(super) losses: Vec<Loss>,
}

impl Pairing {
    /// Learns the calls of records that are one answer.
    pub(super) fn expect(&mut self, answer: &[RecordRef<'_>]) {
        let keys = answer.iter().flat_map(|record| {
            let sidechain = record.is_sidechain();
            record.keys(KeyRole::Call).map(move |hash| (hash, sidechain))
        });
        let calls: HashSet<Call> = keys.collect();
        calls.into_iter().for_each(|call| *self.called.entry(call).or_default() += 1);
    }

    /// Counts the results of a record that is in the file already.
    pub(super) fn count(&mut self, record: RecordRef<'_>) {
        for hash in record.keys(KeyRole::Result) {
            *self.answered.entry((hash, record.is_sidechain())).or_default() += 1;
        }
    }

    pub(super) fn mend(&mut self, body: &mut Body, sidechain: bool) -> Mended {
        let mut mended = Mended::default();
        match body {
            Body::Assistant(said) => {
                distinguish(&mut said.parts, &mut mended);
                for part in &said.parts {
                    let Part::Tool(call) = part else { continue };
                    let key = named(&call.call_id, sidechain);
                    // Where calls have no names, a record tells them only when it is looked into.
                    self.called.entry(key).or_insert(1);
                    if !call.is_open() {
                        *self.answered.entry(key).or_default() += 1;
                    }
                }
                self.results(said, sidechain, &mut mended);
                // The answer itself can make the call.
                said.parts.append(&mut mended.calls);
            }
            Body::User(said) | Body::ToolResult(said) | Body::Attachment(said) | Body::System(said) => {
                self.results(said, sidechain, &mut mended);
            }
            Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => {}
        }
        mended
    }

    fn results(&mut self, said: &mut Said, sidechain: bool, mended: &mut Mended) {
        said.results.retain(|result| {
            let call = named(&result.call_id, sidechain);
            let called = *self.called.entry(call).or_insert_with(|| {
                mended.calls.push(call_of(result));
                mended.losses.push(Loss::synthesised("tool call"));
                1
            });
            let answered = self.answered.entry(call).or_default();
            let stays = result.preliminary || *answered < called;
            if !stays {
                mended.losses.push(Loss::dropped("another result of the same call"));
            } else if !result.preliminary {
                *answered += 1;
            }
            stays
        });
    }
}

/// Gives calls of one answer that share an id each their own.
fn distinguish(parts: &mut [Part], mended: &mut Mended) {
    let mut ids: HashSet<String> = HashSet::new();
    for part in parts {
        let Part::Tool(call) = part else { continue };
        let mut number = 1;
        let own = call.call_id.clone();
        while !ids.insert(call.call_id.clone()) {
            number += 1;
            call.call_id = format!("{own}_{number}");
        }
        if number > 1 {
            mended.losses.push(Loss::renamed("id of a call"));
        }
    }
}

fn call_of(result: &ToolResult) -> Part {
    let name = result.name.clone().unwrap_or_else(|| "unknown".to_owned());
    ToolPart::dynamic(name, result.call_id.clone(), ToolState::called(Value::Object(Default::default()))).into()
}

fn named(call: &str, sidechain: bool) -> Call {
    (xxh3_64(call.as_bytes()), sidechain)
}
