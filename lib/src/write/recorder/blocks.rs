//! Splits a body into the records that it becomes in formats with one record for each block.

use crate::dialect::writer::WriteUnit;
use crate::model::record::{Body, Content};

/// The bodies of the records that a body becomes.
pub(super) fn blocks(unit: WriteUnit, body: Body) -> Vec<Body> {
    match (unit, body) {
        (WriteUnit::Block, Body::Assistant(mut content)) if content.parts.len() > 1 => {
            let usage = content.usage.take();
            let parts = std::mem::take(&mut content.parts);
            let mut bodies: Vec<Body> = parts
                .into_iter()
                .map(|part| Body::Assistant(Content { parts: vec![part], ..content.clone() }))
                .collect();
            // The token counts are those of the whole answer.
            if let Some(Body::Assistant(last)) = bodies.last_mut() {
                last.usage = usage;
            }
            bodies
        }
        (WriteUnit::Block, Body::ToolResult(mut content)) if content.results.len() > 1 => {
            let results = std::mem::take(&mut content.results);
            let first = std::mem::take(&mut content.parts);
            let mut bodies: Vec<Body> = results
                .into_iter()
                .map(|result| Body::ToolResult(Content { results: vec![result], ..content.clone() }))
                .collect();
            if let Some(Body::ToolResult(last)) = bodies.last_mut() {
                last.parts = first;
            }
            bodies
        }
        (_, body) => vec![body],
    }
}
