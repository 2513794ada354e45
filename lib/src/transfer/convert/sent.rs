//! What an agent's records mean to the model, where other formats cannot say it in the same records: what a compaction keeps,
//! files that a prompt mentions, and failures in the model's place.

use hashbrown::{HashMap, HashSet};

use crate::model::error::Result;
use crate::model::message::{Part, ToolState};
use crate::model::record::{Body, Compaction, Content, Display, Kind, Outcome, RecordId};
use crate::session::RecordRef;
use crate::view::history::{History, NO_RESULT, Turn, TurnItem, TurnOrigin};

/// How many compactions are written out, the newest first: each takes a walk through its branch.
const COMPACTIONS_WRITTEN_OUT: usize = 64;

/// What the records of a replay mean to the model.
#[derive(Default)]
pub(super) struct Sent<'s> {
    /// The attachments that are sent before a record, by its order: the first that was said since the last answer.
    attached: HashMap<usize, Vec<RecordRef<'s>>>,
    are_attached: HashSet<usize>,
    /// The compactions that are written out.
    compactions: HashSet<usize>,
}

impl<'s> Sent<'s> {
    pub(super) fn of(records: &[RecordRef<'s>]) -> Result<Sent<'s>> {
        let compactions = records.iter().rev().filter(|record| record.kind() == Kind::Compaction);
        let compactions = compactions.take(COMPACTIONS_WRITTEN_OUT).map(|record| record.order()).collect();
        let mut sent = Sent { compactions, ..Sent::default() };
        sent.find_attached(records)?;
        Ok(sent)
    }

    /// What a prompt mentions follows it, and is sent before all that was said since the last answer.
    fn find_attached(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let mut firsts: HashMap<usize, usize> = HashMap::new();
        for record in records.iter().filter(|record| !record.is_side()) {
            let first = record.parent().and_then(|parent| firsts.get(&parent.order()).copied());
            let first = match record.kind() {
                Kind::Assistant | Kind::ToolResult | Kind::Compaction => continue,
                Kind::User => first.or(Some(record.order())),
                Kind::Attachment | Kind::System => {
                    let body = record.body()?;
                    let sent = body.content().filter(|content| content.to_model);
                    let is_attached = sent.is_some_and(|content| content.is_attached && content.results.is_empty());
                    if let Some(first) = first.filter(|_| is_attached) {
                        self.attached.entry(first).or_default().push(*record);
                        self.are_attached.insert(record.order());
                    }
                    first.or(sent.map(|_| record.order()))
                }
                _ => first,
            };
            firsts.extend(first.map(|first| (record.order(), first)));
        }
        Ok(())
    }

    /// Whether a record is an attachment that is written elsewhere.
    pub(super) fn is_attached(&self, record: RecordRef<'_>) -> bool {
        self.are_attached.contains(&record.order())
    }

    /// What is written in a record of its own before a record that is no prompt.
    pub(super) fn before(&self, record: RecordRef<'_>) -> Result<Option<Content>> {
        let parts = self.attached_parts(record)?;
        let is_apart = record.kind() != Kind::User && !parts.is_empty();
        Ok(is_apart.then(|| Content { parts, to_model: true, ..Content::default() }))
    }

    fn attached_parts(&self, record: RecordRef<'_>) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for attached in self.attached.get(&record.order()).into_iter().flatten() {
            parts.extend(attached.body()?.content_mut().into_iter().flat_map(|of| std::mem::take(&mut of.parts)));
        }
        Ok(parts)
    }

    /// Says in one body what the model sees of some records.
    pub(super) fn settle(&self, body: Body, group: &[RecordRef<'s>]) -> Result<Body> {
        let [first, ..] = group else { return Ok(body) };
        Ok(match body {
            // The agent reports a failure in the model's place: another one would send it as an answer.
            Body::Assistant(content) if first.is_failure() && content.model.is_none() => Body::System(content),
            Body::User(mut content) => {
                let mentioned = self.attached_parts(*first)?;
                if content.display.is_none() && mentioned.iter().any(|part| part.as_text().is_some()) {
                    content.display = Some(Display::Typed { text: content.text() });
                }
                content.parts.splice(0..0, mentioned);
                Body::User(content)
            }
            Body::Compaction(compaction) if self.compactions.contains(&first.order()) => {
                Body::Compaction(written_out(compaction, group)?)
            }
            body => body,
        })
    }
}

/// A compaction with all that the model sees instead, where it only names the records that it keeps, or is the summary of a cut
/// that other records come after.
fn written_out(mut compaction: Compaction, group: &[RecordRef<'_>]) -> Result<Compaction> {
    let Some(last) = group.last() else { return Ok(compaction) };
    let mut below = Below::new(*last);
    // A copy that a fork makes may have what was kept after the summary: there it is written as itself.
    let named = |id: &RecordId| last.session.record(id);
    compaction.preserved.retain(|id| named(id).is_none_or(|record| !below.has(record)));
    let has_text = compaction.summary.as_ref().is_some_and(|summary| !summary.trim().is_empty());
    let is_whole = compaction.replacement.as_ref().is_some_and(|bodies| !bodies.is_empty());
    let keeps_more = !compaction.cuts || !compaction.preserved.is_empty() || compaction.keeps_prompts;
    let is_sent = has_text || (compaction.cuts && compaction.keeps_prompts);
    if !keeps_more || !is_sent || is_whole {
        return Ok(compaction);
    }
    let history = History::of(last.session, *last)?;
    let turns = history.turns.into_iter().filter(|turn| !turn.records.iter().any(|record| below.has(*record)));
    let replacement = turns.filter_map(into_body).collect();
    let Compaction { summary, trigger, messages, tokens_before, tokens_after, .. } = compaction;
    let replacement = Some(replacement);
    let cuts = true;
    Ok(Compaction {
        summary,
        trigger,
        messages,
        tokens_before,
        tokens_after,
        replacement,
        cuts,
        ..Compaction::default()
    })
}

/// The records that follow one.
struct Below {
    top: usize,
    /// Whether each record that was looked at is one of them, by its order.
    known: HashMap<usize, bool>,
}

impl Below {
    fn new(top: RecordRef<'_>) -> Below {
        Below { top: top.order(), known: HashMap::new() }
    }

    fn has(&mut self, record: RecordRef<'_>) -> bool {
        let (mut path, mut is_below) = (Vec::new(), false);
        // Each record is passed once, however many are asked for.
        for above in std::iter::successors(Some(record), |record| record.parent()) {
            if let Some(known) = self.known.get(&above.order()) {
                is_below = *known;
                break;
            }
            if above.order() == self.top {
                is_below = !path.is_empty();
                break;
            }
            path.push(above.order());
        }
        self.known.extend(path.into_iter().map(|order| (order, is_below)));
        is_below
    }
}

/// A turn as a body of a replaced history.
fn into_body(turn: Turn<'_>) -> Option<Body> {
    let mut content = Content { model: turn.model, sender: turn.sender, ..Content::default() };
    for item in turn.items {
        match item {
            TurnItem::Part(part) => content.parts.push(part),
            TurnItem::Call(mut call) => {
                // Its result is in the next turn.
                call.state = ToolState::called(call.input().cloned().unwrap_or_default());
                content.parts.push(Part::Tool(call));
            }
            // A call without a result stays open.
            TurnItem::Result(result) if result.outcome == Outcome::Failed(NO_RESULT.to_owned()) => {}
            TurnItem::Result(result) => content.results.push(result),
        }
    }
    let is_empty = content.parts.is_empty() && content.results.is_empty();
    let body = match turn.origin {
        TurnOrigin::Prompt | TurnOrigin::MidTurn | TurnOrigin::Summary => Body::User(content),
        TurnOrigin::Injected => Body::Attachment(Content { to_model: true, instructs: turn.instructs, ..content }),
        TurnOrigin::Instruction => Body::System(Content { to_model: true, ..content }),
        TurnOrigin::Answer => Body::Assistant(content),
        TurnOrigin::Results => Body::ToolResult(content),
        TurnOrigin::Context => return None,
    };
    (!is_empty).then_some(body)
}
