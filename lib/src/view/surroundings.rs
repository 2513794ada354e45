//! What belongs to a message and is not in it: the time and the tokens of its turn, files that came along, and compactions that kept it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use jiff::Timestamp;

use crate::model::error::Result;
use crate::model::message::{Part, Role};
use crate::model::record::{Body, Content, Cost, Display, Kind, Usage};
use crate::session::{Branch, RecordRef, Request, Session};
use crate::view::conversation::Conversation;
use crate::view::tool_view::{attached_name, data_url_bytes};

/// What belongs to one message and is not in it.
#[derive(Debug, Default)]
pub struct Around {
    /// What the agent attached to it.
    pub attached: Vec<Attached>,
    /// How long its turn took.
    pub duration_ms: Option<u64>,
    /// The tokens of its turn.
    pub usage: Option<Usage>,
    /// The requests of its turn: each has its own price.
    pub requests: Vec<TurnRequest>,
    /// Records whose dividers are shown elsewhere.
    pub moved: Vec<String>,
}

/// A request to a model that a turn made.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRequest {
    /// The model that answered, where the agent names it.
    pub model: Option<String>,
    /// When it was made.
    pub at: Option<Timestamp>,
    /// Its tokens.
    pub usage: Usage,
    /// What it cost, where the agent records that.
    pub cost: Option<Cost>,
}

/// Something that an agent attached to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// A file.
    File {
        /// Its name.
        name: String,
        /// The IANA media type.
        media_type: String,
        /// Its size, if its content is recorded.
        bytes: Option<usize>,
    },
    /// An event in a sentence.
    Notice(String),
}

/// The surroundings of some messages of a branch.
pub struct Surroundings {
    /// By the order of the record.
    requests: BTreeMap<usize, Vec<TurnRequest>>,
    attached: BTreeMap<usize, Vec<Attached>>,
    /// Dividers of compactions, each before the first message that the model still sees, or after the command that asked for it.
    dividers: BTreeMap<usize, Vec<Part>>,
    /// The records of those compactions.
    moved: Vec<String>,
}

impl Surroundings {
    /// Looks around the messages in a range. Only compactions and attachments are read.
    pub fn find(
        session: &Session,
        branch: &Branch<'_>,
        conversation: &Conversation<'_, '_>,
        range: Range<usize>,
    ) -> Result<Surroundings> {
        let (mut dividers, mut moved): (BTreeMap<usize, Vec<Part>>, Vec<String>) = Default::default();
        for at in range.clone() {
            for record in conversation.records(at).filter(|record| record.kind() == Kind::Compaction) {
                let Body::Compaction(compaction) = record.body()? else { continue };
                // Messages that were kept stand above the divider, next to one another.
                let is_preserved = |kept: RecordRef<'_>| compaction.preserved.iter().any(|id| id.as_str() == kept.id());
                // Of one that was kept in part, the divider stands where it happened.
                let is_kept = |at: &usize| match compaction.preserves_between {
                    true => conversation.records(*at).any(is_preserved),
                    false => {
                        conversation.records(*at).find(|record| record.kind().is_dialogue()).is_some_and(is_preserved)
                    }
                };
                let place = if compaction.preserved.is_empty() {
                    // Qwen Code notes the command that asked for it afterwards: in the message that the divider begins, or in the next.
                    let command = if conversation.first(at).order() > record.order() { at } else { at + 1 };
                    (command < range.end && is_compress(conversation, command)?).then_some(command + 1)
                } else {
                    let kept = (range.start..=at).rev().take_while(|at| is_kept(at)).last();
                    kept.filter(|first| *first > range.start && !compaction.preserved_first)
                };
                let Some(place) = place else { continue };
                let Some(message) = conversation.message(at).transpose()? else { continue };
                let id = record.id().into_owned();
                let divider = message.parts.into_iter().find(|part| is_divider_of(part, &id));
                if let Some(divider) = divider {
                    dividers.entry(place).or_default().push(divider);
                    moved.push(id);
                }
            }
        }
        let records: Vec<RecordRef<'_>> = range.clone().flat_map(|at| conversation.records(at)).collect();
        let requests = session.requests_by_record(records).into_iter();
        let requests = requests.map(|(order, of_record)| {
            let turn_request = |request: Request<'_>| TurnRequest {
                model: request.model.filter(|model| !model.is_empty()).map(str::to_owned),
                at: session.time_of(&request),
                usage: request.usage,
                cost: request.cost,
            };
            (order, of_record.into_iter().map(turn_request).collect())
        });
        let requests = requests.collect();
        Ok(Surroundings { requests, attached: attached(branch, conversation, range)?, dividers, moved })
    }

    /// The dividers of compactions that kept this message and what follows it.
    pub fn dividers_before(&self, at: usize) -> impl Iterator<Item = &Part> {
        self.dividers.get(&at).into_iter().flatten()
    }

    /// The surroundings of one message.
    pub fn of(&self, at: usize, conversation: &Conversation<'_, '_>) -> Around {
        let is_answer = conversation.role(at) == Some(Role::Assistant);
        // A turn lasts from the prompt to its last record; a compaction or a rewind comes after it.
        let is_between =
            |kind: Kind| matches!(kind, Kind::Compaction | Kind::Rewind | Kind::Restore | Kind::Attachment);
        let of_turn = |at: usize| conversation.records(at).filter(|record| !is_between(record.kind()));
        let requests = of_turn(at).filter(|_| is_answer).filter_map(|record| self.requests.get(&record.order()));
        let requests: Vec<TurnRequest> = requests.flatten().cloned().collect();
        let usage = Usage::sum(requests.iter().map(|request| request.usage));
        let times = |at: usize| of_turn(at).filter_map(|record| record.at());
        let start = at.checked_sub(1).and_then(|before| times(before).max());
        let duration = start.zip(times(at).max()).filter(|_| is_answer);
        let duration_ms = duration.and_then(|(start, end)| u64::try_from(end.duration_since(start).as_millis()).ok());
        let attached = self.attached.get(&at).cloned().unwrap_or_default();
        Around { attached, duration_ms, usage, requests, moved: self.moved.clone() }
    }
}

/// Whether a message is the command that compacts.
fn is_compress(conversation: &Conversation<'_, '_>, at: usize) -> Result<bool> {
    for record in conversation.records(at) {
        if let Body::System(Content { display: Some(Display::Command { text }), .. }) = record.body()? {
            return Ok(text.split_whitespace().next() == Some("/compress"));
        }
    }
    Ok(false)
}

fn is_divider_of(part: &Part, record: &str) -> bool {
    matches!(part, Part::Data(data) if data.kind == "compaction" && data.data["record"] == record)
}

/// What the agent attached to prompts, by the prompt: the message before it, or the one after it.
fn attached(
    branch: &Branch<'_>,
    conversation: &Conversation<'_, '_>,
    range: Range<usize>,
) -> Result<BTreeMap<usize, Vec<Attached>>> {
    let in_message = range.flat_map(|at| conversation.records(at).map(move |record| (record.order(), at)));
    let in_message: HashMap<usize, usize> = in_message.collect();
    let mut attached: BTreeMap<usize, Vec<Attached>> = BTreeMap::new();
    let (mut before, mut waiting) = (None, Vec::new());
    for record in &branch.records {
        let at = in_message.get(&record.order()).copied();
        before = at.or(before);
        if record.kind() == Kind::User {
            let mentioned = std::mem::take(&mut waiting);
            // The prompt may be outside the range.
            if let Some(at) = at.filter(|_| !mentioned.is_empty()) {
                attached.entry(at).or_default().extend(mentioned);
            }
        }
        if record.kind() == Kind::Rewind {
            // It can lead to between a mention and its prompt: the prompt that follows now did not mention it.
            waiting.clear();
        }
        if at.is_some() || record.kind() != Kind::Attachment {
            continue;
        }
        if let Body::Attachment(content) = record.body()? {
            let is_mention = |part: &Part| matches!(part, Part::Data(data) if data.kind == "mention");
            let list = match before {
                // Of the prompt that follows.
                _ if content.parts.iter().any(is_mention) => &mut waiting,
                Some(last) => attached.entry(last).or_default(),
                None => continue,
            };
            match &content.display {
                Some(Display::Notification { text }) => list.push(Attached::Notice(text.clone())),
                _ => list.extend((0..content.parts.len()).filter_map(|at| file(&content.parts, at))),
            }
        }
    }
    Ok(attached)
}

fn file(parts: &[Part], at: usize) -> Option<Attached> {
    let Part::File(file) = parts.get(at)? else { return None };
    let name = attached_name(parts, at).to_owned();
    Some(Attached::File { name, media_type: file.media_type.clone(), bytes: data_url_bytes(&file.url) })
}
