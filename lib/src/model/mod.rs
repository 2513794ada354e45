//! What every agent's sessions have in common: records, messages, issues, errors; and the clock, home and project that the
//! caller passes in.

/// Declares an enum whose variants have names: in JSON, and by `name`.
macro_rules! named_enum {
    ($(#[$doc:meta])* $enum:ident { $($(#[$about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $enum {
            $($(#[$about])* #[serde(rename = $name)] $variant,)*
        }

        impl $enum {
            /// Its name in JSON and on the command line.
            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }
        }
    };
}
pub(crate) use named_enum;

pub(crate) mod record;
pub(crate) mod message;
pub(crate) mod named_requests;
pub(crate) mod issue;
pub(crate) mod loss;
pub(crate) mod error;
pub(crate) mod divider;
pub(crate) mod thinking;
pub(crate) mod host;
pub(crate) mod home;
pub mod project;
pub(crate) mod project_path;
pub(crate) mod git;
pub(crate) mod hash;
pub(crate) mod varint;
pub(crate) mod place;
pub mod regular_file;
pub(crate) mod metadata;
pub(crate) mod settle;
pub(crate) mod wire;
pub(crate) mod time;
pub(crate) mod lenient;
pub mod json;

pub use error::{Error, NotCleaned, Result};
pub use home::Home;
pub use host::Host;
pub use issue::{Issue, IssueKind, Severity, quoted};
pub use loss::{Loss, LossKind, Losses, Lost};
pub use message::{
    Approval, CustomPart, DataPart, FilePart, Message, Part, ReasoningFilePart, ReasoningPart, Role, Sdk,
    SourceDocumentPart, SourceUrlPart, SteeringPart, StreamState, TextPart, ToolKind, ToolPart, ToolState, UnknownSdk,
    model_messages, objection, takes,
};
pub use named_requests::NamedRequests;
pub use project_path::ProjectPath;
pub use record::{
    After, Before, Body, Compaction, Content, Context, Cost, Display, FileState, Kind, Outcome, RecordId, Restore,
    RestoredFile, RestoredVersion, Rewind, SessionId, Snapshot, Speaker, Thinking, Title, TitleSource, Todo, ToolNote,
    ToolResult, Usage,
};
pub use thinking::Triggers;
