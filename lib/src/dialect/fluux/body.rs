//! What a line says.

use serde_json::{Map, Value};

use super::Type;
use super::line::Line;
use crate::model::lenient;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind};

impl Line<'_> {
    pub(super) fn body(self, text: &str) -> Body {
        let whole = || serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        match self.of_type() {
            Type::Header => match whole() {
                Value::Object(facts) => Body::Header(facts),
                _ => Body::Header(Map::new()),
            },
            Type::Message(Kind::User) | Type::Untyped(Kind::User) => Body::User(self.content()),
            Type::Message(Kind::Assistant) | Type::Untyped(Kind::Assistant) => Body::Assistant(self.content()),
            Type::Message(_) | Type::Untyped(_) | Type::Unknown(_) => Body::Other(whole()),
        }
    }

    /// Files have no address here, only a name, a type and a size: they are descriptions, never file parts.
    fn content(self) -> Content {
        let mut parts = Vec::new();
        let text = self.content.map(lenient::text_or_json).filter(|text| !text.is_empty());
        parts.extend(text.map(Part::text));
        let files = match self.attachments.map(lenient::value) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(files)) => files,
            Some(file) => vec![file],
        };
        parts.extend(files.into_iter().map(|file| Part::data("attachment", file)));
        parts.extend(self.reaction().map(|reaction| Part::data("reaction", lenient::value(reaction))));
        Content { parts, sender: self.sender.owned(), ..Content::default() }
    }
}
