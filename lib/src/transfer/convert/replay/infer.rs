//! What an answer's own lines do not tell, but others beside them: which model gave it, and what it cost.

use hashbrown::HashMap;

use super::Replay;
use crate::model::error::Result;
use crate::model::record::{Body, Kind, Usage};
use crate::session::RecordRef;

/// What answers cost, by their first records: what is told later counts for the answer before.
pub(super) fn costs_of<'s>(
    records: &[RecordRef<'s>],
    first_of: &HashMap<usize, RecordRef<'s>>,
) -> HashMap<usize, Usage> {
    let mut told = records.first().map(|record| record.session.usage_by_record(records)).unwrap_or_default();
    let mut costs: HashMap<usize, Usage> = HashMap::new();
    let mut answer = None;
    for record in records {
        if record.kind() == Kind::Assistant {
            answer = first_of.get(&record.order()).map(|first| first.order());
        }
        if let (Some(answer), Some(cost)) = (answer, told.remove(&record.order())) {
            costs.entry(answer).or_default().add(cost);
        }
    }
    costs
}

impl<'s> Replay<'s> {
    /// Fills in the model and the cost of an answer.
    pub(super) fn fill_in(&mut self, body: &mut Body, first: RecordRef<'s>) -> Result<()> {
        let cost = self.costs.remove(&first.order());
        let Body::Assistant(content) = body else { return Ok(()) };
        // Where several answers tell of one request, one of them has its cost.
        content.usage = cost.or(content.usage.filter(|_| first.is_inherited()));
        if let (None, Some(surroundings)) = (&content.model, first.surroundings()) {
            content.model = surroundings.body()?.content().and_then(|content| content.model.clone());
        }
        Ok(())
    }
}
