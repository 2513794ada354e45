//! Handles Ctrl-C and SIGTERM.

use std::sync::{Mutex, PoisonError};

use crate::failure::{Failure, FailureKind};

/// What the next Ctrl-C does: a command may first index, and then wait.
static STOP: Mutex<Option<Stop>> = Mutex::new(None);

struct Stop {
    stop: Box<dyn Fn() -> bool + Send>,
    was_asked: bool,
}

/// Calls `stop` at the next Ctrl-C or SIGTERM, in the place of what was to be called before. The second one ends the program, and so
/// does the first if `stop` returns false.
pub(crate) fn on_interrupt(stop: impl Fn() -> bool + Send + 'static) -> Result<(), Failure> {
    let new = Stop { stop: Box::new(stop), was_asked: false };
    let before = STOP.lock().unwrap_or_else(PoisonError::into_inner).replace(new);
    match before {
        Some(_) => Ok(()),
        None => ctrlc::set_handler(interrupt).map_err(|error| Failure::new(FailureKind::Io, error.to_string())),
    }
}

fn interrupt() {
    let mut stop = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    let goes_on = stop.as_mut().is_some_and(|stop| !std::mem::replace(&mut stop.was_asked, true) && (stop.stop)());
    if !goes_on {
        std::process::exit(130);
    }
}
