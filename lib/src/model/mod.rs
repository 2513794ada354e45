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
