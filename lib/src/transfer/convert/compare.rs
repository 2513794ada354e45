//! What a converted session says otherwise than its source, found by reading it back.
//!
//! Writers tell their losses (`compare/told.rs`); this finds the ones that nobody told, so that a conversion without a loss is one
//! without a difference. A branch is compared as a whole: what only stands in another message is not lost.

mod align;
mod stray;
mod told;

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};

use super::LossRow;
use super::replay::{CameBack, Replayed};
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::message::{Message, Part};
use crate::model::record::Kind;
use crate::model::record::Usage;
use crate::session::{Branch, RecordRef, Session};
use crate::view::conversation::Conversation;
use align::{Window, steps};
use stray::{Stray, counts, left_over};
use told::Told;

/// So many branches are read back; a session with more is taken for one that differs.
pub(super) const BRANCHES_COMPARED: usize = 32;

/// Adds what the converted session says otherwise on the branch of each of these pairs of heads.
pub(super) fn add_differences(
    pairs: &[(RecordRef<'_>, RecordRef<'_>)],
    sessions: (&Session, &Session),
    replayed: &mut Replayed,
) -> Result<()> {
    let (source, converted) = sessions;
    let mut comparison = Comparison {
        told: Told::new(&replayed.losses),
        names: &replayed.ids,
        compared: HashSet::new(),
        made_up: HashSet::new(),
        came_back: &replayed.came_back,
        compares_usage: false,
    };
    for (head, now) in pairs.iter().take(BRANCHES_COMPARED) {
        comparison.branch(*head, *now)?;
    }
    if let Some((head, _)) = pairs.get(BRANCHES_COMPARED) {
        comparison.told.push(&[&head.id()], Lost::UncomparedBranch, LossKind::Renamed);
    }
    let title = |session: &Session| session.title().map(|title| (title.text.clone(), title.source));
    let (before, after) = (title(source), title(converted));
    if before != after && !replayed.came_back.keeps_title && !comparison.told.anywhere(&Lost::Record(Kind::Title)) {
        let record = pairs.first().map(|(head, _)| head.id().into_owned()).unwrap_or_default();
        comparison
            .told
            .push(&[&record], Lost::Record(Kind::Title), changed(before.is_some(), after.is_some()));
    }
    comparison.told.end_branch();
    let found = comparison.told.found;
    replayed.losses.extend(found);
    Ok(())
}

struct Comparison<'a> {
    told: Told,
    /// What records of the converted session are called in the source, where that differs.
    names: &'a BTreeMap<String, String>,
    /// Messages that an earlier branch had too, by all their records: branches can part inside a turn.
    compared: HashSet<Vec<String>>,
    made_up: HashSet<Vec<String>>,
    /// What came back with the original.
    came_back: &'a CameBack,
    /// What the branch cost is not the same.
    compares_usage: bool,
}

/// What does not stand where it stood on a branch. It may stand elsewhere.
#[derive(Default)]
struct Unmatched {
    /// Messages that are nowhere, each with its parts.
    dropped: Vec<Stray>,
    /// Messages that nobody said.
    made_up: Vec<Stray>,
    /// Messages that are there with other parts: what is gone, what is new.
    changed: Vec<(Stray, Stray)>,
}

impl Comparison<'_> {
    fn branch(&mut self, head: RecordRef<'_>, now: RecordRef<'_>) -> Result<()> {
        let (before, after) = (head.session.branch(head), now.session.branch(now));
        // Where a format tells the cost is its own business: what counts is what the branch cost.
        let came_back = self.came_back;
        let cost = cost_where(&before, |record| !came_back.stand_ins.contains(&record.order()));
        let costs = cost_where(&after, |record| !came_back.records.contains(record.id().as_ref()));
        self.compares_usage = tokens(cost) != tokens(costs);
        let (before, after) = (Conversation::new(&before), Conversation::new(&after));
        let mut before = Window::new(before.messages(0..before.len()));
        let mut after = Window::new(after.messages(0..after.len()));
        let mut last = head.id().into_owned();
        let mut unmatched = Unmatched::default();
        loop {
            before.fill()?;
            after.fill()?;
            let (dropped, made_up) = steps(&before.seen, &after.seen);
            before.seen.drain(..dropped).for_each(|message| self.drop(&message, &mut unmatched));
            after.seen.drain(..made_up).for_each(|message| self.make_up(&message, &last, &mut unmatched));
            match (before.seen.pop_front(), after.seen.pop_front()) {
                (Some(was), Some(is)) => {
                    last.clone_from(&was.id);
                    if self.compared.insert(records(&was)) {
                        self.message(&was, &is, &mut unmatched);
                    }
                }
                (Some(was), None) => self.drop(&was, &mut unmatched),
                (None, Some(is)) => self.make_up(&is, &last, &mut unmatched),
                (None, None) => break,
            }
        }
        self.settle(unmatched);
        if self.compares_usage && !self.told.anywhere(&Lost::Usage) {
            self.told.push(&[&head.id()], Lost::Usage, changed(cost.is_some(), costs.is_some()));
        }
        self.told.end_branch();
        Ok(())
    }

    fn drop(&mut self, message: &Message, unmatched: &mut Unmatched) {
        if self.compared.insert(records(message)) {
            unmatched.dropped.push(Stray::of(message, records(message)));
        }
    }

    fn make_up(&mut self, message: &Message, after: &str, unmatched: &mut Unmatched) {
        let records = records(message);
        let came_back = records.first().is_some_and(|first| self.came_back.records.contains(first));
        if !came_back && self.made_up.insert(records.clone()) {
            let mut records: Vec<String> =
                records.into_iter().filter_map(|record| self.names.get(&record).cloned()).collect();
            if records.is_empty() {
                records.push(after.to_owned());
            }
            unmatched.made_up.push(Stray::of(message, records));
        }
    }

    fn message(&mut self, was: &Message, is: &Message, unmatched: &mut Unmatched) {
        let records = records(was);
        let names: Vec<&str> = records.iter().map(String::as_str).collect();
        if was.role != is.role {
            self.told.push(&names, Lost::Role, LossKind::Renamed);
        }
        let none = Map::new();
        let (before, after) = (was.metadata.as_ref().unwrap_or(&none), is.metadata.as_ref().unwrap_or(&none));
        for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
            let Some(word) = Lost::from_metadata_key(key).filter(|word| *word != Lost::Usage || self.compares_usage)
            else {
                continue;
            };
            if before.get(key) != after.get(key) {
                self.told.push(&names, word, changed(before.contains_key(key), after.contains_key(key)));
            }
        }
        if was.extra != is.extra {
            self.told.push(&names, Lost::Metadata, changed(!was.extra.is_empty(), !is.extra.is_empty()));
        }
        self.parts(records, was, is, unmatched);
    }

    /// Parts that are the same go out.
    fn parts(&mut self, records: Vec<String>, was: &Message, is: &Message, unmatched: &mut Unmatched) {
        let (mut gone, mut new) = (Stray::of(was, records.clone()), Stray::of(is, records));
        if gone.parts == new.parts {
            return;
        }
        // An answer begins with a step, whether that is written or not.
        let begins = |stray: &Stray| stray.parts.first().is_some_and(|(_, word)| *word == Lost::Step);
        match (begins(&gone), begins(&new)) {
            (true, false) => drop(gone.parts.remove(0)),
            (false, true) => drop(new.parts.remove(0)),
            (true, true) | (false, false) => {}
        }
        let count = |parts: &[Part]| parts.iter().filter(|part| matches!(part, Part::Text(_))).count();
        if count(&was.parts) != count(&is.parts) && all_words(was) == all_words(is) {
            self.told.push(&gone.names(), Lost::TextParts, LossKind::Renamed);
            [&mut gone, &mut new]
                .into_iter()
                .for_each(|stray| stray.parts.retain(|(_, word)| *word != Lost::Text));
        }
        let is_same = gone.parts == new.parts;
        let (left, right) = (left_over(&gone.parts, &new.parts), left_over(&new.parts, &gone.parts));
        if left.is_empty() && right.is_empty() && !is_same {
            self.told.push(&gone.names(), Lost::PartOrder, LossKind::Renamed);
        }
        (gone.parts, new.parts) = (left, right);
        unmatched.changed.push((gone, new));
    }

    /// What is gone here and new there went there; of the rest, what is left of a kind became another of that kind, is gone, or is new.
    fn settle(&mut self, unmatched: Unmatched) {
        let Unmatched { mut dropped, mut made_up, changed } = unmatched;
        let (mut gone, mut new): (Vec<Stray>, Vec<Stray>) = changed.into_iter().unzip();
        let whole = |strays: &[Stray]| strays.iter().map(|stray| stray.parts.len()).collect::<Vec<_>>();
        let (dropped_whole, made_up_whole) = (whole(&dropped), whole(&made_up));
        let here = counts(gone.iter().chain(&dropped));
        let there = counts(new.iter().chain(&made_up));
        let moved = |counts: &HashMap<u64, usize>| -> HashMap<u64, usize> {
            let both = |(hash, count): (&u64, &usize)| Some((*hash, (*count).min(*counts.get(hash)?)));
            there.iter().filter_map(both).collect()
        };
        let moved = moved(&here);
        [(&mut gone, &mut dropped), (&mut new, &mut made_up)].into_iter().for_each(|(parts, messages)| {
            let mut moved = moved.clone();
            parts.iter_mut().chain(messages).for_each(|stray| stray.take_out(&mut moved));
        });
        for (stray, all) in dropped.iter().zip(dropped_whole) {
            let is_elsewhere = all > 0 && stray.parts.is_empty();
            if !is_elsewhere && !self.told.covers(&stray.names(), &stray.words()) {
                self.told.push(&stray.names(), stray.role, LossKind::Dropped);
            }
        }
        for (stray, all) in made_up.iter().zip(made_up_whole) {
            let is_elsewhere = all > 0 && stray.parts.iter().all(|(_, word)| *word == Lost::Step);
            if !is_elsewhere && !self.told.is_otherwise(&stray.names()) {
                self.told.push(&stray.names(), stray.role, LossKind::Synthesised);
            }
        }
        for (gone, new) in gone.iter_mut().zip(&mut new) {
            for (word, count) in gone.take_out_alike(new) {
                self.told.push_parts(&gone.names(), word, LossKind::Renamed, count);
            }
            let mut left = new.words();
            for (word, count) in gone.words() {
                let became = left.get(&word).copied().unwrap_or_default().min(count);
                left.entry(word.clone()).and_modify(|left| *left -= became);
                self.told.push_parts(&gone.names(), word.clone(), LossKind::Renamed, became);
                self.told.push_parts(&gone.names(), word, LossKind::Dropped, count - became);
            }
            for (word, count) in left {
                self.told.push_parts(&gone.names(), word, LossKind::Synthesised, count);
            }
        }
    }
}

/// What some of the records of a branch cost.
fn cost_where(branch: &Branch<'_>, is_asked: impl Fn(&RecordRef<'_>) -> bool) -> Option<Usage> {
    let mut asked = branch.clone();
    asked.records.retain(is_asked);
    asked.records.first()?.session.usage_of(&asked)
}

/// All that is said in a message, however it is cut into parts.
fn all_words(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.flat_map(str::split_whitespace).collect()
}

/// Tokens of each kind: none told are none used.
fn tokens(usage: Option<Usage>) -> [u64; 5] {
    let Usage { input, output, cache_read, cache_write, reasoning, .. } = usage.unwrap_or_default();
    [input, output, cache_read, cache_write, reasoning].map(Option::unwrap_or_default)
}

fn records(message: &Message) -> Vec<String> {
    let listed = message.metadata.as_ref().and_then(|metadata| metadata.get("records")).and_then(Value::as_array);
    let listed: Vec<String> = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if listed.is_empty() { vec![message.id.clone()] } else { listed }
}

pub(super) fn changed(was: bool, is: bool) -> LossKind {
    match (was, is) {
        (true, true) => LossKind::Renamed,
        (true, false) => LossKind::Dropped,
        (false, _) => LossKind::Synthesised,
    }
}

/// A loss that was found.
pub(super) fn row(record: &str, what: Lost, kind: LossKind, count: u64) -> LossRow {
    LossRow { record: record.to_owned(), what, kind, count, fields: Vec::new() }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::session::read::open::ReadOptions;

    /// A question, an answer with a call, its result, and two ways to go on inside the turn.
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
    fn branches_that_part_inside_a_turn_are_both_compared_and_what_they_share_is_told_once() {
        let source = session("I look.", "Done.", "Finished.");
        for (converted, expected) in [
            (("I look.", "Done.", "Finished."), 0),
            (("I look.", "Gone.", "Finished."), 1),
            (("I look.", "Done.", "Furnished."), 1),
            (("I hook.", "Done.", "Finished."), 1),
            (("I hook.", "Done.", "Furnished."), 2),
        ] {
            let now = session(converted.0, converted.1, converted.2);
            let pairs: Vec<_> =
                ["a2", "a3"].map(|id| (source.find(id).unwrap(), now.find(id).unwrap())).into_iter().collect();
            let mut replayed = Replayed::default();
            add_differences(&pairs, (&source, &now), &mut replayed).unwrap();
            let told: u64 = replayed.losses.iter().map(|row| row.count).sum();
            assert_eq!(told, expected, "{converted:?}: {:?}", replayed.losses);
        }
    }
}
