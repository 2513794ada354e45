//! Writes a compaction as the agent does: a line that cuts, and after it what the model sees instead.

use serde_json::{Value, json};

use super::{Author, Record};
use crate::dialect::line_builder::{self, Fields, Put, fields};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Compaction, Content, Kind};

impl Record<'_> {
    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        let loses_prompts = compaction.keeps_prompts && compaction.replacement.is_none();
        self.losses().dropped_if(loses_prompts, Lost::KeptRecords);
        // The preserved records follow the summary here.
        self.losses().renamed_if(compaction.preserved_first, Lost::CompactionDetails);
        if compaction.cuts {
            let line = self.boundary(compaction);
            self.chain.own([line]);
        }
        match &compaction.replacement {
            Some(bodies) if !bodies.is_empty() => self.replacement(compaction, bodies),
            Some(_) | None => {
                let summary = compaction.summary.as_deref().filter(|summary| !summary.is_empty());
                self.losses().dropped_if(summary.is_none() && !compaction.cuts, Kind::Compaction);
                self.chain.own(summary.map(|summary| summary_line(summary.into())));
            }
        }
    }

    fn boundary(&self, compaction: &Compaction) -> Fields {
        let mut metadata = Fields::new();
        metadata.put_some("trigger", compaction.trigger.as_deref());
        metadata.put_counts([
            ("messagesSummarized", compaction.messages),
            ("preTokens", compaction.tokens_before),
            ("postTokens", compaction.tokens_after),
        ]);
        if let (Some(first), Some(last)) = (compaction.preserved.first(), compaction.preserved.last()) {
            // The summary becomes the parent of the preserved records.
            let anchor = self.draft.id;
            metadata.put("preservedSegment", json!({"headUuid": first, "anchorUuid": anchor, "tailUuid": last}));
            if !compaction.preserves_between {
                metadata.put("preservedMessages", json!({"anchorUuid": anchor, "uuids": compaction.preserved}));
            }
        }
        fields(json!({
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": false,
            "level": "info",
            "compactMetadata": metadata,
        }))
    }

    /// The replaced history of another agent, as lines after the cut: one prompt is the summary, the others are shown only
    /// to the model, because people have seen them before.
    fn replacement(&mut self, compaction: &Compaction, bodies: &[Body]) {
        self.losses().renamed(Lost::ReplacedHistory);
        let summary = compaction.summary.as_deref();
        let text = |content: &Content| line_builder::joined_text(&content.parts, &mut Losses::default());
        let is_summary = |body: &Body| prompt(body).is_some_and(|content| Some(&*text(content)) == summary);
        let at = bodies.iter().position(is_summary);
        let at = at.or_else(|| bodies.iter().position(|body| prompt(body).is_some()));
        if let (None, Some(summary)) = (at, summary) {
            self.chain.own([summary_line(summary.into())]);
        }
        for (index, body) in bodies.iter().enumerate() {
            match (body, body.content()) {
                (Body::Assistant(content), _) => self.answer(content),
                // Context that the agent generates anew was not sent to the model again.
                (Body::Attachment(context), _) if !context.to_model => self.losses().dropped(Kind::Attachment),
                (Body::System(notice), _) if !notice.to_model => self.losses().dropped(Lost::ReplacedHistory),
                (_, None) => self.losses().dropped(Lost::ReplacedHistory),
                (_, Some(content)) if Some(index) == at => {
                    let summary = self.message_content(content);
                    self.chain.own(summary.map(summary_line));
                }
                (_, Some(content)) => self.prompt(content, Author::Agent),
            }
        }
    }
}

/// The content of a prompt that answers no call.
fn prompt(body: &Body) -> Option<&Content> {
    body.content()
        .filter(|content| matches!(body, Body::User(_)) && content.results.is_empty() && !content.parts.is_empty())
}

/// The line with the summary for the model.
fn summary_line(summary: Value) -> Fields {
    fields(json!({
        "type": "user",
        "message": {"role": "user", "content": summary},
        "isCompactSummary": true,
        "isVisibleInTranscriptOnly": true,
    }))
}
