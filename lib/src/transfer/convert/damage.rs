//! What no record says and a conversion changes all the same: what is damaged in the source, what is missing, how it ends and where
//! it was said.

use super::LossRow;
use super::compare::{BRANCHES_COMPARED, changed, row};
use super::kept::Kept;
use crate::model::issue::{Issue, IssueKind};
use crate::model::loss::{LossKind, Lost};
use crate::session::{Gap, RecordRef, Session, State};

/// The rows of places that say nothing any more. What came back with the original's lines is as it was.
pub(super) fn places(session: &Session, kept: Option<&Kept>) -> Vec<LossRow> {
    let from = kept.map_or(0, Kept::converted_bytes);
    let told = |issue: &Issue| {
        let (what, kind) = word(issue.kind)?;
        let place = issue.line.map_or_else(|| format!("at-{}", issue.offset), |line| format!("line {line}"));
        Some(row(&place, what, kind, 1))
    };
    session.issues().iter().filter(|issue| issue.offset >= from).filter_map(told).collect()
}

/// The word for damage that no record of the new file can tell.
fn word(kind: IssueKind) -> Option<(Lost, LossKind)> {
    match kind {
        IssueKind::Torn => Some((Lost::TornLine, LossKind::Dropped)),
        IssueKind::NotJson | IssueKind::NotAnObject | IssueKind::NulBytes | IssueKind::TooLong => {
            Some((Lost::DamagedLine, LossKind::Dropped))
        }
        IssueKind::BadUtf8 => Some((Lost::DamagedText, LossKind::Renamed)),
        // What these are of is kept, or told of its record.
        IssueKind::Glued
        | IssueKind::Orphan
        | IssueKind::Cycle
        | IssueKind::ConflictingParent
        | IssueKind::BadTime
        | IssueKind::MissingField
        | IssueKind::InvalidMessage
        | IssueKind::LogMissing
        | IssueKind::OrphanResult
        | IssueKind::DuplicateResult
        | IssueKind::MixedSession
        | IssueKind::UnknownKind
        | IssueKind::DuplicateLine
        | IssueKind::DuplicateId
        | IssueKind::UnansweredCall
        | IssueKind::BridgedGap => None,
    }
}

/// The rows of gaps that are closed in the new file, and of an end that looks like another one there.
pub(super) fn ends(pairs: &[(RecordRef<'_>, RecordRef<'_>)], kept: Option<&Kept>) -> Vec<LossRow> {
    let mut rows: Vec<LossRow> = Vec::new();
    let is_new = |record: RecordRef<'_>| kept.is_none_or(|kept| kept.is_newer(record));
    for (head, now) in pairs.iter().take(BRANCHES_COMPARED).filter(|(head, _)| is_new(*head)) {
        let (before, after) = (head.session.branch(*head), now.session.branch(*now));
        let (was, is) = (head.session.state(&before), now.session.state(&after));
        let lost = before.gaps.len().saturating_sub(after.gaps.len());
        let gaps = before.gaps.iter().filter(|gap| is_new(gap.child)).take(lost);
        rows.extend(gaps.map(|gap: &Gap<'_>| row(&gap.child.id(), Lost::Gap, LossKind::Dropped, 1)));
        let was_open = matches!(was, State::InterruptedTurn | State::InterruptedPrompt);
        if was_open && is != was {
            rows.push(row(&head.id(), Lost::Interruption, changed(was_open, is != State::Clean), 1));
        }
    }
    // Branches share what comes before them.
    let mut seen = hashbrown::HashSet::new();
    rows.retain(|row| seen.insert((row.record.clone(), row.what.clone())));
    rows
}

/// The row of a working directory that the new session has, in its lines or beside them, and the source does not tell; or the other
/// way round.
pub(super) fn working_directory(
    (source, converted): (&Session, &Session),
    beside: Option<&str>,
    losses: &[LossRow],
) -> Option<LossRow> {
    let (was, is) = (source.cwd(), converted.cwd().or(beside));
    if was == is || losses.iter().any(|row| row.what == Lost::Environment) {
        return None;
    }
    let record = source.head().map(|head| head.id().into_owned()).unwrap_or_default();
    Some(row(&record, Lost::Environment, changed(was.is_some(), is.is_some()), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::read::open::ReadOptions;

    #[test]
    fn so_many_ends_are_looked_at_as_branches_are_compared() {
        let native = crate::dialect::named("native").unwrap();
        let read = |lines: String| {
            Session::from_bytes(native, lines.into_bytes(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH))
        };
        let prompt =
            |at: usize| format!("{{\"role\":\"user\",\"uuid\":\"u{at}\",\"parentUuid\":null,\"content\":\"Go.\"}}\n");
        let source = read((0..2 * BRANCHES_COMPARED).map(prompt).collect());
        let answer = r#"{"role":"assistant","uuid":"a","parentUuid":"u0","content":"Gone."}"#;
        let converted = read(format!("{}{answer}\n", prompt(0)));
        let heads = source.heads().map(|head| head.record);
        let pairs: Vec<_> = heads.filter_map(|head| Some((head, converted.head()?))).collect();
        assert_eq!(pairs.len(), 2 * BRANCHES_COMPARED);
        let rows = ends(&pairs, None);
        assert_eq!(rows.iter().filter(|row| row.what == Lost::Interruption).count(), BRANCHES_COMPARED);
    }
}
