//! The answers of a session as a script: which of them answers a request.
//!
//! ```text
//! session   u1  a1(call) r1  a2   u2  a3        answers: a1 a2 a3
//! request   u1  a1(call) r1                     the same items as before a2: answered with a2
//! request   u1                                  answered with a1, however often it comes
//! ```
//!
//! Nothing is counted along: a request that is sent again gets the same answer, and so does one in the middle of the session. An
//! answer is read when it is asked for; the script itself is only places.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::items::{self, Difference, Item};
use crate::model::error::Result;
use crate::model::record::{Kind, RecordId, Usage};
use crate::redact::Redactor;
use crate::session::{HeadKind, RecordRef, Session};
use crate::view::history::{History, Turn, TurnOrigin, View};

/// How many answers are compared with a request: those with about as many answers before them. Each comparison reads a history.
const COMPARED_ANSWERS: usize = 6;

/// The answers of a session and of its sub-agents.
pub struct Script {
    threads: Vec<Thread>,
}

/// One conversation with a model.
struct Thread {
    session: Arc<Session>,
    answers: Vec<Place>,
}

/// Where an answer is: one or several turns of the model in a row, because between two requests somebody says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Its first and its last record, by their order in the file.
    first: usize,
    last: usize,
    /// How many turns of the same first record precede it: a record may hold several answers.
    nth: usize,
    /// How many answers precede it in what the model sees.
    answers_before: usize,
}

/// Names an answer of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnswerId {
    thread: usize,
    answer: usize,
}

/// How a request is compared with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It has the items that the session has before the answer.
    Strict,
    /// It has as many answers as the session has before it.
    Loose,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It gets this answer.
    Answer(Box<RecordedAnswer>),
    /// The session has something else before each of its answers; the difference to the one that is nearest.
    Differs(Difference),
    /// The session has fewer answers.
    NoMore,
}

/// An answer in the words of one API.
#[derive(Debug)]
pub struct RecordedAnswer {
    /// Which one it is.
    pub id: AnswerId,
    /// Its number among all answers, counted from 1.
    pub number: usize,
    /// Its last record.
    pub record: RecordId,
    /// The assistant's messages or items, as [`View::messages`] gives them.
    pub messages: Vec<Value>,
    /// The model that answered.
    pub model: Option<String>,
    /// What the answer cost.
    pub usage: Option<Usage>,
}

impl Script {
    /// The answers of a session, and of the sessions of its sub-agents.
    pub fn new(sessions: &[Arc<Session>]) -> Result<Script> {
        let mut threads = Vec::new();
        for session in sessions {
            let main = session.head();
            let asides = session.heads().filter(|head| head.kind == HeadKind::Sidechain).map(|head| head.record);
            for head in main.into_iter().chain(asides) {
                let answers = answers(session, head)?;
                if !answers.is_empty() {
                    threads.push(Thread { session: session.clone(), answers });
                }
            }
        }
        Ok(Script { threads })
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.threads.iter().map(|thread| thread.answers.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Finds the answer to a request. Of several that fit, one that was not played yet.
    pub fn answer(
        &self,
        view: View,
        request: &Value,
        how: Comparison,
        mask: Option<&Redactor>,
        played: &HashSet<AnswerId>,
    ) -> Result<Outcome> {
        let sent = items::of_request(view, request, mask);
        let answers = answer_count(&sent);
        let mut nearest: Vec<(AnswerId, Place)> = self.places().collect();
        nearest.sort_by_key(|(id, place)| (place.answers_before.abs_diff(answers), played.contains(id), *id));
        let mut difference = None;
        for (id, place) in nearest.iter().take(COMPARED_ANSWERS) {
            let (before, answer) = self.read(*id, *place, view)?;
            match Difference::between(&sent, &before) {
                None => return Ok(Outcome::Answer(Box::new(answer))),
                Some(_)
                    if how == Comparison::Loose && begins_alike(&sent, &before) && place.answers_before == answers =>
                {
                    return Ok(Outcome::Answer(Box::new(answer)));
                }
                Some(found) => difference = furthest(difference, found),
            }
        }
        let is_beyond = nearest.first().is_none_or(|(_, place)| place.answers_before < answers);
        match (how, nearest.first(), difference) {
            (_, _, None) => Ok(Outcome::NoMore),
            (Comparison::Loose, Some((id, place)), Some(_)) if !is_beyond => {
                Ok(Outcome::Answer(Box::new(self.read(*id, *place, view)?.1)))
            }
            (Comparison::Loose, _, Some(_)) => Ok(Outcome::NoMore),
            (Comparison::Strict, _, Some(found)) if is_beyond && found.expected.is_none() => Ok(Outcome::NoMore),
            (Comparison::Strict, _, Some(difference)) => Ok(Outcome::Differs(difference)),
        }
    }

    fn places(&self) -> impl Iterator<Item = (AnswerId, Place)> {
        self.threads.iter().enumerate().flat_map(|(thread, of)| {
            of.answers.iter().enumerate().map(move |(answer, place)| (AnswerId { thread, answer }, *place))
        })
    }

    /// What precedes an answer, and the answer.
    fn read(&self, id: AnswerId, place: Place, view: View) -> Result<(Vec<Item>, RecordedAnswer)> {
        let session = &self.threads[id.thread].session;
        let Some(last) = session.records().nth(place.last) else { return Ok((Vec::new(), RecordedAnswer::none(id))) };
        let mut history = History::of(session, last)?;
        let mut own = history.turns.iter().enumerate().filter(|(_, turn)| is_answer_of(turn, place.first));
        let Some(at) = own.nth(place.nth).map(|(at, _)| at) else {
            return Ok((Vec::new(), RecordedAnswer::none(id)));
        };
        let mut turns = history.turns.split_off(at);
        turns.truncate(turns.iter().take_while(|turn| is_answer(turn)).count());
        let before = items::of_messages(view, &view.messages(&history)?.0, None);
        let (model, mut usage) = (turns.iter().find_map(|turn| turn.model.clone()), None);
        for record in turns.iter().flat_map(|turn| &turn.records) {
            usage = record.body()?.content().and_then(|content| content.usage).or(usage);
        }
        history.turns = turns;
        let messages = view.messages(&history)?.0.into_iter().filter(is_of_model).collect();
        let before_it = self.threads[..id.thread].iter().map(|thread| thread.answers.len()).sum::<usize>();
        let record = RecordId(last.id().into_owned());
        Ok((before, RecordedAnswer { id, number: before_it + id.answer + 1, record, messages, model, usage }))
    }
}

impl RecordedAnswer {
    /// For a file that has changed: what was there is gone.
    fn none(id: AnswerId) -> RecordedAnswer {
        let (messages, record) = (Vec::new(), RecordId(String::new()));
        RecordedAnswer { id, number: 0, record, messages, model: None, usage: None }
    }
}

/// The answers on a branch, also those that compactions have replaced since.
fn answers<'s>(session: &'s Session, head: RecordRef<'s>) -> Result<Vec<Place>> {
    let branch = session.branch(head);
    let before_compactions = branch.records.windows(2).filter(|pair| pair[1].kind() == Kind::Compaction);
    let points: Vec<RecordRef<'s>> = before_compactions.map(|pair| pair[0]).chain([head]).collect();
    let (mut places, mut seen): (Vec<Place>, HashSet<(usize, usize)>) = (Vec::new(), HashSet::new());
    for point in points {
        let history = History::of(session, point)?;
        let mut turns_of: HashMap<usize, usize> = HashMap::new();
        let mut answers_before = 0;
        for answer in history.turns.chunk_by(|one, next| is_answer(one) && is_answer(next)) {
            let records = || answer.iter().flat_map(|turn| &turn.records);
            let (Some(first), Some(last)) = (records().next(), records().last()) else { continue };
            if !is_answer(&answer[0]) {
                continue;
            }
            let nth = turns_of.get(&first.order()).copied().unwrap_or(0);
            for turn in answer.iter().filter_map(|turn| turn.records.first()) {
                *turns_of.entry(turn.order()).or_default() += 1;
            }
            // A replacement repeats what was said before the compaction.
            if first.kind() != Kind::Compaction && seen.insert((first.order(), nth)) {
                places.push(Place { first: first.order(), last: last.order(), nth, answers_before });
            }
            answers_before += 1;
        }
    }
    Ok(places)
}

fn is_answer(turn: &Turn<'_>) -> bool {
    turn.origin == TurnOrigin::Answer
}

fn is_answer_of(turn: &Turn<'_>, first: usize) -> bool {
    is_answer(turn) && turn.records.first().is_some_and(|record| record.order() == first)
}

/// How many answers there are: what the model made without anything in between is one.
fn answer_count(items: &[Item]) -> usize {
    items
        .chunk_by(|one, next| one.kind.is_answer() == next.kind.is_answer())
        .filter(|chunk| chunk[0].kind.is_answer())
        .count()
}

/// Whether two conversations begin with the same text: those of an agent and its sub-agents do not.
fn begins_alike(one: &[Item], other: &[Item]) -> bool {
    one.first() == other.first()
}

/// The later one of two differences: what is like the request for longer is nearer.
fn furthest(known: Option<Difference>, found: Difference) -> Option<Difference> {
    match known {
        Some(known) if known.item >= found.item => Some(known),
        _ => Some(found),
    }
}

/// Whether the model made a message of a view: a view may put another one before an answer.
fn is_of_model(message: &Value) -> bool {
    message["role"].as_str().is_none_or(|role| matches!(role, "assistant" | "model"))
}
