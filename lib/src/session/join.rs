//! Several fragments, one record (reading rule 3).

use hashbrown::HashMap;

use crate::model::message::Part;
use crate::model::record::{Body, Content};

/// A record's body, fragment by fragment.
pub(crate) struct Joining {
    body: Body,
    /// Where each call, and each part of an application's own with an id, stands among the parts: the same one again replaces
    /// what was known of it.
    named: HashMap<(String, String), usize>,
    /// Where each numbered part stands: the same number again goes on with its text.
    numbers: HashMap<u64, usize>,
}

impl Joining {
    pub(crate) fn begin(body: Body) -> Joining {
        let (mut named, mut numbers) = (HashMap::new(), HashMap::new());
        if let Some(content) = body.content() {
            for (at, part) in content.parts.iter().enumerate() {
                named.extend(name(part).map(|name| (name, at)));
            }
            numbers.extend(content.fragment.filter(|_| !content.parts.is_empty()).map(|number| (number, 0)));
        }
        Joining { body, named, numbers }
    }

    /// Adds a further fragment. Bodies of different kinds cannot be one record's: the driver keeps them apart.
    pub(crate) fn add(&mut self, later: Body) {
        let Joining { body, named, numbers } = self;
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

/// What a part is known by, where a later one takes its place: its kind and its id.
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
        let begun = number.and_then(|number| numbers.get(&number)).and_then(|at| known.parts.get_mut(*at));
        match (begun, part) {
            (Some(Part::Text(begun)), Part::Text(more)) => {
                begun.text.push_str(&more.text);
                begun.provider_metadata = more.provider_metadata.or(begun.provider_metadata.take());
            }
            (Some(Part::Reasoning(begun)), Part::Reasoning(more)) => {
                begun.text.push_str(&more.text);
                begun.provider_metadata = more.provider_metadata.or(begun.provider_metadata.take());
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
        let mut joining = Joining::begin(content(Some(0), vec![Part::text("High wa")]));
        joining.add(content(Some(1), vec![call("partial")]));
        joining.add(content(Some(0), vec![Part::text("ter.")]));
        joining.add(content(Some(1), vec![call("whole")]));
        joining.add(content(None, vec![Part::text("ter.")]));
        assert_eq!(
            joining.finish(),
            content(Some(0), vec![Part::text("High water."), call("whole"), Part::text("ter.")])
        );
    }
}
