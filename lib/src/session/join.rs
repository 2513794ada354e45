//! Several fragments, one record (reading rule 3).

use hashbrown::HashMap;

use crate::model::message::Part;
use crate::model::record::{Body, Content};

/// A record's body, fragment by fragment.
pub(crate) struct BodyJoiner {
    body: Body,
    /// The position of each call, and of each data part with an id: the same one again replaces it.
    named: HashMap<(String, String), usize>,
    /// The position of each numbered part: the same number again continues its text.
    numbers: HashMap<u64, usize>,
}

impl BodyJoiner {
    pub(crate) fn new(body: Body) -> BodyJoiner {
        let (mut named, mut numbers) = (HashMap::new(), HashMap::new());
        if let Some(content) = body.content() {
            for (at, part) in content.parts.iter().enumerate() {
                named.extend(name(part).map(|name| (name, at)));
            }
            numbers.extend(content.fragment.filter(|_| !content.parts.is_empty()).map(|number| (number, 0)));
        }
        BodyJoiner { body, named, numbers }
    }

    /// Adds a further fragment. Fragments of one record have the same kind: the tree separates others.
    pub(crate) fn add(&mut self, later: Body) {
        let BodyJoiner { body, named, numbers } = self;
        match (body, later) {
            (Body::User(known), Body::User(later))
            | (Body::Assistant(known), Body::Assistant(later))
            | (Body::ToolResult(known), Body::ToolResult(later))
            | (Body::Attachment(known), Body::Attachment(later))
            | (Body::System(known), Body::System(later)) => join(known, later, named, numbers),
            _ => {}
        }
    }

    pub(crate) fn finish(self) -> Body {
        self.body
    }
}

/// The key of a part that a later one can replace: its kind and its id.
fn name(part: &Part) -> Option<(String, String)> {
    match part {
        Part::Tool(call) => Some((String::new(), call.call_id.clone())),
        Part::Data(data) => Some((data.kind.clone(), data.id.clone()?)),
        _ => None,
    }
}

fn join(
    known: &mut Content,
    mut later: Content,
    named: &mut HashMap<(String, String), usize>,
    numbers: &mut HashMap<u64, usize>,
) {
    let mut number = later.fragment;
    for part in std::mem::take(&mut later.parts) {
        let number = number.take();
        let known_part = number.and_then(|number| numbers.get(&number)).and_then(|at| known.parts.get_mut(*at));
        match (known_part, part) {
            (Some(Part::Text(known_part)), Part::Text(more)) => {
                known_part.text.push_str(&more.text);
                known_part.provider_metadata = more.provider_metadata.or(known_part.provider_metadata.take());
            }
            (Some(Part::Reasoning(known_part)), Part::Reasoning(more)) => {
                known_part.text.push_str(&more.text);
                known_part.provider_metadata = more.provider_metadata.or(known_part.provider_metadata.take());
            }
            (_, part) => {
                let at = known.parts.len();
                match name(&part).map(|name| *named.entry(name).or_insert(at)).filter(|first| *first < at) {
                    Some(first) => known.parts[first] = part,
                    None => {
                        numbers.extend(number.map(|number| (number, at)));
                        known.parts.push(part);
                    }
                }
            }
        }
    }
    known.merge(later);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{ToolPart, ToolState};

    fn content(fragment: Option<u64>, parts: Vec<Part>) -> Body {
        Body::Assistant(Content { fragment, parts, ..Content::default() })
    }

    #[test]
    fn the_same_part_goes_on_and_the_same_call_is_replaced() {
        let call = |input: &str| Part::from(ToolPart::dynamic("read", "c1", ToolState::called(input)));
        let mut joiner = BodyJoiner::new(content(Some(0), vec![Part::text("High wa")]));
        joiner.add(content(Some(1), vec![call("partial")]));
        joiner.add(content(Some(0), vec![Part::text("ter.")]));
        joiner.add(content(Some(1), vec![call("whole")]));
        joiner.add(content(None, vec![Part::text("ter.")]));
        assert_eq!(
            joiner.finish(),
            content(Some(0), vec![Part::text("High water."), call("whole"), Part::text("ter.")])
        );
    }
}
