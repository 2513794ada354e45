//! What a converted session says otherwise than its source, found by reading it back.
//!
//! Writers tell their losses; this finds the ones that nobody told, so that a conversion without a loss is one without a difference.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};

use super::LossRow;
use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::{Message, Part, Role};
use crate::session::{RecordRef, Session};
use crate::writing::{Loss, LossKind};

/// A message is looked for among so many that follow: more are not lost or made up between two that stay.
const MESSAGES_AHEAD: usize = 8;

/// So many branches are read back; a session with more is taken for one that differs.
const BRANCHES_COMPARED: usize = 32;

/// Losses that are a whole record. Others are of a record that is there.
const WHOLE_RECORDS: [&str; 20] = [
    "prompt",
    "answer",
    "tool result",
    "another result of the same call",
    "context",
    "attachment",
    "notice",
    "snapshot",
    "title",
    "compaction",
    "rewind",
    "restore",
    "header",
    "a header",
    "unknown record",
    "a record of an unknown kind",
    "sidechain",
    "another branch",
    "message without words",
    "tool call",
];

/// Names that losses have for the same thing as far as a message shows it.
const SAME: [&[&str]; 6] = [
    &["surroundings", "cwd", "gitBranch", "platform", "user type"],
    &["thinking", "reasoning", "signature", "id"],
    &["file", "image", "media type", "file name", "attachment"],
    &["text", "texts", "empty text", "citations", "sender", "message without words", "reaction"],
    &[
        "tool call",
        "tool input",
        "tool output",
        "tool name",
        "tool result",
        "id",
        "preliminary result",
        "reason of a failure",
        "call that a provider ran",
        "note of a run",
        "duration",
    ],
    &["steering-message", "steering message", "message inside another"],
];

/// Adds what the converted session says otherwise on the branch of each of these pairs of heads.
pub(super) fn add_differences(
    pairs: &[(RecordRef<'_>, RecordRef<'_>)],
    sessions: (&Session, &Session),
    losses: &mut Vec<LossRow>,
) -> Result<()> {
    let (source, converted) = sessions;
    let mut told = Told { known: HashSet::new(), told_of: HashSet::new(), compared: HashSet::new(), rows: Vec::new() };
    for row in losses.iter() {
        told.known.insert((row.record.clone(), row.what.clone()));
        if row.kind == LossKind::Dropped && WHOLE_RECORDS.contains(&row.what.as_str()) {
            told.told_of.insert(row.record.clone());
        }
    }
    for (head, now) in pairs.iter().take(BRANCHES_COMPARED) {
        told.branch(*head, *now)?;
    }
    if let Some((head, _)) = pairs.get(BRANCHES_COMPARED) {
        told.rows.push(row(&head.id(), "branches that were not compared", LossKind::Renamed));
    }
    let title = |session: &Session| session.title().map(|title| (title.text.clone(), title.source));
    let (before, after) = (title(source), title(converted));
    if before != after {
        let record = pairs.first().map(|(head, _)| head.id().into_owned()).unwrap_or_default();
        let is_told = losses.iter().any(|row| row.what == "title");
        told.rows
            .extend((!is_told).then(|| row(&record, "title", changed(before.is_some(), after.is_some()))));
    }
    losses.append(&mut told.rows);
    Ok(())
}

struct Told {
    /// Records and what is known to be otherwise in them.
    known: HashSet<(String, String)>,
    /// Records that are known to be left out as a whole.
    told_of: HashSet<String>,
    /// Messages that an earlier branch had too, by the first of their records.
    compared: HashSet<String>,
    rows: Vec<LossRow>,
}

impl Told {
    fn branch(&mut self, head: RecordRef<'_>, now: RecordRef<'_>) -> Result<()> {
        let (before, after) = (head.session.branch(head), now.session.branch(now));
        let (before, after) = (Conversation::new(&before), Conversation::new(&after));
        let mut before = Window { messages: before.messages(0..before.len()), seen: VecDeque::new() };
        let mut after = Window { messages: after.messages(0..after.len()), seen: VecDeque::new() };
        let mut last = head.id().into_owned();
        loop {
            before.fill()?;
            after.fill()?;
            let (dropped, made_up) = steps(&before.seen, &after.seen);
            for message in before.seen.drain(..dropped) {
                self.whole(&message, LossKind::Dropped);
            }
            for message in after.seen.drain(..made_up) {
                self.push(&[last.as_str()], of_role(message.role), LossKind::Synthesised);
            }
            match (before.seen.pop_front(), after.seen.pop_front()) {
                (Some(was), Some(is)) => {
                    last.clone_from(&was.id);
                    if self.compared.insert(was.id.clone()) {
                        self.message(&was, &is);
                    }
                }
                (Some(was), None) => self.whole(&was, LossKind::Dropped),
                (None, Some(is)) => self.push(&[last.as_str()], of_role(is.role), LossKind::Synthesised),
                (None, None) => return Ok(()),
            }
        }
    }

    /// A message that is nowhere: its records may have told so.
    fn whole(&mut self, message: &Message, kind: LossKind) {
        let records = records(message);
        if self.compared.insert(message.id.clone()) && !records.iter().any(|record| self.told_of.contains(*record)) {
            self.push(&records, of_role(message.role), kind);
        }
    }

    fn message(&mut self, was: &Message, is: &Message) {
        let records = records(was);
        if was.role != is.role {
            self.push(&records, "role", LossKind::Renamed);
        }
        let none = Map::new();
        let (before, after) = (was.metadata.as_ref().unwrap_or(&none), is.metadata.as_ref().unwrap_or(&none));
        for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
            let ours = key == "records" || key == "continues";
            if !ours && before.get(key) != after.get(key) {
                self.push(&records, name_of_key(key), changed(before.contains_key(key), after.contains_key(key)));
            }
        }
        if was.extra != is.extra {
            self.push(&records, "unknown keys", changed(!was.extra.is_empty(), !is.extra.is_empty()));
        }
        self.parts(&records, was, is);
    }

    /// Parts that are the same go out; what is left of a kind became another of that kind, is gone, or is new.
    fn parts(&mut self, records: &[&str], was: &Message, is: &Message) {
        let values = |message: &Message| message.parts.iter().map(comparable).collect::<Vec<Value>>();
        let (before, after) = (values(was), values(is));
        if before == after {
            return;
        }
        let gone = left_over(&before, &after);
        let mut new = left_over(&after, &before);
        if gone.is_empty() && new.is_empty() {
            self.push(records, "order of parts", LossKind::Renamed);
        }
        for (name, count) in gone {
            let became = new.get(&name).copied().unwrap_or_default().min(count);
            new.entry(name.clone()).and_modify(|left| *left -= became);
            (0..became).for_each(|_| self.push(records, &name, LossKind::Renamed));
            (became..count).for_each(|_| self.push(records, &name, LossKind::Dropped));
        }
        for (name, count) in new {
            (0..count).for_each(|_| self.push(records, &name, LossKind::Synthesised));
        }
    }

    fn push(&mut self, records: &[&str], what: &str, kind: LossKind) {
        let Some(first) = records.first() else { return };
        let same = SAME.iter().filter(|names| names.contains(&what)).flat_map(|names| names.iter().copied());
        let names: Vec<&str> = same.chain([what]).collect();
        let is_told =
            |record: &&str| names.iter().any(|name| self.known.contains(&((*record).to_owned(), (*name).to_owned())));
        if !records.iter().any(is_told) {
            self.rows.push(row(first, what, kind));
        }
    }
}

/// Messages of a branch, of which the next few are known.
struct Window<I> {
    messages: I,
    seen: VecDeque<Message>,
}

impl<I: Iterator<Item = Result<Message>>> Window<I> {
    fn fill(&mut self) -> Result<()> {
        while self.seen.len() <= MESSAGES_AHEAD {
            let Some(message) = self.messages.next().transpose()? else { break };
            self.seen.push_back(message);
        }
        Ok(())
    }
}

/// How many of each go before two messages that are one and the same.
fn steps(before: &VecDeque<Message>, after: &VecDeque<Message>) -> (usize, usize) {
    let (Some(was), Some(is)) = (before.front(), after.front()) else { return (0, 0) };
    if looks_like(was, is) {
        return (0, 0);
    }
    let made_up = after.iter().position(|message| looks_like(was, message));
    let dropped = before.iter().position(|message| looks_like(message, is));
    match (dropped, made_up) {
        (Some(dropped), Some(made_up)) if dropped > made_up => (0, made_up),
        (Some(dropped), _) => (dropped, 0),
        (None, Some(made_up)) => (0, made_up),
        // Nothing like either follows: one became the other, or both stand alone.
        (None, None) if was.role == is.role => (0, 0),
        (None, None) => (1, 0),
    }
}

fn looks_like(one: &Message, other: &Message) -> bool {
    one.role == other.role && words(one).eq(words(other))
}

fn words(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.trim()),
        Part::Tool(call) => Some(call.name.as_str()),
        _ => None,
    })
}

/// The kinds of parts that are in the first list and not in the second, and how many of each.
fn left_over(of: &[Value], without: &[Value]) -> BTreeMap<String, usize> {
    let mut there: HashMap<String, usize> = HashMap::new();
    without.iter().for_each(|part| *there.entry(part.to_string()).or_default() += 1);
    let mut left = BTreeMap::new();
    for part in of {
        match there.get_mut(&part.to_string()).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => *left.entry(name_of_part(part)).or_default() += 1,
        }
    }
    left
}

/// A part without the names of records, which are other ones in another file.
fn comparable(part: &Part) -> Value {
    let mut value = serde_json::to_value(part).unwrap_or_default();
    let is_data = matches!(part, Part::Data(_));
    if let Some(data) = value.get_mut("data").and_then(Value::as_object_mut).filter(|_| is_data) {
        data.shift_remove("record");
    }
    if let (Part::Steering(_), Some(object)) = (part, value.as_object_mut()) {
        object.shift_remove("id");
    }
    value
}

fn records(message: &Message) -> Vec<&str> {
    let listed = message.metadata.as_ref().and_then(|metadata| metadata.get("records")).and_then(Value::as_array);
    let listed: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
    if listed.is_empty() { vec![message.id.as_str()] } else { listed }
}

fn of_role(role: Role) -> &'static str {
    match role {
        Role::System => "message of the agent",
        Role::User => "message of a person",
        Role::Assistant => "message of the model",
    }
}

fn name_of_key(key: &str) -> &str {
    match key {
        "cwd" | "gitBranch" => Loss::SURROUNDINGS,
        key => key,
    }
}

fn name_of_part(part: &Value) -> String {
    match part["type"].as_str().unwrap_or("unknown part") {
        "reasoning" => "thinking".to_owned(),
        "step-start" => "step".to_owned(),
        kind if kind == "dynamic-tool" || kind.starts_with("tool-") => "tool call".to_owned(),
        kind => kind.strip_prefix("data-").unwrap_or(kind).to_owned(),
    }
}

fn changed(was: bool, is: bool) -> LossKind {
    match (was, is) {
        (true, true) => LossKind::Renamed,
        (true, false) => LossKind::Dropped,
        (false, _) => LossKind::Synthesised,
    }
}

fn row(record: &str, what: &str, kind: LossKind) -> LossRow {
    LossRow { record: record.to_owned(), what: what.to_owned(), kind, count: 1 }
}
