//! Token counts, under the names of every API.

use scrollback::model::Usage;
use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Parsed, Refused};

/// Token counts under our names, or those of Anthropic, OpenAI or the AI SDK. The last two count cached tokens as input.
pub(super) fn usage(value: Value, parsed: &mut Parsed) -> Result<Usage, Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["usage"], "an object", &value)) };
    let mut fields = Fields(object);
    let mut details = Fields(Map::new());
    let names = [
        "prompt_tokens_details",
        "input_tokens_details",
        "inputTokenDetails",
        "completion_tokens_details",
        "output_tokens_details",
        "outputTokenDetails",
    ];
    for name in names {
        details.0.extend(fields.object(&[name])?.unwrap_or_default());
    }
    let exclusive = fields.count(&["input", "input_tokens"])?;
    let inclusive = fields.count(&["inputTokens", "prompt_tokens", "promptTokens"])?;
    let output = fields.count(&["output", "output_tokens", "outputTokens", "completion_tokens", "completionTokens"])?;
    let beside = fields.count(&["cacheRead", "cache_read_input_tokens", "cacheReadTokens", "cache_read_tokens"])?;
    let within = details.count(&["cached_tokens", "cacheReadTokens"])?.or(fields.count(&["cachedInputTokens"])?);
    let written = fields.count(&["cacheWrite", "cache_creation_input_tokens", "cacheWriteTokens"])?;
    let written_within = details.count(&["cacheWriteTokens", "cache_creation_tokens"])?;
    let cached = within.unwrap_or(0).saturating_add(written_within.unwrap_or(0));
    let reasoning = fields.count(&["reasoning", "reasoningTokens", "reasoning_tokens"])?.or(details.count(&[
        "reasoning_tokens",
        "reasoningTokens",
        "thinking_tokens",
    ])?);
    let usage = Usage {
        input: details
            .count(&["noCacheTokens"])?
            .or(inclusive.or(exclusive).map(|input| input.saturating_sub(cached))),
        output,
        cache_read: beside.or(within),
        cache_write: written.or(written_within),
        reasoning,
    };
    if usage == Usage::default() {
        let known = "input, output, cacheRead, cacheWrite, reasoning";
        return Err(Refused(format!("a usage without tokens; known: {known}, and the names of Anthropic and OpenAI")));
    }
    // Sums and finer splits carry no further information.
    let split = ["total", "total_tokens", "totalTokens", "cache_creation", "server_tool_use", "service_tier", "raw"];
    split.iter().for_each(|key| _ = fields.any(&[key]));
    for (key, _) in fields.0.iter().filter(|(_, value)| !value.is_null()) {
        parsed.lose(format!("usage.{key}"));
    }
    Ok(usage)
}
