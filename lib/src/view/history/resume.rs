//! Everything that an agent needs to continue a session, in one call.

use super::{History, NO_RESULT, Turn, TurnItem, TurnOrigin};
use crate::model::error::Result;
use crate::model::message::Message;
use crate::model::record::{Body, Outcome, Thinking, Todo};
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

/// A notice for the person who resumes.
pub(super) fn notice(state: State, turns: &[Turn<'_>]) -> String {
    let closed = |item: &&TurnItem| matches!(item, TurnItem::Result(result) if matches!(&result.outcome, Outcome::Failed(why) if why == NO_RESULT));
    // Only the last results count: the conversation continued without earlier ones.
    let last = turns.iter().rev().find(|turn| turn.origin == TurnOrigin::Results);
    let open = last.map_or(0, |turn| turn.items.iter().filter(closed).count());
    let last = turns.last();
    match (state, open) {
        (State::Clean, _) => match last.map(|turn| turn.origin) {
            Some(TurnOrigin::Answer) => "The session continues after its last answer.".to_owned(),
            Some(TurnOrigin::Summary) => "The session continues after the summary of what came before.".to_owned(),
            Some(_) => "The session continues after its last message.".to_owned(),
            None => "There is no content for a model in it.".to_owned(),
        },
        (State::InterruptedPrompt, _) => "The last prompt has no answer yet.".to_owned(),
        (State::InterruptedTurn, _) if last.is_some_and(|turn| turn.origin == TurnOrigin::Answer) => {
            "The last answer was interrupted: nothing follows its thinking.".to_owned()
        }
        (State::InterruptedTurn, 0) => {
            "The last answer was interrupted: the model has not seen the tool results.".to_owned()
        }
        (State::InterruptedTurn, 1) => {
            "The last answer was interrupted: one call has no result. It is not run again.".to_owned()
        }
        (State::InterruptedTurn, open) => {
            format!("The last answer was interrupted: {open} calls have no result. They are not run again.")
        }
        (State::Degraded, _) => {
            "A record of this conversation is missing: the model may not see what came before it.".to_owned()
        }
    }
}
