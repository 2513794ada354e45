//! What changes a store: the recorder, forks, ended sessions and the trash; blobs, clean copies, and small files of ours.

pub(crate) mod store;
pub(crate) mod recorder;
pub(crate) mod fork;
pub(crate) mod rotate;
pub(crate) mod trash;

pub(crate) mod undo;

pub mod blobs;
pub mod clean_copy;
mod kept;
pub(crate) mod copy;
mod private_file;
mod redaction_key;

pub use fork::{Fork, Forked};
pub use kept::{Kept, KeptNow};
pub use private_file::{NewFile, append_private_line, replace_private_file, replace_settings};
pub use recorder::{Answer, Delta, Durability, Entry, Options, Recorder, Report, Saved, Warning, Watched, steps};
pub use redaction_key::{known_redaction_key, redaction_key};
pub use rotate::{EndedSession, Rotation, When};
pub use store::{Amended, Listed, NewSession, Policy, Store};
pub use trash::{FinishedDeletions, MovedFile, Origin, Removed, Trash, TrashError, TrashListing};
pub use undo::{
    Action, Applied, Blocked, Goal, Plan, PlannedFile, Readiness, Recovered, Scope, Undo, UndoHead, file_history,
    is_undo_interrupted, restores_stamp,
};
