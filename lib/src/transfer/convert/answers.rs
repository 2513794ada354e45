//! The records that are one answer of a model, or one compaction: their joined content, and their usage.

use hashbrown::HashMap;

use crate::model::error::Result;
use crate::model::record::{Body, Compaction, Content, Kind, Usage};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;

/// The answers and compactions that were written as several records, each by its first.
pub(super) fn answers<'s>(records: &[RecordRef<'s>]) -> Result<HashMap<usize, Vec<RecordRef<'s>>>> {
    let turns = turns(records);
    let mut groups: HashMap<(u64, Option<usize>), usize> = HashMap::new();
    let mut answers: HashMap<usize, Vec<RecordRef<'s>>> = HashMap::new();
    let mut items: Option<usize> = None;
    for record in records {
        let is_item = record.kind() == Kind::Assistant && record.is_item() && !record.is_side();
        let group = record.keys(KeyRole::Group).next().filter(|_| record.kind() == Kind::Assistant);
        let first = match group {
            Some(group) => Some(*groups.entry((group, turns.get(&record.order()).copied())).or_insert(record.order())),
            None => is_item.then(|| *items.get_or_insert(record.order())),
        };
        if !is_item && !record.is_side() {
            items = None;
        }
        if let Some(first) = first {
            answers.entry(first).or_default().push(*record);
        }
        if let Some(cut) = cut_of(*record)?.filter(|cut| !answers.contains_key(&cut.order())) {
            answers.insert(cut.order(), vec![cut, *record]);
        }
    }
    answers.retain(|_, members| members.len() > 1);
    Ok(answers)
}

/// The compaction that a record has only the summary of.
fn cut_of(record: RecordRef<'_>) -> Result<Option<RecordRef<'_>>> {
    let parent = record.parent().filter(|parent| [record.kind(), parent.kind()] == [Kind::Compaction; 2]);
    let Some(parent) = parent else { return Ok(None) };
    let is_one = match (parent.body()?, record.body()?) {
        (Body::Compaction(cut), Body::Compaction(summary)) => cut.cuts && cut.summary.is_none() && !summary.cuts,
        _ => false,
    };
    Ok(Some(parent).filter(|_| is_one))
}

/// The prompt that each record answers: the same group id after two prompts is two answers.
///
/// A record without a known parent answers the prompt before it in the file.
fn turns(records: &[RecordRef<'_>]) -> HashMap<usize, usize> {
    let mut turns = HashMap::new();
    let mut last = None;
    for record in records {
        let above = record.parent().and_then(|parent| turns.get(&parent.order()).copied());
        last = if record.kind() == Kind::User { Some(record.order()) } else { above.or(last) };
        turns.extend(last.map(|last| (record.order(), last)));
    }
    turns
}

/// The joined content of the records of one answer.
pub(super) fn joined(group: &[RecordRef<'_>]) -> Result<Body> {
    if let [cut, summary] = group
        && let (Body::Compaction(cut), Body::Compaction(later)) = (cut.body()?, summary.body()?)
    {
        let replacement = cut.replacement.or(later.replacement);
        return Ok(Body::Compaction(Compaction { summary: later.summary, replacement, ..cut }));
    }
    let mut whole: Option<Content> = None;
    for record in group {
        let body = record.body()?;
        let (Body::Assistant(content), true) = (&body, group.len() > 1) else { return Ok(body) };
        let content = content.clone();
        match &mut whole {
            None => whole = Some(content),
            Some(whole) => {
                // Each block repeats the usage of the answer so far.
                let known = whole.usage.filter(|known| content.usage.is_none_or(|more| more.output < known.output));
                whole.merge(content);
                whole.usage = known.or(whole.usage);
            }
        }
    }
    Ok(whole.map_or(Body::Other(serde_json::Value::Null), Body::Assistant))
}

/// The usage of answers, by their first records, and the compactions with a usage of their own. What is recorded later counts for
/// the answer before it, but not what a compaction cost: that turn did not need it, and other formats have no place for it.
pub(super) fn costs_of<'s>(
    records: &[RecordRef<'s>],
    first_of: &HashMap<usize, RecordRef<'s>>,
) -> (HashMap<usize, Usage>, Vec<RecordRef<'s>>) {
    let mut known = records.first().map(|record| record.session.usage_by_record(records)).unwrap_or_default();
    let mut costs: HashMap<usize, Usage> = HashMap::new();
    let (mut answer, mut compactions) = (None, Vec::new());
    for record in records {
        if record.kind() == Kind::Compaction {
            answer = None;
            compactions.extend(known.contains_key(&record.order()).then_some(*record));
        } else if record.kind() == Kind::Assistant && !record.is_side() {
            answer = first_of.get(&record.order()).map(|first| first.order());
        }
        if let (Some(answer), Some(cost)) = (answer, known.remove(&record.order())) {
            costs.entry(answer).or_default().add(cost);
        }
    }
    (costs, compactions)
}
