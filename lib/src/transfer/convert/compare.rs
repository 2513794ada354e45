//! The difference between the source and the new file when it is read back.
//!
//! A branch is compared as a whole. Its messages become facts (`compare/facts.rs`); facts of both sides that correspond cancel
//! out, wherever on the branch they are, and the rest is lost:
//!
//! ```text
//! source      m1: text, image     m2: call(input, output), thinking
//! read back   m1: text            m2: text (as m2's thinking), call(input, other output)
//! losses      image dropped       thinking renamed, tool output renamed
//! ```

mod facts;

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::original::Original;
use super::replay::Replayed;
use super::{LossRow, merge};
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::record::{Kind, Usage};
use crate::session::{Branch, RecordRef};
use facts::{Fact, Message, Side, Text};

/// How many branches are compared. Of a session with more, it is reported that the others may differ.
pub(super) const BRANCHES_COMPARED: usize = 32;

/// The head of a branch in the source, and in the new file.
pub(super) type Heads<'s> = (RecordRef<'s>, RecordRef<'s>);

/// The result of a comparison.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) losses: Vec<LossRow>,
    /// The source's records that are in a compared message: `losses` has everything that messages show of them.
    pub(super) compared: HashSet<String>,
}

/// Compares the branches of these heads; of a restored session, only what was added to the original.
pub(super) fn differences(
    heads: &[Heads<'_>],
    replayed: &Replayed,
    original: Option<&Original>,
) -> Result<Differences> {
    let mut found = Differences::default();
    let is_new = |record: &RecordRef<'_>| original.is_none_or(|original| original.is_newer(*record));
    let is_written = |record: &RecordRef<'_>| !replayed.restored.contains(&*record.id());
    for (head, now) in heads.iter().take(BRANCHES_COMPARED) {
        let (before, after) = (head.session.branch(*head), now.session.branch(*now));
        let usage = [usage(before.clone(), is_new), usage(after.clone(), is_written)];
        let before = Side::read(&before, is_new)?;
        let after = Side::read(&after, is_written)?.aligned(&before, &replayed.ids);
        let mut comparison = Comparison::default();
        comparison.compare(&before, &after, usage, &head.id());
        found.compared.extend(before.messages.into_iter().flat_map(|message| message.records));
        let mut losses = Vec::new();
        merge(&mut losses, comparison.losses, |a, b| a + b);
        // Branches share messages: what several of them report is one loss.
        merge(&mut found.losses, losses, u64::max);
    }
    if let Some((head, _)) = heads.get(BRANCHES_COMPARED) {
        found.losses.push(LossRow::new(&head.id(), LossKind::Renamed, Lost::UncomparedBranch));
    }
    Ok(found)
}

/// What became of something that was there or not, and is there or not.
pub(super) fn changed(was: bool, is: bool) -> LossKind {
    match (was, is) {
        (true, true) => LossKind::Renamed,
        (true, false) => LossKind::Dropped,
        (false, _) => LossKind::Synthesised,
    }
}

/// Numbers of tokens by their names in a report; unknown is zero.
type Tokens = [(Lost, [u64; 2]); 3];

/// The tokens of some records of a branch. What a compaction cost is reported where it is left out.
fn usage(mut branch: Branch<'_>, is_counted: impl Fn(&RecordRef<'_>) -> bool) -> Tokens {
    branch.records.retain(|record| is_counted(record) && record.kind() != Kind::Compaction);
    let usage = branch.records.first().and_then(|first| first.session.usage_of(&branch));
    let Usage { input, output, cache_read, cache_write, reasoning, .. } = usage.unwrap_or_default();
    [
        (Lost::Usage, [input, output]),
        (Lost::CacheTokens, [cache_read, cache_write]),
        (Lost::ReasoningTokens, [reasoning, None]),
    ]
    .map(|(what, tokens)| (what, tokens.map(Option::unwrap_or_default)))
}

#[derive(Default)]
struct Comparison {
    losses: Vec<LossRow>,
}

impl Comparison {
    fn compare(&mut self, before: &Side, after: &Side, [was, is]: [Tokens; 2], head: &str) {
        // The messages that each message of the source became.
        let mut counterparts: Vec<Vec<&Message>> = vec![Vec::new(); before.messages.len()];
        for message in &after.messages {
            message.source.into_iter().for_each(|source| counterparts[source].push(message));
        }
        let messages = || before.messages.iter().zip(&counterparts);
        let gone: Vec<&Message> = messages().filter(|(_, now)| now.is_empty()).map(|(gone, _)| gone).collect();
        let new: Vec<&Message> = after.messages.iter().filter(|message| message.source.is_none()).collect();
        // Branches with the same sums have the same usage, whichever messages it is written in.
        let same_usage: Vec<&Lost> = was.iter().filter(|was| is.contains(was)).map(|(what, _)| what).collect();
        let moved: HashSet<(&str, u64)> = gone.iter().chain(&new).flat_map(|message| message.states()).collect();
        for (was, now) in messages().filter(|(_, now)| !now.is_empty()) {
            self.metadata(was, now, &same_usage, &moved);
        }
        for (was, is) in was.iter().zip(&is).filter(|(was, is)| was != is) {
            if !self.losses.iter().any(|row| row.what == was.0) {
                self.add(head, changed(was.1 != [0, 0], is.1 != [0, 0]), was.0.clone());
            }
        }
        self.parts(before, after, &counterparts);
        self.empty_messages(&gone, &after.messages, LossKind::Dropped);
        self.empty_messages(&new, &before.messages, LossKind::Synthesised);
    }

    fn add(&mut self, record: &str, kind: LossKind, what: impl Into<Lost>) {
        self.losses.push(LossRow::new(record, kind, what));
    }

    /// Compares the metadata of a message: one of the messages that it became must have each value.
    fn metadata(&mut self, was: &Message, now: &[&Message], same_usage: &[&Lost], moved: &HashSet<(&str, u64)>) {
        if now.iter().all(|now| now.role != was.role) {
            self.add(&was.record, LossKind::Renamed, was.role);
        }
        let mut reported: HashSet<(LossKind, &Lost)> = HashSet::new();
        for (key, (what, value)) in was.metadata.iter().chain(now.iter().flat_map(|now| &now.metadata)) {
            if same_usage.contains(&what) || moved.contains(&(key.as_str(), *value)) {
                continue;
            }
            let value = was.metadata.get(key);
            let mut values = now.iter().filter_map(|now| now.metadata.get(key)).peekable();
            let loss = (changed(value.is_some(), values.peek().is_some()), what);
            if !values.any(|now| Some(now) == value) && reported.insert(loss) {
                self.add(&was.record, loss.0, what.clone());
            }
        }
    }

    fn parts(&mut self, before: &Side, after: &Side, counterparts: &[Vec<&Message>]) {
        let joined = self.joined_texts(before, counterparts);
        let is_gone = |message: Option<usize>| message.is_none_or(|at| counterparts[at].is_empty());
        // An answer starts with a step, whether that is written or not.
        let starts = |fact: &Fact| fact.what == Lost::Step && fact.is_first;
        let is_joined = |fact: &Fact| fact.what == Lost::Text && fact.message.is_some_and(|at| joined.contains(&at));
        let mut started = HashSet::new();
        let mut gone: Vec<&Fact> = before.facts.iter().filter(|fact| !starts(fact) || is_gone(fact.message)).collect();
        let mut new: Vec<&Fact> =
            after.facts.iter().filter(|fact| !starts(fact) || !started.insert(fact.message)).collect();
        gone.retain(|fact| !is_joined(fact));
        new.retain(|fact| !is_joined(fact));
        let orders = [order(&gone), order(&new)];
        pair(&mut gone, &mut new, |fact| [(fact.message, fact.hash)]);
        self.part_order(before, orders, &gone, &new);
        pair(&mut gone, &mut new, |fact| [fact.hash]);
        // The same part of the message with other details, or else the next of its kind.
        let mut changed =
            pair(&mut gone, &mut new, |fact| fact.identity.iter().map(|id| (fact.message, &fact.what, *id)));
        changed.extend(pair(&mut gone, &mut new, |fact| [(fact.message, &fact.what)]));
        // Elsewhere on the branch, or another kind of part.
        changed.extend(pair(&mut gone, &mut new, |fact| fact.identity.iter().copied()));
        for (was, is) in changed {
            if was.what == is.what {
                self.details(was, is);
            } else {
                self.add(&was.record, LossKind::Renamed, was.what.clone());
            }
        }
        let gone = gone.into_iter().map(|fact| (fact, LossKind::Dropped, is_gone(fact.message)));
        let new = new.into_iter().map(|fact| (fact, LossKind::Synthesised, fact.message.is_none()));
        // If a whole message is gone or new, that is reported instead of its text.
        for (fact, kind, is_message) in gone.chain(new) {
            match &fact.what {
                Lost::Step if is_message => {}
                Lost::Text if is_message => self.add(&fact.record, kind, fact.role),
                what => self.add(&fact.record, kind, what.clone()),
            }
        }
    }

    /// Messages without parts that only one side has, unless their states are those of other messages.
    fn empty_messages(&mut self, alone: &[&Message], others: &[Message], kind: LossKind) {
        let there: HashSet<(&str, u64)> = others.iter().flat_map(Message::states).collect();
        for message in alone.iter().filter(|message| message.is_empty) {
            let mut states = message.states().peekable();
            if states.peek().is_some() && states.all(|state| there.contains(&state)) {
                continue;
            }
            self.add(&message.record, kind, message.role);
            for (key, _) in message.states() {
                self.add(&message.record, kind, message.metadata[key].0.clone());
            }
        }
    }

    /// The messages with the same text in fewer or more parts.
    fn joined_texts(&mut self, before: &Side, counterparts: &[Vec<&Message>]) -> HashSet<usize> {
        let mut joined = HashSet::new();
        for (at, (was, now)) in before.messages.iter().zip(counterparts).enumerate() {
            let text = now.iter().fold(Text::default(), |text, now| text.followed_by(now.text));
            if was.text.is_divided_differently(text) {
                self.add(&was.record, LossKind::Renamed, Lost::TextParts);
                joined.insert(at);
            }
        }
        joined
    }

    /// Messages with all their parts in another order.
    fn part_order(&mut self, before: &Side, [was, is]: [Order; 2], gone: &[&Fact], new: &[&Fact]) {
        let differ: HashSet<Option<usize>> = gone.iter().chain(new).map(|fact| fact.message).collect();
        for (at, message) in before.messages.iter().enumerate() {
            let at = Some(at);
            if !differ.contains(&at) && was.get(&at) != is.get(&at) {
                self.add(&message.record, LossKind::Renamed, Lost::PartOrder);
            }
        }
    }

    fn details(&mut self, was: &Fact, is: &Fact) {
        for (path, (what, value)) in &was.details {
            match is.details.get(path) {
                Some((_, now)) if now == value => {}
                now => self.add(&was.record, changed(true, now.is_some()), what.clone()),
            }
        }
        // A note of whether a run succeeded repeats the state.
        let is_new = |path: &str| !was.details.contains_key(path) && path != "callProviderMetadata.scrollback.status";
        for (_, (what, _)) in is.details.iter().filter(|(path, _)| is_new(path)) {
            self.add(&was.record, LossKind::Synthesised, what.clone());
        }
    }
}

/// A hash of the parts of each message in their order.
type Order = HashMap<Option<usize>, u64>;

fn order(facts: &[&Fact]) -> Order {
    let mut order = Order::new();
    for fact in facts {
        let known = order.entry(fact.message).or_default();
        *known = xxh3_64_with_seed(&fact.hash.to_le_bytes(), *known);
    }
    order
}

/// Removes facts that have a key in common from both lists, and returns them as pairs.
fn pair<'f, K: Eq + Hash, Keys: IntoIterator<Item = K>>(
    gone: &mut Vec<&'f Fact>,
    new: &mut Vec<&'f Fact>,
    keys: impl Fn(&'f Fact) -> Keys,
) -> Vec<(&'f Fact, &'f Fact)> {
    let mut candidates: HashMap<K, VecDeque<usize>> = HashMap::new();
    for (at, fact) in new.iter().enumerate() {
        keys(fact).into_iter().for_each(|key| candidates.entry(key).or_default().push_back(at));
    }
    let (mut pairs, mut taken) = (Vec::new(), HashSet::new());
    gone.retain(|fact| {
        let found = keys(fact).into_iter().find_map(|key| {
            let candidates = candidates.get_mut(&key)?;
            std::iter::from_fn(|| candidates.pop_front()).find(|at| taken.insert(*at))
        });
        pairs.extend(found.map(|at| (*fact, new[at])));
        found.is_none()
    });
    let mut at = 0..;
    new.retain(|_| at.next().is_none_or(|at| !taken.contains(&at)));
    pairs
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::session::Session;
    use crate::session::read::open::ReadOptions;

    /// A question, an answer with a call, its result, and two ways to continue inside the turn.
    fn session(first: &str, one: &str, other: &str) -> Session {
        let line = |id: &str, parent: &str, what: &str| {
            format!(
                r#"{{"uuid":"{id}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-10-02T09:00:00Z",{what}}}"#
            )
        };
        let text_block = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let answer = |content: String| {
            format!(r#""type":"assistant","message":{{"role":"assistant","model":"x","content":[{content}]}}"#)
        };
        let call = format!(r#"{},{{"type":"tool_use","id":"t1","name":"Read","input":{{}}}}"#, text_block(first));
        let result = r#"{"type":"tool_result","tool_use_id":"t1","content":"a"}"#;
        let lines = [
            line("q", "null", r#""type":"user","message":{"role":"user","content":"Look."}"#),
            line("a1", r#""q""#, &answer(call)),
            line("r1", r#""a1""#, &format!(r#""type":"user","message":{{"role":"user","content":[{result}]}}"#)),
            line("a2", r#""r1""#, &answer(text_block(one))),
            line("a3", r#""r1""#, &answer(text_block(other))),
        ];
        let dialect = crate::dialect::named("claude-code").unwrap();
        Session::from_bytes(dialect, lines.join("\n").into_bytes(), &ReadOptions::plain(Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn branches_that_part_inside_a_turn_are_both_compared_and_what_they_share_is_reported_once() {
        let source = session("I look.", "Done.", "Finished.");
        for (converted, expected) in [
            (("I look.", "Done.", "Finished."), 0),
            (("I look.", "Gone.", "Finished."), 1),
            (("I look.", "Done.", "Furnished."), 1),
            (("I hook.", "Done.", "Finished."), 1),
            (("I hook.", "Done.", "Furnished."), 2),
        ] {
            let now = session(converted.0, converted.1, converted.2);
            let heads = ["a2", "a3"].map(|id| (source.find(id).unwrap(), now.find(id).unwrap()));
            let found = differences(&heads, &Replayed::default(), None).unwrap().losses;
            assert_eq!(found.iter().map(|row| row.count).sum::<u64>(), expected, "{converted:?}: {found:?}");
        }
    }
}
