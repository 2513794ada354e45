//! From a session to its facts. Each body is read once, with its secrets: no text of it is kept.

use std::path::Path;

use hashbrown::HashMap;
use serde::Deserialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{
    ABSURD_TOKENS, EventFact, EventKind, Origin, PAUSE_LIMIT_MS, RequestCost, RequestFact, SessionCounts, Tokens,
};
use crate::dialect::layout::beside_converted;
use crate::model::error::Result;
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Body, Content, Cost, Kind, Outcome, SessionId, ToolResult, Usage};
use crate::model::regular_file::{self, Links};
use crate::session::tree::facts::Facts;
use crate::session::tree::skeleton::{Flags, KeyRole, NO_TIME};
use crate::session::{RecordRef, Request, RequestId, Session};
use crate::view::tool_calls::recorded_duration;
use crate::view::tool_view::ToolView;
use crate::view::turns::{TurnEnd, TurnReader, Turns, beginning, is_read};

/// The file beside a converted session is not longer than its table of ids needs.
const CONVERSION_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// More models or tools of one session have no name: a session that lists so many is made up.
const NAMES_KEPT: usize = 250;

impl SessionCounts {
    /// Collects what a session can add to a count. Prices are not known here.
    pub fn of(session: &Session) -> Result<SessionCounts> {
        let mut collector = Collector::new(session);
        let turns = session.turns()?;
        for prompt in turns.by_prompt() {
            collector.turn(&turns, &prompt)?;
        }
        collector.requests();
        collector.counts.replays = replays(session);
        Ok(collector.finish())
    }
}

/// Which session a converted file was made of, and how many of its bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conversion {
    from: ConvertedFrom,
    converted_bytes: u64,
}

#[derive(Deserialize)]
struct ConvertedFrom {
    dialect: String,
    session: String,
}

impl Conversion {
    fn of(converted: &Path) -> Option<Conversion> {
        let [description, _] = beside_converted(converted);
        let bytes = regular_file::read(&description, CONVERSION_LIMIT_BYTES, Links::Refuse).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

struct Collector<'s> {
    session: &'s Session,
    /// A sub-agent's prompts are no turns of a person.
    is_sub_agent: bool,
    conversion: Option<Conversion>,
    counts: SessionCounts,
    /// The record of each event, by its number.
    nodes: Vec<u32>,
    /// The event of each answer that is written as several records.
    answers: HashMap<u64, usize>,
    /// The last call with each id: its event, and when it was made.
    calls: HashMap<String, (usize, Option<i64>)>,
    /// How calls ended after their results.
    late: HashMap<String, ToolResult>,
}

/// What is known of the turn that is being read.
#[derive(Default)]
struct OpenTurn {
    /// The event of its prompt.
    prompt: Option<usize>,
    /// The answer that further items belong to.
    answer: Option<usize>,
    has_thinking: bool,
    has_answer: bool,
    /// The last call with each name and input.
    tried: HashMap<u64, usize>,
}

impl<'s> Collector<'s> {
    fn new(session: &'s Session) -> Collector<'s> {
        Collector {
            session,
            is_sub_agent: session.parent_session().is_some(),
            conversion: Conversion::of(session.path()),
            counts: SessionCounts::default(),
            nodes: Vec::new(),
            answers: HashMap::new(),
            calls: HashMap::new(),
            late: HashMap::new(),
        }
    }

    /// Reads a turn on all its branches. The first of these begins with the prompt.
    fn turn(&mut self, turns: &Turns<'s>, branches: &[usize]) -> Result<()> {
        let (mut open, mut reader, mut first) = (OpenTurn::default(), TurnReader::default(), None);
        let mut records: Vec<RecordRef<'s>> = branches.iter().flat_map(|turn| turns.records(*turn)).collect();
        records.retain(|record| is_read(*record) && !record.is_inherited());
        if branches.len() > 1 {
            records.sort_by_key(|record| record.order());
        }
        for record in records.iter().copied() {
            let body = record.exact_body()?;
            reader.add(record, &body)?;
            match &body {
                Body::Assistant(content) => {
                    let late = record.exact_late_results()?;
                    self.late.extend(late.into_iter().map(|late| (late.call_id.clone(), late)));
                    self.answer(record, content, &mut open);
                }
                Body::Compaction(_) if record.parent().is_none_or(|parent| parent.kind() != Kind::Compaction) => {
                    self.push(record, b"compaction", None, EventKind::Compaction);
                }
                body => body.content().into_iter().for_each(|content| self.results(record, &content.results)),
            }
            if record.kind() != Kind::Assistant && !record.is_side() {
                open.answer = None;
            }
            if first.is_none() {
                if matches!(body, Body::User(_) | Body::System(_)) {
                    open.prompt = Some(self.prompt(record, &body));
                }
                first = Some((record, body));
            }
        }
        let (Some((record, body)), Some(prompt)) = (first, open.prompt) else { return Ok(()) };
        turns.read_next(branches[0], &mut reader)?;
        let end = turns.end(branches[0], beginning(record, &body).0, &body, &reader)?;
        let is_answered = matches!(end, Some(TurnEnd::Answered | TurnEnd::AnsweredWithNext));
        let is_clean = is_answered || (branches.len() > 1 && turns.has_answered_branch(&records)?);
        // A command of the agent that asks the model is a turn, too.
        let is_prompt = record.kind() == Kind::User || open.has_answer;
        self.counts.events[prompt].kind = EventKind::Prompt {
            is_turn: is_prompt && !self.is_sub_agent && !record.is_sidechain(),
            is_clean,
            has_thinking: open.has_thinking,
        };
        if !is_prompt {
            // It only tells people something. Its time stays with the event before.
            self.counts.events[prompt].kind =
                EventKind::Prompt { is_turn: false, is_clean: false, has_thinking: false };
            self.nodes[prompt] = u32::MAX;
        }
        Ok(())
    }

    fn prompt(&mut self, record: RecordRef<'_>, body: &Body) -> usize {
        let mut text = Xxh3::new();
        body.content().into_iter().for_each(|content| text.update(content.text().as_bytes()));
        let kind = EventKind::Prompt { is_turn: false, is_clean: false, has_thinking: false };
        self.push(record, &text.digest().to_le_bytes(), None, kind)
    }

    fn answer(&mut self, record: RecordRef<'_>, content: &Content, open: &mut OpenTurn) {
        let model = content.model.as_deref().filter(|model| !model.is_empty());
        let model = model.map(|model| number_of(&mut self.counts.models, &self.session.shown(model)));
        let (mut text, mut thinking) = (0, 0);
        for part in &content.parts {
            match part {
                Part::Text(part) => text += part.text.chars().count(),
                Part::Reasoning(part) => thinking += part.text.chars().count(),
                _ => {}
            }
        }
        let is_said = !record.is_failure() && content.parts.iter().any(|part| !matches!(part, Part::StepStart));
        if is_said {
            let group = record.keys(KeyRole::Group).next();
            let known = group.and_then(|group| self.answers.get(&group).copied());
            let known = known.or(open.answer.filter(|_| record.is_item() && group.is_none()));
            let answer = known.unwrap_or_else(|| {
                let kind = EventKind::Answer { text_chars: 0, thinking_chars: 0 };
                self.push(record, &group.unwrap_or(1).to_le_bytes(), model, kind)
            });
            if let EventKind::Answer { text_chars, thinking_chars } = &mut self.counts.events[answer].kind {
                *text_chars = text_chars.saturating_add(text as u32);
                *thinking_chars = thinking_chars.saturating_add(thinking as u32);
            }
            group.into_iter().for_each(|group| _ = self.answers.insert(group, answer));
            open.answer = Some(answer).filter(|_| record.is_item());
            (open.has_answer, open.has_thinking) = (true, open.has_thinking || thinking > 0);
        }
        content.parts.iter().filter_map(Part::as_call).for_each(|call| self.call(record, call, model, open));
        self.results(record, &content.results);
    }

    fn call(&mut self, record: RecordRef<'_>, call: &ToolPart, model: Option<u16>, open: &mut OpenTurn) {
        let input = call.input().map(ToString::to_string).unwrap_or_default();
        let tried = hash_of([call.name.as_bytes(), input.as_bytes()]);
        let before = open.tried.get(&tried).map(|event| &self.counts.events[*event].kind);
        let is_retry = matches!(before, Some(EventKind::Call { has_failed: true, .. }));
        let (has_failed, duration_ms) = match &call.state {
            ToolState::OutputError { .. } | ToolState::OutputDenied { .. } => (true, None),
            _ => (false, recorded_duration(call)),
        };
        let first_file = self.counts.files.len() as u32;
        if let ToolView::Change(changes) = ToolView::of(call) {
            let paths: Vec<u64> = changes.files.iter().map(|file| self.path(file.path)).collect();
            self.counts.files.extend(paths);
        }
        let files = first_file..self.counts.files.len() as u32;
        let tool = number_of(&mut self.counts.tools, &self.session.shown(&call.name));
        let kind = EventKind::Call { tool, has_failed, is_retry, duration_ms, files };
        let event = self.push(record, &xxh3_64(call.call_id.as_bytes()).to_le_bytes(), model, kind);
        open.tried.insert(tried, event);
        self.calls.insert(call.call_id.clone(), (event, record.at().map(|at| at.as_microsecond())));
    }

    fn results(&mut self, record: RecordRef<'_>, results: &[ToolResult]) {
        for result in results.iter().filter(|result| !result.preliminary) {
            let Some((event, made)) = self.calls.get(&result.call_id).copied() else { continue };
            let between = record.at().zip(made).map(|(at, made)| (at.as_microsecond() - made) / 1000);
            let between = between.and_then(|ms| u64::try_from(ms).ok());
            let result = self.late.get(&result.call_id).unwrap_or(result);
            if let EventKind::Call { has_failed, duration_ms, .. } = &mut self.counts.events[event].kind {
                *has_failed = result.outcome != Outcome::Done;
                *duration_ms = result.duration_ms.or(*duration_ms).or(between);
            }
        }
    }

    /// The hash of a path, from the root where the session says where it worked.
    fn path(&self, path: &str) -> u64 {
        let whole = self.session.cwd().map_or_else(|| path.into(), |cwd| Path::new(cwd).join(path));
        xxh3_64(whole.as_os_str().as_encoded_bytes())
    }

    fn own_id(&self, record: u32, what: &[u8]) -> u64 {
        hash_of([self.session.path().as_os_str().as_encoded_bytes(), &record.to_le_bytes(), what])
    }

    fn push(&mut self, record: RecordRef<'_>, what: &[u8], model: Option<u16>, kind: EventKind) -> usize {
        let at = record.at().map(|at| at.as_microsecond());
        let place = record.place();
        let origin = self.origin(record.is_copied(), place.file == 0, place.offset);
        self.counts.events.push(EventFact { content: xxh3_64(what), at, model, origin, active_ms: 0, kind });
        self.nodes.push(record.order() as u32);
        self.nodes.len() - 1
    }

    /// The session that a record was copied from, by its mark or by its place in a converted file.
    fn origin(&mut self, is_copied: bool, is_first_file: bool, offset: u64) -> Option<u8> {
        let converted = self.conversion.as_ref().filter(|made| is_first_file && offset < made.converted_bytes);
        let origin = match converted {
            Some(Conversion { from, .. }) => {
                Origin { dialect: Some(from.dialect.clone()), session: SessionId::from(from.session.as_str()) }
            }
            None => {
                let session = self.session.forked_from().filter(|_| is_copied)?;
                Origin { dialect: None, session: SessionId::from(session) }
            }
        };
        Some(number_of(&mut self.counts.origins, &origin) as u8)
    }

    fn requests(&mut self) {
        let session = self.session;
        let mut requests: Vec<_> = session.requests().into_iter().collect();
        requests.sort_by_key(|(_, request)| request.first());
        // A running total that is only repeated is no request.
        requests.retain(|(id, request)| matches!(id, RequestId::Named(_)) || request.usage.total() != Some(0));
        let owners = session.owners();
        let mut costs = shared_costs(session, &requests);
        for (id, request) in &requests {
            let (first, entry) = (request.first() as usize, request.entry() as usize);
            let (first, entry) = (&session.skeleton.entries[first], (entry, &session.skeleton.entries[entry]));
            let at = Some(first.at).filter(|at| *at != NO_TIME);
            let (tokens, absurd) = believed(request.usage);
            let recorded = costs.remove(&request.first()).or(request.cost);
            let id = match (id, at) {
                (RequestId::Named(name), _) => *name,
                (RequestId::Record(_), Some(at)) => {
                    let counts = tokens.counts().map(|count| count.map_or(0, |count| count + 1).to_le_bytes());
                    hash_of([&at.to_le_bytes()[..], counts.as_flattened()])
                }
                (RequestId::Record(record), None) => self.own_id(*record, b"request"),
            };
            let (_, reported) = entry;
            let origin =
                self.origin(reported.flags.has(Flags::COPIED), reported.place.file == 0, reported.place.offset);
            let model = request.model.filter(|model| !model.is_empty());
            self.counts.requests.push(RequestFact {
                id,
                at,
                model: model.map(|model| number_of(&mut self.counts.models, &session.shown(model))),
                origin,
                tokens,
                cost: recorded.map_or(RequestCost::Unknown, RequestCost::Recorded),
                line: reported.place.line,
                record: owners[entry.0].unwrap_or(u32::MAX),
                absurd,
                events_before: 0,
            });
        }
    }

    /// Sorts the events, names the model of those that do not, and shares out the active time.
    fn finish(mut self) -> SessionCounts {
        let mut events: Vec<(u32, EventFact)> = self.nodes.into_iter().zip(self.counts.events).collect();
        // What was only told to people is not counted.
        events.retain(|(node, _)| *node != u32::MAX);
        events.sort_by_key(|(node, _)| *node);
        for request in &mut self.counts.requests {
            request.events_before = events.partition_point(|(node, _)| *node <= request.record) as u32;
        }
        let (requests, mut next) = (&self.counts.requests, 0);
        for (node, event) in &mut events {
            // The model of the request that is reported next: some agents name it there only.
            while requests.get(next + 1).is_some() && requests[next].record < *node {
                next += 1;
            }
            event.model = event.model.or_else(|| requests.get(next)?.model);
        }
        let (mut at, mut before) = (0, None);
        for record in self.session.records().filter(|record| !record.is_inherited()) {
            while events.get(at + 1).is_some_and(|(node, _)| *node <= record.order() as u32) {
                at += 1;
            }
            let Some(now) = record.at().map(|at| at.as_millisecond()) else { continue };
            let pause = before.replace(now).map_or(0, |before| now - before);
            if let Some((_, event)) = events.get_mut(at).filter(|_| (0..=PAUSE_LIMIT_MS).contains(&pause)) {
                event.active_ms = event.active_ms.saturating_add(pause as u32);
            }
        }
        self.counts.events = events.into_iter().map(|(_, event)| event).collect();
        self.counts
    }
}

/// The sessions whose beginning a session may repeat: an agent that forks by reference copied the history in earlier versions, with new
/// times and without names of its requests.
fn replays(session: &Session) -> Vec<SessionId> {
    if !session.dialect().traits().forks_by_reference {
        return Vec::new();
    }
    let Facts { forked_from, parent_session, copied_headers, .. } = &session.derived.facts;
    let mut named: Vec<SessionId> = Vec::new();
    for id in forked_from.iter().chain(parent_session).chain(copied_headers) {
        let id = SessionId::from(id.as_str());
        named.extend(Some(id).filter(|id| !named.contains(id)));
    }
    named
}

/// What an agent says that all requests to a model cost so far, shared among them by their tokens.
fn shared_costs(session: &Session, requests: &[(RequestId, Request<'_>)]) -> HashMap<u32, Cost> {
    let mut shares = HashMap::new();
    for (model, cost) in &session.skeleton.facts.costs_so_far {
        let of_model = |request: &&(RequestId, Request<'_>)| request.1.model == model.as_deref();
        let tokens = |usage: Usage| u128::from(usage.total().unwrap_or(0).min(ABSURD_TOKENS)) + 1;
        let all: u128 = requests.iter().filter(of_model).map(|(_, request)| tokens(request.usage)).sum();
        let (mut counted, mut given) = (0, Cost::default());
        for (_, request) in requests.iter().filter(of_model) {
            counted += tokens(request.usage);
            let until = cost.share(counted, all);
            shares.insert(request.first(), until.without(given));
            given = until;
        }
    }
    shares
}

/// The counts of a request that can be true, and how many are not.
fn believed(usage: Usage) -> (Tokens, u8) {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    let counts = [input, output, cache_read, cache_write, reasoning];
    let absurd = counts.iter().flatten().filter(|count| **count > ABSURD_TOKENS).count() as u8;
    (Tokens::new(counts), absurd)
}

fn hash_of<const N: usize>(pieces: [&[u8]; N]) -> u64 {
    let mut hash = Xxh3::new();
    pieces.iter().for_each(|piece| hash.update(piece));
    hash.digest()
}

/// The number of a name in a list that holds each once.
fn number_of<T: Clone + PartialEq>(names: &mut Vec<T>, name: &T) -> u16 {
    if let Some(known) = names.iter().position(|known| known == name) {
        return known as u16;
    }
    if names.len() == NAMES_KEPT {
        return u16::MAX;
    }
    names.push(name.clone());
    (names.len() - 1) as u16
}
