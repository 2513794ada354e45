//! AI agents' session histories on disk: any dialect, read whole, live or from the end.
//!
//! In the order in which to read the modules: what a record and a message are, what a dialect says, how a session is read,
//! and what can be asked of it. The library prints nothing and reads neither the environment nor the clock.

pub mod issue;
pub mod message;
pub mod record;

pub mod dialect;
pub mod home;
pub mod layout;
mod lenient;

pub mod detect;
pub mod error;
pub mod project;
pub mod source;

pub mod reading;
pub mod session;
mod branch;
mod ids;
mod intake;
mod join;
mod mend;
mod recover;
mod skeleton;
mod facts;
mod time;
mod tree;
mod fold;
mod gaps;

pub mod conversation;
mod assemble;

pub mod listing;
pub mod query;
mod view;

#[doc(hidden)]
pub mod fuzzing;
