//! Where the number of a request comes from: its file, its lines, its names, and what of its usage was not believed.

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::{ABSURD_TOKENS, RequestFact, SessionCounts};
use crate::model::error::Result;
use crate::model::record::{Cost, Kind};
use crate::session::tree::NodeIx;
use crate::session::{RecordRef, Session};

/// Where a request is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestTrace {
    /// The file.
    pub path: String,
    /// The lines that report it, in file order. Of several, one has the tokens that count.
    pub lines: Vec<u32>,
    /// The record.
    pub record: Option<String>,
    /// The id of the message, where the agent writes it.
    pub message_id: Option<String>,
    /// The id of the request, where the agent writes it.
    pub request_id: Option<String>,
    /// The model, where the record names it.
    pub model: Option<String>,
    /// Counts and costs that are not believed, as they are written.
    pub ignored: Vec<(String, String)>,
}

/// Where usage is, from the record's JSON.
const USAGES: [&[&str]; 5] = [
    &["message", "usage"],
    &["usage"],
    &["usageMetadata"],
    &["payload", "info", "last_token_usage"],
    &["payload", "usage"],
];

/// Where a cost is, from the record's JSON, and beside it the currency.
const COSTS: [&[&str]; 3] = [&["costUSD"], &["usage", "costEstimate"], &["usage", "estimated_cost_usd"]];
const CURRENCY: &[&str] = &["usage", "currency"];

/// Where the requests of a session are written, in the order of its counts.
pub fn traces(session: &Session, counts: &SessionCounts) -> Result<Vec<RequestTrace>> {
    let lines = lines_by_name(session);
    counts.requests.iter().map(|request| trace(session, request, &lines)).collect()
}

/// Answers whose usage is not even an object: they count as no request. Each with its time.
pub fn unread_usages(session: &Session, counts: &SessionCounts) -> Result<Vec<(Option<i64>, RequestTrace)>> {
    let counted: HashSet<u32> = counts.requests.iter().map(|request| request.record).collect();
    let is_other = |record: &RecordRef<'_>| {
        record.kind() == Kind::Assistant && !record.is_inherited() && !counted.contains(&(record.order() as u32))
    };
    let mut unread = Vec::new();
    for record in session.records().filter(is_other) {
        let line = record.place().line;
        let json = line_of(record, line)?;
        let is_wrong = |usage: &&Value| !usage.is_object() && !usage.is_null();
        if let Some(usage) = USAGES.iter().filter_map(|path| field(&json, path)).find(is_wrong) {
            let mut trace = of_record(session, record, &json, vec![line]);
            trace.ignored = vec![("usage".to_owned(), written(usage))];
            unread.push((record.at().map(|at| at.as_microsecond()), trace));
        }
    }
    Ok(unread)
}

/// The lines of each request that has a name.
fn lines_by_name(session: &Session) -> HashMap<u64, Vec<u32>> {
    let mut lines: HashMap<u64, Vec<u32>> = HashMap::new();
    for usage in &session.skeleton.usages {
        let line = session.skeleton.entries[usage.entry as usize].place.line;
        usage.request.into_iter().for_each(|name| lines.entry(name).or_default().push(line));
    }
    lines
}

fn trace(session: &Session, request: &RequestFact, lines: &HashMap<u64, Vec<u32>>) -> Result<RequestTrace> {
    let lines = lines.get(&request.id).cloned().unwrap_or_else(|| vec![request.line]);
    let record = Some(request.record).filter(|record| (*record as usize) < session.records().len());
    let Some(record) = record.map(|record| session.at(record as NodeIx)) else {
        return Ok(RequestTrace {
            path: session.path().to_string_lossy().into_owned(),
            lines,
            ..RequestTrace::default()
        });
    };
    let json = line_of(record, request.line)?;
    let counts = USAGES.iter().filter_map(|path| field(&json, path)).flat_map(ignored_counts);
    let ignored = counts.chain(ignored_costs(&json)).collect();
    Ok(RequestTrace { ignored, ..of_record(session, record, &json, lines) })
}

fn of_record(session: &Session, record: RecordRef<'_>, json: &Value, lines: Vec<u32>) -> RequestTrace {
    let text = |path: &[&str]| field(json, path).and_then(Value::as_str).map(|text| session.shown(text));
    RequestTrace {
        path: session.shown(&record.file().to_string_lossy()),
        lines,
        record: Some(record.id().into_owned()),
        message_id: text(&["message", "id"]).or_else(|| text(&["payload", "response_id"])),
        request_id: text(&["requestId"]).or_else(|| text(&["payload", "turn_id"])),
        model: text(&["message", "model"]).or_else(|| text(&["model"])),
        ignored: Vec::new(),
    }
}

/// The JSON of the fragment of a record that is on this line, or of its last one.
fn line_of(record: RecordRef<'_>, line: u32) -> Result<Value> {
    let at = record.places().position(|place| place.line == line);
    let pieces = record.raw()?;
    let piece = at.and_then(|at| pieces.get(at)).or(pieces.last());
    Ok(piece.and_then(|piece| serde_json::from_slice(piece).ok()).unwrap_or_default())
}

fn field<'v>(json: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(json, |value, name| value.get(name))
}

/// The counts of a usage that cannot be true.
fn ignored_counts(usage: &Value) -> Vec<(String, String)> {
    let fields = usage.as_object().into_iter().flatten();
    let is_count = |name: &str| name.ends_with("tokens") || name.ends_with("TokenCount");
    let is_whole = |number: f64| number.fract() == 0.0 && (0.0..=ABSURD_TOKENS as f64).contains(&number);
    let is_believed = |value: &Value| value.is_null() || value.as_f64().is_some_and(is_whole);
    let wrong = fields.filter(|(name, value)| is_count(name) && !is_believed(value));
    wrong.map(|(name, value)| (name.clone(), written(value))).collect()
}

/// The costs that cannot be true, or are not in dollars.
fn ignored_costs(json: &Value) -> Vec<(String, String)> {
    let currency = field(json, CURRENCY).and_then(Value::as_str).filter(|name| !name.eq_ignore_ascii_case("usd"));
    let of_path = |path: &&[&str]| {
        let (cost, name) = (field(json, path).filter(|cost| !cost.is_null())?, path.last()?);
        match (currency.filter(|_| path.len() > 1), cost.as_f64().and_then(Cost::recorded)) {
            (Some(currency), _) => Some(((*name).to_owned(), format!("{} {currency}", written(cost)))),
            (None, None) => Some(((*name).to_owned(), written(cost))),
            (None, Some(_)) => None,
        }
    };
    COSTS.iter().filter_map(of_path).collect()
}

/// A value as it is written, or its beginning.
fn written(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}
