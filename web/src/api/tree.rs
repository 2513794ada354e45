//! Every record of a session, as `tree --json` has them.

use axum::response::Response;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::{Ask, Problem, json_response, tag_of};

/// The tree.
pub(crate) fn tree(ask: &Ask) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let tag = tag_of(&entry.source);
    if let Some(unchanged) = tag.as_deref().and_then(|tag| ask.unchanged(tag)) {
        return Ok(unchanged);
    }
    let session = ask.site.whole(&entry.source)?;
    let mut text = Vec::new();
    // Each record is read when it is written; sessions are read masked.
    let view = session.tree_view_of(Records(&session))?;
    scrollback::model::json::write(&mut text, &view).map_err(|_| Problem::internal())?;
    Ok(json_response(text.into(), tag.as_deref()))
}

struct Records<'s>(&'s scrollback::Session);

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.records().len()))?;
        for row in self.0.tree_rows() {
            list.serialize_element(&row.map_err(serde::ser::Error::custom)?)?;
        }
        list.end()
    }
}
