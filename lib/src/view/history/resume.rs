//! Everything that an agent needs to continue a session, in one call.

use hashbrown::HashSet;

use super::History;
use crate::model::error::Result;
use crate::model::message::Message;
use crate::model::metadata::INTERRUPTED;
use crate::model::record::{Body, Kind, Thinking, Todo};
use crate::session::tree::skeleton::KeyRole;
use crate::session::{Branch, RecordRef, Session, State};
use crate::view::conversation::Conversation;

/// Everything that an agent needs to continue a session.
#[derive(Debug, Clone)]
pub struct Resume<'s> {
    /// What the model would see, how the branch ends and a notice for the person; [`super::View`] writes it for an API.
    pub history: History<'s>,
    /// What people see: the whole branch, compacted or not.
    pub messages: Vec<Message>,
    /// The task list at the head.
    pub todos: Option<Vec<Todo>>,
    /// The thinking mode at the head.
    pub thinking: Option<Thinking>,
}

/// Reads everything that is needed to continue from a head. Nothing is written, and no tool runs again.
pub fn prepare_resume<'s>(session: &'s Session, head: RecordRef<'s>) -> Result<Resume<'s>> {
    let history = History::of(session, head)?;
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    let messages = conversation.messages(0..conversation.len()).collect::<Result<Vec<_>>>()?;
    let (todos, thinking) = todos_and_thinking(&branch)?;
    Ok(Resume { history, messages, todos, thinking })
}

/// The last task list and thinking mode.
pub(crate) fn todos_and_thinking(branch: &Branch<'_>) -> Result<(Option<Vec<Todo>>, Option<Thinking>)> {
    let (mut todos, mut thinking) = (None, None);
    for record in branch.records.iter().rev() {
        let mut body = record.body()?;
        if let Some(content) = body.content_mut() {
            todos = todos.or(content.todos.take());
            thinking = thinking.or(content.thinking.take());
        } else if let Body::Restore(restore) = body {
            todos = todos.or(restore.todos);
        }
        if todos.is_some() && thinking.is_some() {
            break;
        }
    }
    Ok((todos, thinking))
}

/// A sentence for the person who resumes from a head: since when, how much, and how it ended.
pub fn resume_notice(session: &Session, head: RecordRef<'_>) -> String {
    let branch = session.branch(head);
    notice(session, head, &branch, session.state(&branch))
}

pub(super) fn notice(session: &Session, head: RecordRef<'_>, branch: &Branch<'_>, state: State) -> String {
    let last = head.at().or_else(|| session.updated());
    let from = last.map(|at| format!(" from {at:.0}")).unwrap_or_default();
    let count = Conversation::new(branch).message_count();
    let plural = if count == 1 { "" } else { "s" };
    format!("Resumed session{from}: {count} message{plural}, {}.", how_it_ended(branch, state))
}

fn how_it_ended(branch: &Branch<'_>, state: State) -> String {
    let spoken = |record: &&RecordRef<'_>| record.kind().is_dialogue() || record.kind() == Kind::Compaction;
    let last = branch.records.iter().rev().find(spoken).map(|record| record.kind());
    match (state, open_calls(branch)) {
        (State::Clean, _) => match last {
            Some(Kind::Assistant) => "it continues after its last answer".to_owned(),
            Some(Kind::Compaction) => "it continues after the summary of what came before".to_owned(),
            Some(_) => "it continues after its last message".to_owned(),
            None => "nobody has asked anything yet".to_owned(),
        },
        (State::InterruptedPrompt, _) => "the last prompt has no answer yet".to_owned(),
        (State::InterruptedTurn, 0) if last == Some(Kind::Assistant) && is_cut_off(branch) => {
            "the last answer was interrupted: it is cut off".to_owned()
        }
        (State::InterruptedTurn, 0) if last == Some(Kind::Assistant) && is_stopped(branch) => {
            "the last answer was interrupted: somebody stopped it, or an error did".to_owned()
        }
        (State::InterruptedTurn, 0) if last == Some(Kind::Assistant) => {
            "the last answer was interrupted: nothing follows its thinking".to_owned()
        }
        (State::InterruptedTurn, 0) => {
            "the last answer was interrupted: the model has not seen the tool results".to_owned()
        }
        (State::InterruptedTurn, 1) => {
            "the last answer was interrupted: one call has no result, and it is not run again".to_owned()
        }
        (State::InterruptedTurn, open) => {
            format!("the last answer was interrupted: {open} calls have no result, and they are not run again")
        }
        (State::Degraded, _) => {
            "a record of this conversation is missing: the model may not see what came before it".to_owned()
        }
    }
}

/// Whether the agent reports instead of the last answer, or after it, that it did not come to its end.
fn is_stopped(branch: &Branch<'_>) -> bool {
    let last = branch.records.iter().rposition(|record| record.kind().is_dialogue()).unwrap_or_default();
    branch.records[last..].iter().any(|record| record.is_failure())
}

/// Whether the last answer is marked as cut off.
fn is_cut_off(branch: &Branch<'_>) -> bool {
    let last = branch.records.iter().rev().find(|record| record.kind() == Kind::Assistant);
    let body = last.and_then(|last| last.body().ok());
    let content = body.as_ref().and_then(Body::content);
    content.is_some_and(|content| content.metadata.get(INTERRUPTED) == Some(&true.into()))
}

/// The calls of the last answer without a result. Earlier ones do not count: the conversation continued without them.
fn open_calls(branch: &Branch<'_>) -> usize {
    let (mut results, mut open, mut answer) = (HashSet::new(), HashSet::new(), None);
    for record in branch.records.iter().rev() {
        results.extend(record.keys(KeyRole::Result));
        match record.kind() {
            Kind::User | Kind::Compaction if !record.is_reaction() => break,
            Kind::Assistant => {
                // Blocks of one answer have its key; in a format of items, all of them are one answer.
                let group = (record.keys(KeyRole::Group).next(), record.is_item());
                let is_same = answer.is_none_or(|known| known == group && known != (None, false));
                if !is_same {
                    break;
                }
                answer = Some(group);
                open.extend(record.keys(KeyRole::Call).filter(|call| !results.contains(call)));
            }
            _ => {}
        }
    }
    open.len()
}
