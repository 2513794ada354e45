//! Sessions for a terminal.

pub(crate) mod divider;
pub(crate) mod message;
pub(crate) mod outline;
pub(crate) mod table;
pub(crate) mod tool;
