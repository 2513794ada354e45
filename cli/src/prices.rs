//! `prices.toml` beside the config file: what requests cost that no list of prices knows.

use scrollback::model::{Cost, Usage};
use toml_edit::{Document, Item, TableLike};

use crate::config::read_text;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::glob::matches_glob;

/// The prices of the user, the first that matches a model counts.
pub(crate) struct Prices(Vec<Price>);

/// Dollars for a million tokens.
#[derive(Debug, Clone, PartialEq)]
struct Price {
    /// A model; * matches anything.
    model: String,
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

const MILLION: f64 = 1e6;

impl Prices {
    /// Reads the file. A mistake in an entry is a warning: what it would have priced is unpriced, and the others count.
    pub(crate) fn read(ctx: &mut Ctx) -> Result<Prices, Failure> {
        let path = ctx.home.config().join("prices.toml");
        if !path.is_absolute() {
            return Ok(Prices(Vec::new()));
        }
        let parsed = read_text(&path).and_then(|text| parse(&text));
        let (prices, wrong) = parsed.unwrap_or_else(|why| (Vec::new(), vec![format!("{why}; no price in it counts")]));
        for why in wrong {
            ctx.caution("prices", &format!("{}: {why}", path.display()))?;
        }
        Ok(Prices(prices))
    }

    /// What a request to a model costs, if its tokens are known.
    pub(crate) fn cost(&self, model: &str, usage: Usage) -> Option<Cost> {
        usage.total()?;
        let price = self.0.iter().find(|price| matches_glob(&price.model, model))?;
        let counts = [
            (usage.input, price.input),
            (usage.output, price.output),
            (usage.cache_read, price.cache_read),
            (usage.cache_write, price.cache_write),
        ];
        let usd: f64 = counts.iter().map(|(count, price)| count.unwrap_or(0) as f64 * price / MILLION).sum();
        Some(Cost::from_usd(usd))
    }
}

/// The prices in the file, and what is wrong with the others.
fn parse(text: &str) -> Result<(Vec<Price>, Vec<String>), String> {
    let document =
        Document::parse(text).map_err(|error| error.message().lines().next().unwrap_or_default().to_owned())?;
    let Some(prices) = document.get("price") else { return Ok((Vec::new(), Vec::new())) };
    let tables = prices.as_array_of_tables().ok_or("`price` is not a list of [[price]] tables")?;
    let (mut prices, mut wrong) = (Vec::new(), Vec::new());
    for (at, table) in tables.iter().enumerate() {
        match price(table) {
            Some(price) => prices.push(price),
            None => wrong.push(invalid(at)),
        }
    }
    Ok((prices, wrong))
}

fn invalid(at: usize) -> String {
    format!(
        "[[price]] number {} does not count: it needs match, input and output, and may have cache_read and cache_write, in dollars per million",
        at + 1
    )
}

fn price(table: &dyn TableLike) -> Option<Price> {
    let is_known = |key: &str| matches!(key, "match" | "input" | "output" | "cache_read" | "cache_write");
    if !table.iter().all(|(key, _)| is_known(key)) {
        return None;
    }
    let number = |item: &Item| item.as_float().or_else(|| item.as_integer().map(|number| number as f64));
    // Absent is not the same as wrong.
    let dollars = |key: &str, default: Option<f64>| match table.get(key) {
        Some(item) => number(item).filter(|usd| usd.is_finite() && *usd >= 0.0),
        None => default,
    };
    let input = dollars("input", None)?;
    Some(Price {
        model: table.get("match")?.as_str()?.to_owned(),
        input,
        output: dollars("output", None)?,
        // What is not said costs as much as any input.
        cache_read: dollars("cache_read", Some(input))?,
        cache_write: dollars("cache_write", Some(input))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_price_that_matches_counts() {
        let text = "[[price]]\nmatch = \"beacon-*\"\ninput = 2\noutput = 10.5\ncache_read = 0.5\n\n[[price]]\nmatch = \"*\"\ninput = 0\noutput = 0\n";
        let prices = Prices(parse(text).unwrap().0);
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(2_000_000),
            cache_read: Some(4_000_000),
            cache_write: Some(1_000_000),
            reasoning: None,
        };
        assert_eq!(prices.cost("beacon-2-large", usage), Some(Cost::from_usd(2.0 + 21.0 + 2.0 + 2.0)));
        assert_eq!(prices.cost("local", usage), Some(Cost::from_usd(0.0)), "a price of nothing is a price");
        assert_eq!(prices.cost("local", Usage::default()), None, "nothing known is not nothing spent");
        assert_eq!(Prices(parse("").unwrap().0).cost("local", usage), None);
    }

    #[test]
    fn a_mistake_in_an_entry_leaves_the_others() {
        let text =
            "[[price]]\nmatch = \"*\"\ninput = -1\noutput = 1\n\n[[price]]\nmatch = \"zorg*\"\ninput = 2\noutput = 1\n";
        let (prices, wrong) = parse(text).unwrap();
        let usage = Usage { input: Some(1_000_000), ..Usage::default() };
        assert_eq!(Prices(prices).cost("zorg-9", usage), Some(Cost::from_usd(2.0)));
        assert!(wrong.len() == 1 && wrong[0].contains("number 1"), "{wrong:?}");
    }

    #[test]
    fn a_mistake_is_told() {
        for wrong in [
            "price = 3",
            "[[price]]\ninput = 1",
            "[[price]]\nmatch = \"a\"\ninput = -1\noutput = 1",
            "[[price]]\nmatch = \"a\"\ninput = \"1\"\noutput = 1",
            "[[price]]\nmatch = \"a\"\ninput = 1\noutput = 1\ncached = 1",
            "[[price]]\nmatch = \"a\"\ninput = 1\noutput = nan",
            "not toml",
        ] {
            assert!(parse(wrong).map_or(true, |(_, wrong)| !wrong.is_empty()), "{wrong}");
        }
    }
}
