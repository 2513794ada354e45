//! The handle of a streamed answer.

use serde_json::{Map, Value};

use super::{Delta, Entry, Recorder};
use crate::model::error::Result;
use crate::model::message::{Part, ToolPart, ToolState};
use crate::model::record::{Content, ToolResult, Usage};

/// An answer that is recorded as it is streamed: every piece is on disk as soon as the format allows.
///
/// Made by [`Recorder::answer`]. If it is dropped before [`Answer::finish`], the answer ends there: the pieces so far are written
/// as far as the format allows, and stay recorded. Where the format can say so (native), the answer is marked as interrupted.
pub struct Answer<'r> {
    recorder: &'r mut Recorder,
    is_finished: bool,
}

impl<'r> Answer<'r> {
    pub(super) fn new(recorder: &'r mut Recorder) -> Answer<'r> {
        Answer { recorder, is_finished: false }
    }

    /// The recorder: what is on disk by now, for example.
    pub fn recorder(&self) -> &Recorder {
        self.recorder
    }

    /// Records more text.
    pub fn text(&mut self, text: impl Into<String>) -> Result<Entry> {
        self.recorder.delta(Delta::Text(text.into()))
    }

    /// Records more reasoning.
    pub fn reasoning(&mut self, text: impl Into<String>) -> Result<Entry> {
        self.recorder.delta(Delta::Reasoning(text.into()))
    }

    /// Ends the current text or reasoning, with the metadata of its provider: a signature, for example.
    pub fn end_part(&mut self, metadata: Option<Map<String, Value>>) -> Result<Entry> {
        self.recorder.delta(Delta::End(metadata))
    }

    /// Records a tool call with a new id. Give the result to [`Recorder::tool_result`].
    pub fn tool_call(&mut self, name: &str, input: Value) -> Result<ToolPart> {
        let id = self.recorder.new_id();
        self.tool_call_with_id(id, name, input)
    }

    /// Records a tool call with the id that the provider gave it.
    pub fn tool_call_with_id(&mut self, id: impl Into<String>, name: &str, input: Value) -> Result<ToolPart> {
        let call = ToolPart::dynamic(name, id, ToolState::called(input));
        self.recorder.delta(Delta::Part(call.clone().into()))?;
        Ok(call)
    }

    /// Records the output of a tool, or why it failed, before the answer is complete.
    pub fn tool_result(&mut self, call: &ToolPart, result: std::result::Result<Value, String>) -> Result<Entry> {
        self.recorder.early_result(ToolResult::of(call, result))
    }

    /// Records a complete part: a file, a source or anything else that is not streamed.
    pub fn part(&mut self, part: Part) -> Result<Entry> {
        self.recorder.delta(Delta::Part(part))
    }

    /// Adds the task list, the thinking mode and the metadata of `content` to the answer.
    pub fn about(&mut self, content: Content) -> Result<Entry> {
        self.recorder.delta(Delta::About(Box::new(content)))
    }

    /// Completes the answer. If this fails, the answer stays open, and [`Recorder::finish_answer`] tries again.
    pub fn finish(mut self, usage: impl Into<Option<Usage>>) -> Result<Entry> {
        self.is_finished = true;
        self.recorder.finish_answer(usage.into())
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the answer stays open, and the next call of the recorder tries again.
            drop(self.recorder.cut_off_answer());
        }
    }
}
