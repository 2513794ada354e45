//! What changes a store: the recorder, forks, ended sessions and the trash; and small files of ours.

pub mod store;
pub mod recorder;
pub mod fork;
pub mod rotate;
pub mod trash;

mod copy;
mod private_file;

pub use private_file::replace_private_file;
