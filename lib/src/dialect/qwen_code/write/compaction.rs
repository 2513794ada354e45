//! A compaction as the agent writes it: one record, and in it what the model sees instead.

use serde_json::{Value, json};

use super::{Record, Voice};
use crate::dialect::line_builder::{Chain, Replaced, fields};
use crate::model::loss::Lost;
use crate::model::record::{Body, Compaction};

/// The agent's word for a compression that was done.
const COMPRESSED: u64 = 1;

impl Record<'_> {
    /// What the model sees instead stands in the record itself, whole. What it still sees of before would have to as well.
    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        let bodies = compaction.replacement.as_deref().filter(|bodies| !bodies.is_empty());
        let is_kept = !compaction.preserved.is_empty() || compaction.keeps_prompts;
        self.losses().dropped_if(is_kept && bodies.is_none(), Lost::KeptRecords);
        let mut info = fields(json!({"compressionStatus": COMPRESSED}));
        for (key, tokens) in
            [("originalTokenCount", compaction.tokens_before), ("newTokenCount", compaction.tokens_after)]
        {
            info.extend(tokens.map(|tokens| (key.to_owned(), tokens.into())));
        }
        info.extend(compaction.trigger.as_deref().map(|trigger| ("triggerReason".to_owned(), trigger.into())));
        let summary = compaction.summary.as_deref().filter(|summary| !summary.is_empty());
        let history: Vec<Value> = match (bodies, summary) {
            (Some(bodies), _) => bodies.iter().flat_map(|body| self.contents(body)).collect(),
            (None, Some(summary)) => vec![json!({"role": "user", "parts": [{"text": summary}]})],
            (None, None) => Vec::new(),
        };
        let mut payload = fields(json!({"info": info}));
        if history.is_empty() {
            self.losses().dropped(Lost::CompactionDetails);
        } else {
            payload.insert("compressedHistory".to_owned(), history.into());
        }
        self.notices("chat_compression", payload.into());
    }

    /// A body of a replaced history, as the API's `Content` objects.
    fn contents(&mut self, body: &Body) -> Vec<Value> {
        let mut lines = Chain::default();
        let mut record = Record { chain: &mut lines };
        match Replaced::by(body) {
            Replaced::Told(content) => record.prompt(content, Voice::Person),
            Replaced::Answered(content) => record.answer(content),
            Replaced::Unheard => record.losses().dropped(Replaced::LOST),
        }
        let (content, losses) = lines.into_fields();
        self.losses().extend(losses);
        content.into_iter().filter_map(|mut line| line.shift_remove("message")).collect()
    }
}
