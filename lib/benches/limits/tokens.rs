//! Token totals of a home from nothing: at best, by us, and as the corpus was made.
//!
//! At best: only lines that hold the needle of a usage are parsed, into the few fields that count.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use memchr::memmem;
use scrollback::model::Usage;
use scrollback::session::{ReadOptions, RequestId, Session, Source};
use serde::Deserialize;

use crate::lines;

/// Tokens by agent: input that no cache held, output, read from a cache, written to one, of the output: reasoning.
pub(crate) type Totals = BTreeMap<&'static str, [u64; 5]>;

/// The totals that were written down when the corpus was made: by `cargo xtask homes`, or by `corpus/gen.py`, which counts what a
/// cache held in Codex's input too.
pub(crate) fn truth(home: &Path) -> Option<Totals> {
    let truth: serde_json::Value = serde_json::from_slice(&std::fs::read(home.join("TRUTH.json")).ok()?).ok()?;
    let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let (claude, codex) = (&truth["claude"]["max"], &truth["codex"]);
    if !claude.is_null() {
        let claude =
            ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "reasoning"]
                .map(|name| count(&claude[name]));
        let [input, output, cached, reasoning] =
            ["input", "output", "cached", "reasoning"].map(|name| count(&codex[name]));
        return Some(
            [("claude-code", claude), ("codex", [input.saturating_sub(cached), output, cached, 0, reasoning])].into(),
        );
    }
    let of = |dialect: &str| {
        ["input", "output", "cacheRead", "cacheWrite", "reasoning"]
            .map(|name| count(&truth["dialects"][dialect]["tokens"][name]))
    };
    Some(["claude-code", "codex"].map(|dialect| (dialect, of(dialect))).into())
}

/// Through the library: each request once, however many sessions hold a copy of it.
pub(crate) fn ours(sources: &[Source], reading: &ReadOptions<'_>) -> Totals {
    let (mut totals, mut named) = (Totals::new(), HashMap::<(&str, u64), Usage>::new());
    for source in sources {
        let session = Session::open(source, reading).unwrap();
        let (dialect, requests) = (source.dialect.name(), session.requests());
        if requests.is_empty() {
            session.usage().into_iter().for_each(|usage| add(&mut totals, dialect, usage));
        }
        for (id, request) in requests {
            let usage = request.usage;
            match id {
                RequestId::Record(_) => add(&mut totals, dialect, usage),
                RequestId::Named(name) => {
                    let known = named.entry((dialect, name)).or_insert(usage);
                    *known = if usage.output >= known.output { usage } else { *known };
                }
            }
        }
    }
    named.into_iter().for_each(|((dialect, _), usage)| add(&mut totals, dialect, usage));
    totals
}

fn add(totals: &mut Totals, dialect: &'static str, usage: Usage) {
    let counts = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    let sum = totals.entry(dialect).or_default();
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.unwrap_or(0));
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, rename = "requestId")]
    request: Option<&'a str>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<&'a str>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Count {
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    total_token_usage: Tokens,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    cached_input_tokens: u64,
    reasoning_output_tokens: u64,
}

/// By a search for the needles, and a typed parse of the lines that hold one.
pub(crate) fn at_best(paths: &[&Path]) -> Totals {
    let (usage, total) = (memmem::Finder::new("\"usage\":{"), memmem::Finder::new("\"total_token_usage\":{"));
    let (mut requests, mut of_codex) = (HashMap::<String, Tokens>::new(), [0; 5]);
    for path in paths {
        let mut last = None;
        lines(path, |line| {
            if usage.find(line).is_some()
                && let Ok(Answer { request, message: Some(Message { id, usage: Some(tokens) }) }) =
                    serde_json::from_slice(line)
            {
                let name = format!("{} {}", id.unwrap_or_default(), request.unwrap_or_default());
                let known = requests.entry(name).or_insert(tokens);
                *known = if tokens.output_tokens >= known.output_tokens { tokens } else { *known };
            } else if total.find(line).is_some()
                && let Ok(Count { payload: Payload { info: Some(info) } }) = serde_json::from_slice(line)
            {
                last = Some(info.total_token_usage);
            }
        });
        if let Some(Tokens { input_tokens, output_tokens, cached_input_tokens, reasoning_output_tokens, .. }) = last {
            let counts =
                [input_tokens - cached_input_tokens, output_tokens, cached_input_tokens, 0, reasoning_output_tokens];
            of_codex.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let mut of_claude = [0; 5];
    for tokens in requests.into_values() {
        let Tokens { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens, .. } = tokens;
        let counts = [input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens, 0];
        of_claude.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Totals::from([("claude-code", of_claude), ("codex", of_codex)])
}
