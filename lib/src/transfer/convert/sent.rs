//! What an agent's records mean to the model, where other formats cannot say it in the same records: what a compaction keeps,
//! pictures beside a prompt, and failures in the model's place.

use hashbrown::{HashMap, HashSet};

use crate::model::error::Result;
use crate::model::message::{Part, ToolState};
use crate::model::record::{Body, Compaction, Content, Kind, Outcome};
use crate::session::RecordRef;
use crate::view::history::{History, NO_RESULT, Turn, TurnItem, TurnOrigin};

/// How many compactions are written out, the newest first: each takes a walk through its branch.
const COMPACTIONS_WRITTEN_OUT: usize = 64;

/// What the records of a replay mean to the model.
#[derive(Default)]
pub(super) struct Sent<'s> {
    /// The pictures of each prompt, by its order, and the orders of their records.
    pictures: HashMap<usize, Vec<RecordRef<'s>>>,
    are_pictures: HashSet<usize>,
    /// The compactions that are written out.
    compactions: HashSet<usize>,
}

impl<'s> Sent<'s> {
    pub(super) fn of(records: &[RecordRef<'s>]) -> Result<Sent<'s>> {
        let compactions = records.iter().rev().filter(|record| record.kind() == Kind::Compaction);
        let compactions = compactions.take(COMPACTIONS_WRITTEN_OUT).map(|record| record.order()).collect();
        let mut sent = Sent { compactions, ..Sent::default() };
        sent.find_pictures(records)?;
        Ok(sent)
    }

    /// A picture that a person mentioned follows the prompt, perhaps after context that is not sent, and is sent in it.
    fn find_pictures(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let mut prompts: HashMap<usize, usize> = HashMap::new();
        for record in records {
            if record.kind() == Kind::User {
                prompts.insert(record.order(), record.order());
            }
            let prompt = record.parent().and_then(|parent| prompts.get(&parent.order()).copied());
            let (Kind::Attachment, Some(prompt)) = (record.kind(), prompt) else { continue };
            let Body::Attachment(content) = record.body()? else { continue };
            let is_picture =
                !content.parts.is_empty() && content.parts.iter().all(|part| matches!(part, Part::File(_)));
            if content.to_model && is_picture && content.results.is_empty() {
                self.pictures.entry(prompt).or_default().push(*record);
                self.are_pictures.insert(record.order());
            }
            if !content.to_model || is_picture {
                prompts.insert(record.order(), prompt);
            }
        }
        Ok(())
    }

    /// Whether a record is a picture that its prompt contains now.
    pub(super) fn is_in_prompt(&self, record: RecordRef<'_>) -> bool {
        self.are_pictures.contains(&record.order())
    }

    /// Says in one body what the model sees of some records.
    pub(super) fn settle(&self, body: Body, group: &[RecordRef<'s>]) -> Result<Body> {
        let [first, ..] = group else { return Ok(body) };
        Ok(match body {
            // The agent reports a failure in the model's place: another one would send it as an answer.
            Body::Assistant(content) if first.is_failure() && content.model.is_none() => Body::System(content),
            Body::User(mut content) => {
                let files = content.parts.iter().take_while(|part| matches!(part, Part::File(_))).count();
                let mut pictures = Vec::new();
                for picture in self.pictures.get(&first.order()).into_iter().flatten() {
                    pictures
                        .extend(picture.body()?.content_mut().into_iter().flat_map(|of| std::mem::take(&mut of.parts)));
                }
                content.parts.splice(files..files, pictures);
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
fn written_out(compaction: Compaction, group: &[RecordRef<'_>]) -> Result<Compaction> {
    let has_text = compaction.summary.as_ref().is_some_and(|summary| !summary.trim().is_empty());
    let is_whole = compaction.replacement.as_ref().is_some_and(|bodies| !bodies.is_empty());
    let keeps_more = !compaction.cuts || !compaction.preserved.is_empty() || compaction.keeps_prompts;
    let is_sent = has_text || (compaction.cuts && compaction.keeps_prompts);
    let (Some(last), true) = (group.last(), keeps_more && is_sent && !is_whole) else { return Ok(compaction) };
    let history = History::of(last.session, *last)?;
    let replacement = history.turns.into_iter().filter_map(into_body).collect();
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
        TurnOrigin::Injected => Body::Attachment(Content { to_model: true, ..content }),
        TurnOrigin::Instruction => Body::System(Content { to_model: true, ..content }),
        TurnOrigin::Answer => Body::Assistant(content),
        TurnOrigin::Results => Body::ToolResult(content),
        TurnOrigin::Context => return None,
    };
    (!is_empty).then_some(body)
}
