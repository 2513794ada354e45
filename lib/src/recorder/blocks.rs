//! The records that one body is in a format whose grain is finer than it.

use crate::record::{Body, Said};
use crate::writing::Grain;

/// The records that a body is in a format of this grain.
pub(super) fn blocks(grain: Grain, body: Body) -> Vec<Body> {
    match (grain, body) {
        (Grain::Block, Body::Assistant(mut said)) if said.parts.len() > 1 => {
            let usage = said.usage.take();
            let parts = std::mem::take(&mut said.parts);
            let mut bodies: Vec<Body> =
                parts.into_iter().map(|part| Body::Assistant(Said { parts: vec![part], ..said.clone() })).collect();
            // What the answer cost is known when it ends.
            if let Some(Body::Assistant(last)) = bodies.last_mut() {
                last.usage = usage;
            }
            bodies
        }
        (Grain::Block, Body::ToolResult(mut said)) if said.results.len() > 1 => {
            let results = std::mem::take(&mut said.results);
            let first = std::mem::take(&mut said.parts);
            let mut bodies: Vec<Body> = results
                .into_iter()
                .map(|result| Body::ToolResult(Said { results: vec![result], ..said.clone() }))
                .collect();
            if let Some(Body::ToolResult(last)) = bodies.last_mut() {
                last.parts = first;
            }
            bodies
        }
        (_, body) => vec![body],
    }
}
