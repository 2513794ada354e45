//! `stats --explain`: where each number comes from, and what is not counted and why.

use std::io::Write;
use std::process::ExitCode;

use jiff::Timestamp;
use scrollback::Session;
use scrollback::model::Usage;
use scrollback::view::counting::{
    CountedSession, Elected, Reason, RequestCost, RequestFact, RequestTrace, StatsQuery, traces, unread_usages,
};
use scrollback_index::{Archive, Counted, PRICES};
use serde::Serialize;

use crate::commands::FOUND_PROBLEMS;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::clean;

/// Why a request counts, or does not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    session: String,
    path: String,
    /// The lines that report it.
    lines: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// `recorded`, the list of prices, `prices.toml` or `unpriced`.
    cost_from: String,
    counted: bool,
    /// Why.
    rule: String,
    /// Counts and costs that are not believed, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
}

pub(super) fn run(
    counted: &Counted,
    elected: &Elected,
    query: &StatsQuery<'_>,
    archive: &mut Archive,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let in_scope: Vec<usize> = (0..counted.sessions.len())
        .filter(|at| {
            let session = &counted.sessions[*at];
            let requests = session.counts.requests.iter().map(|request| request.at);
            let mut times = requests.chain(session.counts.events.iter().map(|event| event.at));
            session.is_in_scope && times.any(|at| query.holds(at))
        })
        .collect();
    let mut explained = Vec::new();
    for at in in_scope {
        let read = archive.session(&counted.sources[at]);
        let counts = &counted.sessions[at].counts;
        let traced = |session: Session| Ok((traces(&session, counts)?, unread_usages(&session, counts)?));
        match read.and_then(traced) {
            Ok((traces, unread)) => {
                let session = &counted.sessions[at];
                let asked = unread.into_iter().filter(|(at, _)| query.holds(*at));
                explained.extend(asked.map(|(at, trace)| unread_usage(session, at, trace)));
                let requests = session.counts.requests.iter().zip(&elected.requests[at]).zip(traces);
                let asked = requests.filter(|((request, _), _)| query.holds(request.at));
                let of = |((request, reason), trace): ((&RequestFact, &Reason), RequestTrace)| {
                    explain(&counted.sessions, session, elected, query, request, *reason, trace)
                };
                explained.extend(asked.map(of));
            }
            Err(error) => ctx.warn(&error.into())?,
        }
    }
    explained.sort_by(|a, b| (a.at, &a.path, &a.lines).cmp(&(b.at, &b.path, &b.lines)));
    let is_empty = explained.is_empty();
    let (yes, no): (Vec<Explained>, Vec<Explained>) = explained.into_iter().partition(|request| request.counted);
    if ctx.json {
        ctx.print_json(&serde_json::json!({"counted": yes, "notCounted": no}))?;
    } else {
        let text = text(&yes, &no);
        ctx.page_if_long(text.lines().count());
        ctx.out.write_all(text.as_bytes())?;
        ctx.end_page()?;
    }
    Ok(if is_empty { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

fn explain(
    sessions: &[CountedSession],
    session: &CountedSession,
    elected: &Elected,
    query: &StatsQuery<'_>,
    request: &RequestFact,
    reason: Reason,
    trace: RequestTrace,
) -> Explained {
    let is_counted = reason == Reason::Counted;
    let request = &if is_counted { elected.whole(request) } else { *request };
    let usage = request.usage();
    let model = request.model.and_then(|model| session.counts.models.get(usize::from(model)));
    let by_file = || model.and_then(|model| (query.price)(model, usage));
    let (cost, cost_from) = match request.cost {
        RequestCost::Recorded(cost) => (Some(cost), "recorded"),
        RequestCost::Listed(cost) => (Some(cost), PRICES),
        RequestCost::Unknown => by_file().map_or((None, "unpriced"), |cost| (Some(cost), "prices.toml")),
    };
    let lines = trace.lines.len();
    let rule = match reason {
        Reason::Counted if elected.greatest.contains_key(&request.id) => {
            "its occurrence in the session that started first; tokens of the occurrence with the most output".to_owned()
        }
        Reason::Counted if lines > 1 => format!("once for {lines} lines of one answer: those with the most output"),
        Reason::Counted => "reported once".to_owned(),
        Reason::Repeats(first) => {
            let of = &sessions[first as usize].row;
            format!("the same request counts in session {}, which started first", of.id)
        }
        Reason::CopyOf(origin) => format!("copied from session {}, where it counts", sessions[origin as usize].row.id),
    };
    Explained {
        session: session.row.id.to_string(),
        path: trace.path,
        lines: trace.lines,
        record: trace.record,
        message_id: trace.message_id,
        request_id: trace.request_id,
        at: request.at.and_then(|at| Timestamp::from_microsecond(at).ok()),
        model: model.cloned(),
        usage,
        cost_usd: cost.map(|cost| cost.to_usd()),
        cost_from: cost_from.to_owned(),
        counted: is_counted,
        rule,
        ignored: ignored(trace.ignored),
    }
}

fn unread_usage(session: &CountedSession, at: Option<i64>, trace: RequestTrace) -> Explained {
    Explained {
        session: session.row.id.to_string(),
        path: trace.path,
        lines: trace.lines,
        record: trace.record,
        message_id: trace.message_id,
        request_id: trace.request_id,
        at: at.and_then(|at| Timestamp::from_microsecond(at).ok()),
        model: trace.model,
        usage: Usage::default(),
        cost_usd: None,
        cost_from: "unpriced".to_owned(),
        counted: false,
        rule: "its usage is not an object, so nothing is known of a request".to_owned(),
        ignored: ignored(trace.ignored),
    }
}

fn ignored(values: Vec<(String, String)>) -> Vec<String> {
    values.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

fn text(counted: &[Explained], not_counted: &[Explained]) -> String {
    let mut text = format!("Counted: {}\n", counted.len());
    counted.iter().for_each(|request| text.push_str(&lines(request)));
    text.push_str(&format!("\nNot counted: {}\n", not_counted.len()));
    not_counted.iter().for_each(|request| text.push_str(&lines(request)));
    text
}

fn lines(request: &Explained) -> String {
    let line = request.lines.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let Usage { input, output, cache_read, cache_write, reasoning } = request.usage;
    let counts = [
        ("input", input),
        ("output", output),
        ("cache read", cache_read),
        ("written", cache_write),
        ("reasoning", reasoning),
    ];
    let counts: Vec<String> =
        counts.iter().filter_map(|(name, count)| count.map(|count| format!("{name} {count}"))).collect();
    let cost = request
        .cost_usd
        .map_or_else(|| request.cost_from.clone(), |usd| format!("${usd:.6} ({})", request.cost_from));
    let ids = [&request.message_id, &request.request_id]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let ids = if ids.is_empty() { request.record.clone().unwrap_or_default() } else { ids };
    let at = request.at.map(|at| at.to_string()).unwrap_or_default();
    let model = request.model.clone().unwrap_or_else(|| "unknown model".to_owned());
    let mut text = format!(
        "{}:{line}\n  {ids} · {model} · {at}\n  {} · {cost}\n  {}\n",
        request.path,
        if counts.is_empty() { "no tokens known".to_owned() } else { counts.join(", ") },
        request.rule
    );
    if !request.ignored.is_empty() {
        text.push_str(&format!("  ignored, because it cannot be counted: {}\n", request.ignored.join(", ")));
    }
    text.lines().map(|line| format!("{}\n", clean::line(line))).collect()
}
