//! What is said, whoever wrote it: records, messages, issues, errors, and the surroundings that the library is handed.

pub mod record;
pub mod message;
pub mod issue;
pub mod loss;
pub mod error;
pub(crate) mod divider;
pub mod thinking;
pub mod host;
pub mod home;
pub mod project;
pub(crate) mod git;
pub mod place;
pub(crate) mod metadata;
pub(crate) mod settle;
pub(crate) mod wire;
pub(crate) mod time;
pub(crate) mod lenient;
