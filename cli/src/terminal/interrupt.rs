//! Handles Ctrl-C and SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, FailureKind};

/// Calls `stop` at the first Ctrl-C or SIGTERM. The second one ends the program, and so does the first if `stop` returns false.
pub(crate) fn on_interrupt(stop: impl Fn() -> bool + Send + 'static) -> Result<(), Failure> {
    let interrupted = AtomicBool::new(false);
    let handler = move || {
        if interrupted.swap(true, Ordering::Relaxed) || !stop() {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::new(FailureKind::Io, error.to_string()))
}
