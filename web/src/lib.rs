//! Sessions as pages: the renderer that turns messages into HTML, one-file exports, and the local server.
//!
//! Every string of a session is hostile. It becomes HTML in `render/` and nowhere else: templates escape what they are given, and the few
//! functions that write tags themselves (`render/markdown.rs`, `code.rs`, `ansi.rs`) escape through `render/text.rs`.

pub mod render;
mod style;
pub mod figures;
mod transcript;
pub mod export;
pub mod catalogue;
mod site;
mod pages;
mod live;
mod api;
pub mod server;
pub mod scripted;
pub mod records;

pub use site::Site;
pub use transcript::{SubAgents, Transcript};
