//! What changes a store: the recorder, forks, ended sessions and the trash.

pub mod store;
pub mod recorder;
pub mod fork;
pub mod rotate;
pub mod trash;
