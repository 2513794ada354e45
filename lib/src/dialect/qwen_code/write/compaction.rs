//! Writes a compaction as the agent does: one record that contains what the model sees instead.

use serde_json::{Value, json};

use super::{Author, Record};
use crate::dialect::line_builder::{Put, fields};
use crate::model::loss::Lost;
use crate::model::record::{Body, Compaction, Kind};

/// The agent's code for a compression that succeeded.
const COMPRESSED: u64 = 1;

impl Record {
    /// The record must contain everything that the model sees from then on, also what is kept of the earlier conversation.
    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        let bodies = compaction.replacement.as_deref().filter(|bodies| !bodies.is_empty());
        let is_kept = !compaction.preserved.is_empty() || compaction.keeps_prompts;
        self.losses().dropped_if(is_kept && bodies.is_none(), Lost::KeptRecords);
        let mut info = fields(json!({"compressionStatus": COMPRESSED}));
        info.put_counts([("originalTokenCount", compaction.tokens_before), ("newTokenCount", compaction.tokens_after)]);
        info.put_some("triggerReason", compaction.trigger.as_deref());
        let summary = compaction.summary.as_deref().filter(|summary| !summary.is_empty());
        let history: Vec<Value> = match (bodies, summary) {
            (Some(bodies), _) => bodies.iter().flat_map(|body| self.contents(body)).collect(),
            (None, Some(summary)) => vec![json!({"role": "user", "parts": [{"text": summary}]})],
            (None, None) => Vec::new(),
        };
        let mut payload = fields(json!({"info": info}));
        let has_count = compaction.messages.is_some();
        self.losses().dropped_if(history.is_empty() || has_count, Lost::CompactionDetails);
        payload.put_some("compressedHistory", Some(history).filter(|history| !history.is_empty()));
        self.system("chat_compression", payload.into());
    }

    /// A body of a replaced history, as the API's `Content` objects.
    fn contents(&mut self, body: &Body) -> Vec<Value> {
        let mut record = Record::default();
        match (body, body.content()) {
            (Body::Assistant(content), _) => record.answer(content),
            // Context that the agent generates anew was not sent to the model again.
            (Body::Attachment(context), _) if !context.to_model => record.losses().dropped(Kind::Attachment),
            (Body::System(notice), _) if !notice.to_model => record.losses().dropped(Lost::ReplacedHistory),
            (_, None) => record.losses().dropped(Lost::ReplacedHistory),
            (_, Some(content)) => record.prompt(content, Author::Person),
        }
        let (lines, losses) = record.chain.into_fields();
        self.losses().extend(losses);
        lines.into_iter().filter_map(|mut line| line.shift_remove("message")).collect()
    }
}
