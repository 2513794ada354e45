//! Finds sessions: where to look, which of them are in scope, and how one of them is named.
//!
//! ```text
//! Places ─sources─▶ Source ─list─▶ SessionRow ─Scope::select─▶ the sessions in scope
//!    └────────────── SessionName::resolve ─────────────────▶ one Source, and a record in it
//! ```

pub(crate) mod by_id;
mod name;
mod path;
mod places;
mod scope;
mod unsupported;

pub use by_id::sharing_an_id;
pub use name::{Location, Lookup, Match, Memory, NameError, Named, SessionName};
pub use places::{Listing, Places};
pub use scope::{InScope, ProjectScope, Scope, parse_time};
pub use unsupported::{Unsupported, unsupported, unsupported_agent};
