//! Sessions, messages, trees and tables as text, and JSON that is safe on a terminal.

mod asked;
pub(crate) mod change;
pub(crate) mod clock;
pub(crate) mod divider;
pub(crate) mod forest;
pub(crate) mod fields;
pub(crate) mod fold;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod message;
pub(crate) mod outline;
pub(crate) mod printer;
pub(crate) mod reaction;
pub(crate) mod restore_plan;
pub(crate) mod short_ids;
pub(crate) mod sub_agents;
pub(crate) mod table;
pub(crate) mod todo_course;
pub(crate) mod todos;
pub(crate) mod tool;
pub(crate) mod transcript;
pub(crate) mod turns;

use scrollback::session::State;
use scrollback::view::SessionRow;
pub(crate) use scrollback_web::render::words::plural;

/// How a session ends, in a word for people, as `tree` says it of its last turn; `--json` has the exact state.
pub(crate) fn state_word(row: &SessionRow) -> &'static str {
    match row.state {
        Some(State::InterruptedPrompt) if !row.stopped => "no answer",
        Some(State::InterruptedPrompt | State::InterruptedTurn) => "interrupted",
        Some(state @ (State::Clean | State::Degraded)) => state.name(),
        None => "",
    }
}
