//! The class of a record and its link, for the agents whose records name their parents by `uuid`.

use std::borrow::Cow;

use crate::dialect::{Event, Link, Moment, Parent};
use crate::model::record::Kind;

/// What a record is.
#[derive(Clone, Copy)]
pub(crate) struct RecordClass {
    pub(crate) kind: Kind,
    /// It has no place in the parent chain, although it can be a parent.
    pub(crate) is_side: bool,
    pub(crate) is_failure: bool,
}

/// The place of a record in the tree.
pub(crate) struct TreeRecord<'a> {
    pub(crate) text: &'a str,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Option<Cow<'a, str>>,
    pub(crate) at: Moment<'a>,
    pub(crate) is_sidechain: bool,
    pub(crate) has_type: bool,
}

impl RecordClass {
    /// A record of the parent chain.
    pub(crate) const fn link(kind: Kind) -> RecordClass {
        RecordClass { kind, is_side: false, is_failure: false }
    }

    /// A record beside the parent chain.
    pub(crate) const fn side(kind: Kind) -> RecordClass {
        RecordClass { kind, is_side: true, is_failure: false }
    }

    /// Emits the record and the first thing that is wrong with it; `unknown` is a type that the dialect does not know.
    /// Returns whether nothing is wrong.
    pub(crate) fn emit<'a>(
        self,
        record: TreeRecord<'a>,
        unknown: Option<Cow<'a, str>>,
        emit: &mut dyn FnMut(Event<'a>),
    ) -> bool {
        let TreeRecord { text, id, parent, at, is_sidechain, has_type } = record;
        let is_side = if self.kind == Kind::Other { parent.is_none() || id.is_none() } else { self.is_side };
        let lacks_id = id.is_none() && !is_side;
        let parent = match parent {
            Some(parent) => Parent::Id(parent),
            // A record that lost its fields follows the one before it.
            None if lacks_id => Parent::Previous,
            None => Parent::Root,
        };
        let is_failure = self.is_failure;
        emit(Event::Record(Link { id, parent, at, is_sidechain, is_side, is_failure, ..Link::new(text, self.kind) }));
        match unknown {
            Some(name) => emit(Event::UnknownKind(name)),
            None if !has_type => emit(Event::MissingField("type")),
            None if lacks_id => emit(Event::MissingField("uuid")),
            None => return true,
        }
        false
    }
}
