//! The difference between what the source says and what the new file says when it is read back.
//!
//! A branch is compared as a whole. Its messages are taken apart into facts (`compare/facts.rs`); facts of both sides cancel out,
//! wherever on the branch they are, and what is left over is a loss:
//!
//! ```text
//! source      m1: text, image     m2: call(input, output), thinking
//! read back   m1: text            m2: text (as m2's thinking), call(input, other output)
//! losses      image dropped       thinking renamed, tool output renamed
//! ```

mod facts;

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::original::Original;
use super::replay::Replayed;
use super::{LossRow, merge};
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::record::Usage;
use crate::session::{Branch, RecordRef};
use facts::{Fact, Message, Side};

/// At most so many branches are compared; a session with more is reported as one that may differ.
pub(super) const BRANCHES_COMPARED: usize = 32;

/// A fact that changed is looked for among so many of the same message: each comparison costs time.
const CANDIDATES: usize = 16;

/// The head of a branch in the source, and in the new file.
pub(super) type Heads<'s> = (RecordRef<'s>, RecordRef<'s>);

/// What the comparison found.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) losses: Vec<LossRow>,
    /// The source's records that are in a compared message: whatever messages show of them is in `losses`.
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
        let mut comparison = Comparison { head: head.id().into_owned(), losses: Vec::new() };
        let usage = [usage(before.clone(), is_new), usage(after.clone(), is_written)];
        let before = Side::read(&before, is_new)?;
        let after = Side::read(&after, is_written)?.aligned(&before, &replayed.ids);
        comparison.compare(&before, &after, usage);
        found.compared.extend(before.messages.into_iter().flat_map(|message| message.records));
        // Branches share messages: what several of them report is one loss.
        merge(&mut found.losses, merged(comparison.losses), u64::max);
    }
    if let Some((head, _)) = heads.get(BRANCHES_COMPARED) {
        found.losses.push(LossRow::new(&head.id(), LossKind::Renamed, Lost::UncomparedBranch));
    }
    Ok(found)
}

/// How something changed that was there or not, and is there or not.
pub(super) fn changed(was: bool, is: bool) -> LossKind {
    match (was, is) {
        (true, true) => LossKind::Renamed,
        (true, false) => LossKind::Dropped,
        (false, _) => LossKind::Synthesised,
    }
}

fn merged(losses: Vec<LossRow>) -> Vec<LossRow> {
    let mut merged = Vec::new();
    merge(&mut merged, losses, |a, b| a + b);
    merged
}

/// The tokens of some records of a branch, by what they are called; unknown is none.
fn usage(mut branch: Branch<'_>, is_counted: impl Fn(&RecordRef<'_>) -> bool) -> [(Lost, [u64; 2]); 3] {
    branch.records.retain(is_counted);
    let usage = branch.records.first().and_then(|first| first.session.usage_of(&branch));
    let Usage { input, output, cache_read, cache_write, reasoning, .. } = usage.unwrap_or_default();
    [
        (Lost::Usage, [input, output]),
        (Lost::CacheTokens, [cache_read, cache_write]),
        (Lost::ReasoningTokens, [reasoning, None]),
    ]
    .map(|(what, tokens)| (what, tokens.map(Option::unwrap_or_default)))
}

struct Comparison {
    head: String,
    losses: Vec<LossRow>,
}

impl Comparison {
    fn compare(&mut self, before: &Side, after: &Side, usage: [[(Lost, [u64; 2]); 3]; 2]) {
        let mut counterparts: Vec<Vec<&Message>> = vec![Vec::new(); before.messages.len()];
        for message in &after.messages {
            message.source.into_iter().for_each(|source| counterparts[source].push(message));
        }
        let [was, is] = usage;
        let same_usage: Vec<Lost> =
            was.iter().zip(&is).filter(|(was, is)| was == is).map(|(was, _)| was.0.clone()).collect();
        let gone = before.messages.iter().zip(&counterparts).filter(|(_, now)| now.is_empty()).map(|(gone, _)| gone);
        let alone = gone.chain(after.messages.iter().filter(|message| message.source.is_none()));
        let moved: HashSet<(&str, u64)> = alone.flat_map(Message::states).collect();
        for (was, now) in before.messages.iter().zip(&counterparts).filter(|(_, now)| !now.is_empty()) {
            self.metadata(was, now, &same_usage, &moved);
        }
        for (was, is) in was.into_iter().zip(is).filter(|(was, is)| was != is) {
            if !self.losses.iter().any(|row| row.what == was.0) {
                let [had, has] = [was.1, is.1].map(|tokens| tokens != [0, 0]);
                self.add(&self.head.clone(), changed(had, has), was.0);
            }
        }
        self.parts(before, after, &counterparts);
    }

    fn add(&mut self, record: &str, kind: LossKind, what: impl Into<Lost>) {
        self.losses.push(LossRow::new(record, kind, what));
    }

    /// What is known of a message: one of the messages that it became must have it.
    fn metadata(&mut self, was: &Message, now: &[&Message], same_usage: &[Lost], moved: &HashSet<(&str, u64)>) {
        if now.iter().all(|now| now.role != was.role) {
            self.add(was.record(), LossKind::Renamed, was.role);
        }
        let keys = was.metadata.iter().chain(now.iter().flat_map(|now| &now.metadata));
        let mut reported: Vec<(LossKind, Lost)> = Vec::new();
        let is_compared = |(key, (what, value)): &(&String, &(Lost, u64))| {
            !same_usage.contains(what) && !moved.contains(&(key.as_str(), *value))
        };
        for (key, (what, _)) in keys.filter(is_compared) {
            let value = was.metadata.get(key).map(|(_, value)| value);
            let mut values = now.iter().filter_map(|now| now.metadata.get(key)).map(|(_, value)| value);
            let has_value = values.clone().next().is_some();
            let loss = (changed(value.is_some(), has_value), what.clone());
            if !values.any(|now| Some(now) == value) && !reported.contains(&loss) {
                self.add(was.record(), loss.0, loss.1.clone());
                reported.push(loss);
            }
        }
    }

    fn parts(&mut self, before: &Side, after: &Side, counterparts: &[Vec<&Message>]) {
        let joined = self.joined_texts(before, counterparts);
        let is_joined = |fact: &&Fact| fact.what == Lost::Text && fact.message.is_some_and(|at| joined.contains(&at));
        let is_gone = |message: Option<usize>| message.is_none_or(|at| counterparts[at].is_empty());
        // An answer begins with a step, whether that is written or not.
        let begins = |fact: &&Fact| fact.what == Lost::Step && fact.is_first;
        let mut begun = HashSet::new();
        let mut gone: Vec<&Fact> = before.facts.iter().filter(|fact| !begins(fact) || is_gone(fact.message)).collect();
        let mut new: Vec<&Fact> =
            after.facts.iter().filter(|fact| !begins(fact) || !begun.insert(fact.message)).collect();
        gone.retain(|fact| !is_joined(fact));
        new.retain(|fact| !is_joined(fact));
        let (was, is) = (order(&gone), order(&new));
        cancel(&mut gone, &mut new, |fact| (fact.message, fact.hash));
        self.part_order(before, was, is, &gone, &new);
        cancel(&mut gone, &mut new, |fact| (None, fact.hash));
        self.changed_facts(&mut gone, &mut new);
        self.same_text(&mut gone, &mut new);
        for fact in gone.iter().filter(|fact| fact.what != Lost::Step || !is_gone(fact.message)) {
            let is_message = fact.what == Lost::Text && is_gone(fact.message);
            self.add(&fact.record, LossKind::Dropped, if is_message { fact.role.into() } else { fact.what.clone() });
        }
        for fact in new.iter().filter(|fact| fact.what != Lost::Step || fact.message.is_some()) {
            let is_message = fact.what == Lost::Text && fact.message.is_none();
            self.add(
                &fact.record,
                LossKind::Synthesised,
                if is_message { fact.role.into() } else { fact.what.clone() },
            );
        }
        self.empty_messages(before, after, counterparts);
    }

    /// Messages without parts that only one side has, unless their states are those of another message.
    fn empty_messages(&mut self, before: &Side, after: &Side, counterparts: &[Vec<&Message>]) {
        let states = |side: &'_ Side| -> HashSet<(String, u64)> {
            let all = side.messages.iter().flat_map(Message::states);
            all.map(|(key, value)| (key.to_owned(), value)).collect()
        };
        let (was, is) = (states(before), states(after));
        let is_elsewhere = |message: &Message, there: &HashSet<(String, u64)>| {
            let mut states = message.states().peekable();
            states.peek().is_some() && states.all(|(key, value)| there.contains(&(key.to_owned(), value)))
        };
        for (message, now) in before.messages.iter().zip(counterparts) {
            if message.is_empty && now.is_empty() && !is_elsewhere(message, &is) {
                self.add(message.record(), LossKind::Dropped, message.role);
                for (key, _) in message.states() {
                    self.add(message.record(), LossKind::Dropped, message.metadata[key].0.clone());
                }
            }
        }
        for message in after.messages.iter().filter(|message| message.is_empty && message.source.is_none()) {
            if !is_elsewhere(message, &was) {
                self.add(&message.near, LossKind::Synthesised, message.role);
            }
        }
    }

    /// The messages whose text is the same and is in fewer or more parts.
    fn joined_texts(&mut self, before: &Side, counterparts: &[Vec<&Message>]) -> HashSet<usize> {
        let mut joined = HashSet::new();
        for (at, (was, now)) in before.messages.iter().zip(counterparts).enumerate() {
            let text = now.iter().fold(facts::Text::default(), |text, now| text.followed_by(now.text));
            if was.text.parts != text.parts && was.text.is_same(text) {
                self.add(was.record(), LossKind::Renamed, Lost::TextParts);
                joined.insert(at);
            }
        }
        joined
    }

    /// Messages of which all is there, in another order.
    fn part_order(&mut self, before: &Side, was: Order, is: Order, gone: &[&Fact], new: &[&Fact]) {
        let differ: HashSet<Option<usize>> = gone.iter().chain(new).map(|fact| fact.message).collect();
        for (at, message) in before.messages.iter().enumerate() {
            let at = Some(at);
            if !differ.contains(&at) && was.get(&at) != is.get(&at) {
                self.add(message.record(), LossKind::Renamed, Lost::PartOrder);
            }
        }
    }

    /// Facts of one message and one kind that are there with other details.
    fn changed_facts<'f>(&mut self, gone: &mut Vec<&'f Fact>, new: &mut Vec<&'f Fact>) {
        let mut there: HashMap<(Option<usize>, &Lost), Vec<&Fact>> = HashMap::new();
        new.iter().rev().for_each(|fact| there.entry((fact.message, &fact.what)).or_default().push(fact));
        gone.retain(|fact| {
            let Some(candidates) = there.get_mut(&(fact.message, &fact.what)) else { return true };
            let from = candidates.len().saturating_sub(CANDIDATES);
            let nearest = (from..candidates.len()).max_by_key(|at| fact.same_details(candidates[*at]));
            let Some(nearest) = nearest.map(|at| candidates.remove(at)) else { return true };
            self.details(fact, nearest);
            false
        });
        let left: HashSet<*const Fact> = there.into_values().flatten().map(std::ptr::from_ref).collect();
        new.retain(|fact| left.contains(&std::ptr::from_ref(*fact)));
    }

    /// Facts that are elsewhere on the branch, or as something else: both have a text in common.
    fn same_text<'f>(&mut self, gone: &mut Vec<&'f Fact>, new: &mut Vec<&'f Fact>) {
        let mut there: HashMap<u64, Vec<&Fact>> = HashMap::new();
        new.iter().rev().for_each(|fact| {
            fact.texts.iter().for_each(|text| there.entry(*text).or_default().push(fact));
        });
        let mut taken: HashSet<*const Fact> = HashSet::new();
        gone.retain(|fact| {
            let found = fact.texts.iter().find_map(|text| {
                let candidates = there.get_mut(text)?;
                std::iter::from_fn(|| candidates.pop()).find(|other| taken.insert(std::ptr::from_ref(*other)))
            });
            match found {
                Some(other) if other.what == fact.what => self.details(fact, other),
                Some(_) => self.add(&fact.record, LossKind::Renamed, fact.what.clone()),
                None => {}
            }
            found.is_none()
        });
        new.retain(|fact| !taken.contains(&std::ptr::from_ref(*fact)));
    }

    fn details(&mut self, was: &Fact, is: &Fact) {
        for (key, (what, value)) in &was.details {
            match is.details.get(key) {
                Some((_, now)) if now == value => {}
                now => self.add(&was.record, changed(true, now.is_some()), what.clone()),
            }
        }
        // A note that a run went well or not repeats the state.
        let is_new = |key: &str| !was.details.contains_key(key) && key != "run.status";
        for (_, (what, _)) in is.details.iter().filter(|(key, _)| is_new(key)) {
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

/// Takes facts out of both lists that have the same key.
fn cancel(gone: &mut Vec<&Fact>, new: &mut Vec<&Fact>, key: impl Fn(&Fact) -> (Option<usize>, u64)) {
    let mut there: HashMap<_, usize> = HashMap::new();
    new.iter().for_each(|fact| *there.entry(key(fact)).or_default() += 1);
    let mut both: HashMap<_, usize> = HashMap::new();
    gone.retain(|fact| match there.get_mut(&key(fact)).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            *both.entry(key(fact)).or_default() += 1;
            false
        }
        None => true,
    });
    new.retain(|fact| match both.get_mut(&key(fact)).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    });
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
        let say = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let answer = |content: String| {
            format!(r#""type":"assistant","message":{{"role":"assistant","model":"x","content":[{content}]}}"#)
        };
        let call = format!(r#"{},{{"type":"tool_use","id":"t1","name":"Read","input":{{}}}}"#, say(first));
        let result = r#"{"type":"tool_result","tool_use_id":"t1","content":"a"}"#;
        let lines = [
            line("q", "null", r#""type":"user","message":{"role":"user","content":"Look."}"#),
            line("a1", r#""q""#, &answer(call)),
            line("r1", r#""a1""#, &format!(r#""type":"user","message":{{"role":"user","content":[{result}]}}"#)),
            line("a2", r#""r1""#, &answer(say(one))),
            line("a3", r#""r1""#, &answer(say(other))),
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
