//! A compaction as the agent writes it: a line that cuts, and behind it what the model sees instead.

use serde_json::{Value, json};

use super::{Record, Voice};
use crate::dialect::line_builder::{self, Fields, Replaced, fields};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Compaction, Content, Kind};

impl Record<'_, '_> {
    pub(super) fn compaction(&mut self, compaction: &Compaction) {
        self.losses()
            .dropped_if(compaction.keeps_prompts && compaction.replacement.is_none(), Lost::KeptRecords);
        if compaction.cuts {
            let line = self.boundary(compaction);
            self.chain.own(line);
        }
        match &compaction.replacement {
            Some(bodies) if !bodies.is_empty() => self.replacement(compaction, bodies),
            Some(_) | None => {
                let summary = compaction.summary.as_deref().filter(|summary| !summary.is_empty());
                self.losses().dropped_if(summary.is_none() && !compaction.cuts, Kind::Compaction);
                summary.into_iter().for_each(|summary| self.chain.own(summed_up(summary.into())));
            }
        }
    }

    fn boundary(&self, compaction: &Compaction) -> Fields {
        let mut about = Fields::new();
        about.extend(compaction.trigger.as_deref().map(|trigger| ("trigger".to_owned(), trigger.into())));
        for (key, tokens) in [("preTokens", compaction.tokens_before), ("postTokens", compaction.tokens_after)] {
            about.extend(tokens.map(|tokens| (key.to_owned(), tokens.into())));
        }
        if let (Some(first), Some(last)) = (compaction.preserved.first(), compaction.preserved.last()) {
            // What is preserved hangs on the summary from then on.
            let ends = json!({"headUuid": first, "anchorUuid": self.draft.id, "tailUuid": last});
            about.insert("preservedSegment".to_owned(), ends);
            if !compaction.preserves_between {
                about.insert(
                    "preservedMessages".to_owned(),
                    json!({"anchorUuid": self.draft.id, "uuids": compaction.preserved}),
                );
            }
        }
        fields(json!({
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": false,
            "level": "info",
            "compactMetadata": about,
        }))
    }

    /// What another agent put in the place of a history, as lines behind the cut: one prompt is the summary, the others are
    /// shown to the model alone, for people have read them before.
    fn replacement(&mut self, compaction: &Compaction, bodies: &[Body]) {
        self.losses().renamed(Lost::ReplacedHistory);
        let told = compaction.summary.as_deref();
        let is_it = |body: &Body| {
            prompt(body).is_some_and(|said| Some(&*line_builder::words(&said.parts, &mut Losses::default())) == told)
        };
        let at = bodies.iter().position(is_it).or_else(|| bodies.iter().position(|body| prompt(body).is_some()));
        if let (None, Some(told)) = (at, told) {
            self.chain.own(summed_up(told.into()));
        }
        for (place, body) in bodies.iter().enumerate() {
            match Replaced::by(body) {
                Replaced::Told(said) if Some(place) == at => {
                    let summary = self.content(said);
                    summary.into_iter().for_each(|summary| self.chain.own(summed_up(summary)));
                }
                Replaced::Told(said) => self.prompt(said, Voice::Agent),
                Replaced::Answered(said) => self.answer(said),
                Replaced::Unheard => self.losses().dropped(Replaced::LOST),
            }
        }
    }
}

/// What a prompt says that answers no call.
fn prompt(body: &Body) -> Option<&Content> {
    body.content()
        .filter(|content| matches!(body, Body::User(_)) && content.results.is_empty() && !content.parts.is_empty())
}

/// The line that tells the model what came before.
fn summed_up(summary: Value) -> Fields {
    fields(json!({
        "type": "user",
        "message": {"role": "user", "content": summary},
        "isCompactSummary": true,
        "isVisibleInTranscriptOnly": true,
    }))
}
