//! What a record of a tree is, and its link: the same for every agent whose records name their parents by `uuid`.

use std::borrow::Cow;

use crate::dialect::{Event, Link, Moment, Parent};
use crate::model::record::Kind;

/// What a record is.
#[derive(Clone, Copy)]
pub(crate) struct Nature {
    pub(crate) kind: Kind,
    /// It has no place in the parent chain, though others may hang on it.
    pub(crate) side: bool,
    pub(crate) failure: bool,
}

/// What a record says of its place in the tree.
pub(crate) struct TreeRecord<'a> {
    pub(crate) text: &'a str,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Option<Cow<'a, str>>,
    pub(crate) at: Moment<'a>,
    pub(crate) sidechain: bool,
    /// It has a type.
    pub(crate) typed: bool,
}

impl Nature {
    pub(crate) const fn link(kind: Kind) -> Nature {
        Nature { kind, side: false, failure: false }
    }

    pub(crate) const fn side(kind: Kind) -> Nature {
        Nature { kind, side: true, failure: false }
    }

    /// Tells the record, then what is wrong with it: `unknown` is a type that the dialect does not know. True when nothing
    /// is.
    pub(crate) fn emit<'a>(
        self,
        record: TreeRecord<'a>,
        unknown: Option<Cow<'a, str>>,
        emit: &mut dyn FnMut(Event<'a>),
    ) -> bool {
        let TreeRecord { text, id, parent, at, sidechain, typed } = record;
        let side = if self.kind == Kind::Other { parent.is_none() || id.is_none() } else { self.side };
        let lacks_id = id.is_none() && !side;
        let parent = match parent {
            Some(parent) => Parent::Id(parent),
            // A record that lost its fields follows what came before.
            None if lacks_id => Parent::Previous,
            None => Parent::Root,
        };
        let Nature { kind, failure, .. } = self;
        emit(Event::Record(Link { text, id, parent, kind, at, sidechain, side, failure, numbered: false }));
        match unknown {
            Some(name) => emit(Event::Unknown(name)),
            None if !typed => emit(Event::Missing("type")),
            None if lacks_id => emit(Event::Missing("uuid")),
            None => return true,
        }
        false
    }
}
