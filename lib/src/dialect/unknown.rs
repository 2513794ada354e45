//! The fallback for files of no known agent: every JSON object is kept in its place and counted by its type.

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;

use super::{Dialect, Event, Link, Parent, RepeatedId, Traits};
use crate::dialect::layout::Layout;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::Text;
use crate::model::record::{Body, Kind};

/// Reads files of no known agent.
pub struct Unknown;

impl Dialect for Unknown {
    fn name(&self) -> &'static str {
        "unknown"
    }

    fn layouts(&self, _: &Home) -> Vec<Layout> {
        Vec::new()
    }

    fn layouts_in(&self, _: &Path) -> Vec<Layout> {
        Vec::new()
    }

    fn traits(&self) -> Traits {
        Traits::new(RepeatedId::Distinct)
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default, bound(deserialize = "'de: 'a"))]
        struct Kinded<'a> {
            #[serde(rename = "type")]
            kind: Text<'a>,
        }
        let value: Kinded<'a> = json::from_str(text)?;
        emit(Event::Record(Link { parent: Parent::Root, is_side: true, ..Link::new(text, Kind::Other) }));
        emit(Event::UnknownKind(value.kind.some().unwrap_or(Cow::Borrowed("without a type"))));
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        Body::Other(json::parse(text).unwrap_or_else(|_| text.into()))
    }
}
