//! A turn: everything of the model between two prompts as one body, and back to separate answers and results.
//!
//! ```text
//! answer [text, call a, call b] · results [a, b] · answer [text]   ⇄   [step, text, a done, b done, step, text]
//! ```

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;

use crate::dialect::writer::Response;
use crate::model::message::{Approval, Part, SteeringPart, ToolPart, ToolState};
use crate::model::record::{Body, Content, Outcome, ToolResult};
use crate::model::settle::settle_in_turn;

/// A turn that is not complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    content: Content,
    /// One for each step.
    responses: Vec<Response>,
    /// The calls of each id that take a result, by their places among the parts.
    calls: HashMap<String, Vec<usize>>,
    /// How many calls are open.
    open_calls: usize,
}

/// What is added to a turn.
#[derive(Debug)]
pub(crate) enum More {
    /// An answer of the model.
    Answer(Content),
    /// Tool results.
    Results(Content),
}

impl Turn {
    /// Adds an answer or results.
    pub(crate) fn add(&mut self, more: More, at: Timestamp) {
        match more {
            More::Answer(content) => self.answer(content, at),
            More::Results(content) => self.results(content),
        }
    }

    /// Whether the turn may be complete once this is added. False is certain.
    pub(super) fn may_end_with(&self, more: &More) -> bool {
        let (content, parts, last) = match more {
            More::Answer(content) => (content, &content.parts[..], content.parts.last()),
            // A message while tools run is a part of its own.
            More::Results(content) => {
                (content, &[][..], self.content.parts.last().filter(|_| content.parts.is_empty()))
            }
        };
        if matches!(last, Some(Part::Tool(_))) || self.open_calls > content.results.len() {
            return false;
        }
        let answered: HashSet<&str> = content.results.iter().map(|result| result.call_id.as_str()).collect();
        let is_answered = |call: &ToolPart| answered.contains(call.call_id.as_str());
        let waits = |part: &Part| matches!(part, Part::Tool(call) if call.is_open() && !is_answered(call));
        let own = self.content.parts.iter().filter(|_| self.open_calls > 0);
        !own.chain(parts).any(waits)
    }

    /// Adds an answer of the model, and the results in it.
    pub(crate) fn answer(&mut self, mut answer: Content, at: Timestamp) {
        let results = std::mem::take(&mut answer.results);
        self.content.parts.push(Part::StepStart);
        // The answer may consist of several responses.
        let steps = 1 + answer.parts.iter().filter(|part| **part == Part::StepStart).count();
        let response = Response { at, model: answer.model.clone(), usage: None };
        self.responses.extend(std::iter::repeat_n(response, steps));
        for part in std::mem::take(&mut answer.parts) {
            if let Part::Tool(call) = &part {
                self.open_calls += usize::from(call.is_open());
                if call.takes_result() {
                    self.calls.entry(call.call_id.clone()).or_default().push(self.content.parts.len());
                }
            }
            self.content.parts.push(part);
        }
        self.add_facts(answer);
        self.results(Content { results, ..Content::default() });
    }

    /// Adds tool results.
    pub(crate) fn results(&mut self, mut content: Content) {
        for result in std::mem::take(&mut content.results) {
            let calls = self.calls.get_mut(&result.call_id);
            let last = calls.as_ref().and_then(|calls| self.content.parts.get_mut(*calls.last()?));
            let (Some(calls), Some(Part::Tool(call))) = (calls, last) else {
                self.content.results.push(result);
                continue;
            };
            let was_open = call.is_open();
            settle_in_turn(call, result);
            self.open_calls -= usize::from(was_open && !call.is_open());
            if !call.takes_result() {
                calls.pop();
            }
        }
        if !content.parts.is_empty() {
            // A message that came while the tools ran.
            let (id, parts) = (format!("steering-{}", self.content.parts.len()), std::mem::take(&mut content.parts));
            self.content.parts.push(Part::Steering(SteeringPart { id, parts, ..SteeringPart::default() }));
        }
        self.add_facts(content);
    }

    /// Adds facts about the message.
    pub(crate) fn add_facts(&mut self, mut more: Content) {
        let content = &mut self.content;
        if let Some(response) = self.responses.last_mut() {
            response.model = more.model.clone().or(response.model.take());
            if let Some(usage) = more.usage {
                response.usage.get_or_insert_default().add(usage);
            }
        }
        if let Some(usage) = more.usage.take() {
            content.usage.get_or_insert_default().add(usage);
        }
        // Of several responses, the last one names the model and the error.
        let (model, error) = (more.model.take().or(content.model.take()), more.error.take().or(content.error.take()));
        content.merge(Content { model, error, ..more });
    }

    /// Whether every call has its result and the model has answered them.
    pub(crate) fn is_over(&self) -> bool {
        self.open_calls == 0 && !matches!(self.content.parts.last(), Some(Part::Tool(_)))
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn into_body(self) -> (Body, Vec<Response>) {
        (Body::Assistant(self.content), self.responses)
    }
}

/// Splits a turn into the answers and results that it was made of: at least one answer, which may be empty.
pub fn steps(content: Content) -> Vec<Body> {
    let Content { parts, results, usage, .. } = content;
    let about = Content { parts: Vec::new(), results: Vec::new(), usage: None, ..content };
    let results = named(results, &parts);
    let mut bodies = Vec::new();
    let mut step = Step::default();
    for part in parts {
        match part {
            Part::StepStart => step.end(&about, &mut bodies),
            Part::Tool(call) => step.call(*call),
            // Content after the result of a call belongs to the next answer.
            part => {
                if !step.results.is_empty() {
                    step.end(&about, &mut bodies);
                }
                step.parts.push(part);
            }
        }
    }
    step.results.extend(results);
    step.end(&about, &mut bodies);
    if bodies.is_empty() {
        bodies.push(Body::Assistant(about));
    }
    // The token counts of the turn belong to its last answer.
    let last = bodies
        .iter_mut()
        .rev()
        .find_map(|body| if let Body::Assistant(content) = body { Some(content) } else { None });
    if let Some(last) = last {
        last.usage = usage;
    }
    bodies
}

/// Adds the tool names to results.
fn named(mut results: Vec<ToolResult>, parts: &[Part]) -> Vec<ToolResult> {
    let calls = parts.iter().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
    let names: HashMap<&str, &str> = calls.map(|call| (call.call_id.as_str(), call.name.as_str())).collect();
    for result in results.iter_mut().filter(|result| result.name.is_none()) {
        result.name = names.get(result.call_id.as_str()).map(|name| (*name).to_owned());
    }
    results
}

#[derive(Default)]
struct Step {
    parts: Vec<Part>,
    results: Vec<ToolResult>,
}

impl Step {
    fn call(&mut self, mut call: ToolPart) {
        if let Some(result) = take_result(&mut call) {
            self.results.push(result);
        }
        self.parts.push(call.into());
    }

    fn end(&mut self, about: &Content, bodies: &mut Vec<Body>) {
        let Step { parts, results } = std::mem::take(self);
        if !parts.is_empty() {
            bodies.push(Body::Assistant(Content { parts, ..about.clone() }));
        }
        if !results.is_empty() {
            let context = about.context.clone();
            bodies.push(Body::ToolResult(Content { results, context, ..Content::default() }));
        }
    }
}

/// Takes the result out of a call that has one, so that the call is open again.
pub(super) fn take_result(call: &mut ToolPart) -> Option<ToolResult> {
    if call.is_open() {
        return None;
    }
    let state = std::mem::replace(&mut call.state, ToolState::called(serde_json::Value::Null));
    let (input, approval, output, outcome, preliminary) = match state {
        ToolState::OutputAvailable { input, output, preliminary, approval } => {
            (Some(input), approval, output.unwrap_or_default(), Outcome::Done, preliminary == Some(true))
        }
        ToolState::OutputError { input, raw_input, error_text, approval } => {
            let output = error_text.as_str().into();
            (input.or(raw_input), approval, output, Outcome::Failed(error_text), false)
        }
        ToolState::OutputDenied { input, approval } => {
            let reason = approval.reason.clone();
            (Some(input), None, serde_json::Value::Null, Outcome::Denied(reason), false)
        }
        open @ (ToolState::InputStreaming { .. }
        | ToolState::InputAvailable { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. }) => {
            call.state = open;
            return None;
        }
    };
    let input = input.unwrap_or_default();
    call.state = match approval {
        Some(approval) => {
            ToolState::ApprovalResponded { input, approval: Approval { approved: Some(true), ..approval } }
        }
        None => ToolState::called(input),
    };
    Some(ToolResult {
        call_id: call.call_id.clone(),
        name: Some(call.name.clone()),
        output,
        outcome,
        preliminary,
        duration_ms: None,
        about: serde_json::Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::Usage;
    use serde_json::json;

    fn call(id: &str) -> Part {
        ToolPart::dynamic("read", id, ToolState::called(json!({"path": id}))).into()
    }

    fn result(id: &str, outcome: Outcome, output: &str) -> ToolResult {
        ToolResult {
            call_id: id.to_owned(),
            name: Some("read".to_owned()),
            output: output.into(),
            outcome,
            preliminary: false,
            duration_ms: None,
            about: serde_json::Map::new(),
        }
    }

    #[test]
    fn answers_without_results_stay_answers_of_their_own() {
        let answer = |text: &str| Content { parts: vec![Part::text(text)], ..Content::default() };
        let mut turn = Turn::default();
        turn.answer(answer("One."), Timestamp::UNIX_EPOCH);
        turn.answer(answer("Two."), Timestamp::UNIX_EPOCH);
        let (Body::Assistant(whole), _) = turn.into_body() else { panic!("a turn is an answer") };
        assert_eq!(steps(whole), [Body::Assistant(answer("One.")), Body::Assistant(answer("Two."))]);
        assert_eq!(steps(Content::default()), [Body::Assistant(Content::default())]);
    }

    #[test]
    fn a_preliminary_result_makes_room_for_the_final_one() {
        let preliminary = |output| ToolResult { preliminary: true, ..result("a", Outcome::Done, output) };
        let denied = Outcome::Denied(None);
        for last in [Outcome::Done, Outcome::Failed("gone".to_owned()), denied] {
            let mut turn = Turn::default();
            turn.answer(Content { parts: vec![call("a")], ..Content::default() }, Timestamp::UNIX_EPOCH);
            for result in [preliminary("half"), preliminary("most"), result("a", last.clone(), "gone")] {
                turn.results(result.into());
            }
            let (Body::Assistant(content), _) = turn.into_body() else { panic!("a turn is an answer") };
            assert_eq!(content.results, [], "{last:?}");
            let Some(Part::Tool(call)) = content.parts.last() else { panic!("the call is there") };
            let told = serde_json::to_string(call).unwrap();
            assert!(told.contains("gone") && !told.contains("half") && !told.contains("most"), "{told}");
            assert!(!call.takes_result(), "{told}");
        }
    }

    #[test]
    fn what_is_said_of_a_denial_is_its_reason_or_stands_beside_it() {
        for (reason, output, expected, beside) in [
            (None, json!("Not on a Friday."), Some("Not on a Friday."), None),
            (Some("no"), json!("Not on a Friday."), Some("no"), Some(json!("Not on a Friday."))),
            (Some("no"), json!("no"), Some("no"), None),
            (None, json!({"why": 1}), None, Some(json!({"why": 1}))),
            (None, json!(""), None, None),
        ] {
            let mut turn = Turn::default();
            turn.answer(Content { parts: vec![call("a")], ..Content::default() }, Timestamp::UNIX_EPOCH);
            let denied = Outcome::Denied(reason.map(str::to_owned));
            turn.results(ToolResult { output: output.clone(), ..result("a", denied, "") }.into());
            let (Body::Assistant(content), _) = turn.into_body() else { panic!("a turn is an answer") };
            let Some(Part::Tool(call)) = content.parts.last() else { panic!("the call is there") };
            assert_eq!(call.approval().and_then(|approval| approval.reason.as_deref()), expected, "{output}");
            let ours = call.call_provider_metadata.as_ref().and_then(|about| about["scrollback"].get("output"));
            assert_eq!(ours, beside.as_ref(), "{output}");
        }
    }

    /// Whatever comes in whichever order: a turn that is over was foreseen to be, and one of calls alone never is.
    #[test]
    fn a_turn_ends_only_where_that_was_foreseen() {
        let answer = |parts: Vec<Part>| More::Answer(Content { parts, ..Content::default() });
        let done = |id: &str| result(id, Outcome::Done, "A");
        let results = |results, parts| More::Results(Content { results, parts, ..Content::default() });
        let moves: [&dyn Fn() -> More; 8] = [
            &|| answer(vec![call("a")]),
            &|| answer(vec![Part::text("I look."), call("b"), Part::text("there.")]),
            &|| answer(vec![Part::text("It is A.")]),
            &|| answer(Vec::new()),
            &|| More::Answer(Content { parts: vec![call("a")], results: vec![done("a")], ..Content::default() }),
            &|| results(vec![done("a")], Vec::new()),
            &|| results(vec![done("b")], Vec::new()),
            &|| results(vec![done("a")], vec![call("c")]),
        ];
        for story in 0..moves.len().pow(4) {
            let (mut turn, mut rest) = (Turn::default(), story);
            for _ in 0..4 {
                let more = moves[rest % moves.len()]();
                let (foreseen, told) = (turn.may_end_with(&more), format!("{story}: {more:?} after {turn:?}"));
                turn.add(more, Timestamp::UNIX_EPOCH);
                assert!(foreseen || !turn.is_over(), "{told}");
                rest /= moves.len();
            }
        }
        let mut turn = Turn::default();
        for step in 0..20 {
            let id = format!("c{step}");
            for more in [answer(vec![call(&id)]), results(vec![done(&id)], Vec::new())] {
                assert!(!turn.may_end_with(&more), "a long turn is copied for each of its steps: {more:?}");
                turn.add(more, Timestamp::UNIX_EPOCH);
            }
        }
    }

    #[test]
    fn a_turn_taken_apart_is_what_it_was_made_of() {
        let usage = Usage { output: Some(3), ..Usage::default() };
        let first = Content { parts: vec![Part::text("Let me look."), call("a"), call("b")], ..Content::default() };
        let results = vec![result("a", Outcome::Done, "A"), result("b", Outcome::Failed("gone".to_owned()), "gone")];
        let last = Content { parts: vec![Part::text("It is A.")], usage: Some(usage), ..Content::default() };
        let mut turn = Turn::default();
        turn.answer(first.clone(), Timestamp::UNIX_EPOCH);
        assert!(!turn.is_over());
        turn.results(Content { results: results.clone(), ..Content::default() });
        assert!(!turn.is_over());
        turn.answer(last.clone(), Timestamp::UNIX_EPOCH);
        assert!(turn.is_over());
        let (Body::Assistant(whole), _) = turn.into_body() else { panic!("a turn is an answer") };
        let of_tools = Content { results, ..Content::default() };
        assert_eq!(steps(whole), [Body::Assistant(first), Body::ToolResult(of_tools), Body::Assistant(last)]);
    }
}
