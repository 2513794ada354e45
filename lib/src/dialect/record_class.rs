//! The class of a record and its link, for the agents whose records name their parents by `uuid`.

use std::borrow::Cow;

use crate::dialect::{Event, Link, Parent};
use crate::model::record::Kind;

/// What a record is.
#[derive(Clone)]
pub(crate) struct RecordClass<'a> {
    pub(crate) kind: Kind,
    /// It has no place in the parent chain, although it can be a parent.
    pub(crate) is_side: bool,
    pub(crate) is_failure: bool,
    pub(crate) type_name: TypeName<'a>,
}

/// Whether the type of a record is known.
#[derive(Clone)]
pub(crate) enum TypeName<'a> {
    Known,
    Unknown(Cow<'a, str>),
    Missing,
    /// A plain message needs neither a type nor an id.
    Plain,
}

impl<'a> RecordClass<'a> {
    /// A record in the parent chain.
    pub(crate) fn link(kind: Kind) -> RecordClass<'a> {
        RecordClass { kind, is_side: false, is_failure: false, type_name: TypeName::Known }
    }

    /// A record beside the parent chain.
    pub(crate) fn side(kind: Kind) -> RecordClass<'a> {
        RecordClass { is_side: true, ..RecordClass::link(kind) }
    }

    /// A record whose type is missing; its kind follows from other fields.
    pub(crate) fn untyped(kind: Kind) -> RecordClass<'a> {
        RecordClass { type_name: TypeName::Missing, ..RecordClass::link(kind) }
    }

    /// The same class with an unknown type, if there is one.
    pub(crate) fn unknown(self, name: Option<impl Into<Cow<'a, str>>>) -> RecordClass<'a> {
        let type_name = name.map_or(TypeName::Known, |name| TypeName::Unknown(name.into()));
        RecordClass { type_name, ..self }
    }

    /// Emits the record and the first thing that is wrong with it. Returns whether nothing is wrong.
    pub(crate) fn emit(&self, link: Link<'a>, parent: Option<Cow<'a, str>>, emit: &mut dyn FnMut(Event<'a>)) -> bool {
        let has_id = link.id.is_some();
        let is_side = if self.kind == Kind::Other { parent.is_none() || !has_id } else { self.is_side };
        let lacks_id = !has_id && !is_side;
        let parent = match parent {
            Some(parent) => Parent::Id(parent),
            // A plain message, or a record that lost its fields, follows the one before it.
            None if lacks_id => Parent::Previous,
            None => Parent::Root,
        };
        emit(Event::Record(Link { parent, kind: self.kind, is_side, is_failure: self.is_failure, ..link }));
        match &self.type_name {
            TypeName::Unknown(name) => emit(Event::UnknownKind(name.clone())),
            TypeName::Missing => emit(Event::MissingField("type")),
            TypeName::Known if lacks_id => emit(Event::MissingField("uuid")),
            TypeName::Known | TypeName::Plain => return true,
        }
        false
    }
}
