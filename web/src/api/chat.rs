//! What a chat of the AI SDK may not do here: send a message.

use axum::response::Response;

use super::{Ask, Problem};

/// Says no.
pub(super) fn refuse(_: &Ask) -> Result<Response, Problem> {
    Err(refusal())
}

/// A session is written by its agent, and only there.
pub(crate) fn refusal() -> Problem {
    Problem::method("a session is read here and cannot be answered: its agent writes it")
        .hint("`scrollback resume SESSION` goes on with it in its agent")
}
