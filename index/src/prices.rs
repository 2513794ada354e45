//! What a request cost by a list of prices, at its date: genai-prices, which has no network here.
//!
//! A model that the list does not know has no price; that is not zero.

use std::time::SystemTime;

use genai_prices::{PriceRequest, Usage as Units, UsageKey};
use jiff::Timestamp;
use scrollback::model::{Cost, Usage};
use scrollback::view::counting::{RequestCost, SessionCounts};

/// The list: what is stored with prices of another one is priced again.
pub const PRICES: &str = "genai-prices 0.2.1";

/// Whose models begin like this: another provider may sell a model of the same name for another price.
const PROVIDERS: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("grok", "x-ai"),
    ("mistral", "mistral"),
    ("deepseek", "deepseek"),
];

/// What a request to a model cost at this time; `None` if the list does not know, or nobody knows how many tokens it took.
pub fn listed_cost(model: &str, at: Option<Timestamp>, usage: Usage) -> Option<Cost> {
    usage.total()?;
    let [input, output, read, written] =
        [usage.input, usage.output, usage.cache_read, usage.cache_write].map(|count| count.unwrap_or(0) as f64);
    // Here input is what no cache held; there it is everything that was sent.
    let units = Units::from([
        (UsageKey::INPUT_TOKENS, input + read + written),
        (UsageKey::OUTPUT_TOKENS, output),
        (UsageKey::CACHE_READ_TOKENS, read),
        (UsageKey::CACHE_WRITE_TOKENS, written),
    ]);
    let mut request = PriceRequest::new(model, &units);
    if let Some(at) = at {
        request = request.with_timestamp(SystemTime::from(at));
    }
    let provider = PROVIDERS.iter().find(|(beginning, _)| model.starts_with(beginning));
    if let Some((_, provider)) = provider {
        request = request.with_provider_id(provider);
    }
    genai_prices::calculate(&request).ok().map(|price| Cost::from_usd(price.total_price))
}

/// Prices the requests of a session that the agent did not record the cost of.
pub(crate) fn price(counts: &mut SessionCounts) {
    for request in counts.requests.iter_mut().filter(|request| !matches!(request.cost, RequestCost::Recorded(_))) {
        let model = request.model.and_then(|model| counts.models.get(usize::from(model)));
        let at = request.at.and_then(|at| Timestamp::from_microsecond(at).ok());
        let listed = model.and_then(|model| listed_cost(model, at, request.usage()));
        request.cost = listed.map_or(RequestCost::Unknown, RequestCost::Listed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(model: &str, usage: Usage) -> Option<f64> {
        listed_cost(model, Some("2026-03-01T00:00:00Z".parse().unwrap()), usage).map(Cost::to_usd)
    }

    #[test]
    fn a_cache_is_cheaper_than_input_and_an_unknown_model_has_no_price() {
        let million = Some(1_000_000);
        let input = usd("claude-opus-4-5-20251101", Usage { input: million, ..Usage::default() });
        let read = usd("claude-opus-4-5-20251101", Usage { cache_read: million, ..Usage::default() });
        let written = usd("claude-opus-4-5-20251101", Usage { cache_write: million, ..Usage::default() });
        assert_eq!((input, read, written), (Some(5.0), Some(0.5), Some(6.25)));
        let both =
            usd("claude-opus-4-5", Usage { input: million, cache_read: million, output: million, ..Usage::default() });
        assert_eq!(both, Some(30.5));
        assert_eq!(usd("gpt-5-codex", Usage { output: million, ..Usage::default() }), Some(10.0));
        assert_eq!(usd("no-such-model", Usage { input: million, ..Usage::default() }), None);
        assert_eq!(usd("claude-opus-4-5", Usage::default()), None, "nothing known is not nothing spent");
        assert_eq!(usd("claude-opus-4-5", Usage { input: Some(0), ..Usage::default() }), Some(0.0));
    }

    #[test]
    fn the_version_of_the_list_is_the_one_that_is_built_in() {
        let lock = include_str!("../../Cargo.lock");
        let (name, version) = PRICES.split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{PRICES}");
    }
}
