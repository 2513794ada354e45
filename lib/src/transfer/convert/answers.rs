//! The records that are one answer of a model, or one compaction, and what they say together.

use hashbrown::HashMap;

use crate::model::error::Result;
use crate::model::record::{Body, Compaction, Content, Kind};
use crate::session::RecordRef;
use crate::session::tree::skeleton::KeyRole;

/// The answers and compactions that were written as several records, each by its first.
pub(super) fn answers<'s>(records: &[RecordRef<'s>]) -> Result<HashMap<usize, Vec<RecordRef<'s>>>> {
    let turns = turns(records);
    let mut groups: HashMap<(u64, Option<usize>), usize> = HashMap::new();
    let mut answers: HashMap<usize, Vec<RecordRef<'s>>> = HashMap::new();
    let mut items: Option<usize> = None;
    for record in records {
        let is_item = record.kind() == Kind::Assistant && record.is_item();
        let first = if let Some(group) = record.keys(KeyRole::Group).next().filter(|_| record.kind() == Kind::Assistant)
        {
            Some(*groups.entry((group, turns.get(&record.order()).copied())).or_insert(record.order()))
        } else if is_item {
            Some(*items.get_or_insert(record.order()))
        } else {
            None
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

/// The record that cuts, where this one only tells the summary that stands for what was cut.
fn cut_of(record: RecordRef<'_>) -> Result<Option<RecordRef<'_>>> {
    let parent = record.parent().filter(|parent| [record.kind(), parent.kind()] == [Kind::Compaction; 2]);
    let Some(parent) = parent else { return Ok(None) };
    let is_one = match (parent.body()?, record.body()?) {
        (Body::Compaction(cut), Body::Compaction(told)) => cut.cuts && cut.summary.is_none() && !told.cuts,
        _ => false,
    };
    Ok(Some(parent).filter(|_| is_one))
}

/// The prompt that each record comes after: a name that a model gives twice is not one answer to two prompts.
///
/// What hangs on nothing that was seen comes after the prompt that stands before it.
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

/// What several records of one answer say together.
pub(super) fn joined(group: &[RecordRef<'_>]) -> Result<Body> {
    if let [cut, told] = group
        && let (Body::Compaction(cut), Body::Compaction(told)) = (cut.body()?, told.body()?)
    {
        let replacement = cut.replacement.or(told.replacement);
        return Ok(Body::Compaction(Compaction { summary: told.summary, replacement, ..cut }));
    }
    let mut whole: Option<Content> = None;
    for record in group {
        let body = record.body()?;
        let (Body::Assistant(content), true) = (&body, group.len() > 1) else { return Ok(body) };
        let content = content.clone();
        match &mut whole {
            None => whole = Some(content),
            Some(whole) => {
                // Each block repeats what the answer cost, more or less finished.
                let known = whole.usage.filter(|known| content.usage.is_none_or(|more| more.output < known.output));
                whole.merge(content);
                whole.usage = known.or(whole.usage);
            }
        }
    }
    Ok(whole.map_or(Body::Other(serde_json::Value::Null), Body::Assistant))
}
