//! Icons: shapes from one sprite, of which a page holds those that it uses.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};

/// Every icon, one `<symbol>` a line.
const SPRITE: &str = include_str!("../../assets/icons.svg");

static SYMBOLS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let symbols = SPRITE.lines().map(str::trim).filter(|line| line.starts_with("<symbol"));
    symbols.filter_map(|line| Some((line.split('"').nth(1)?, line))).collect()
});

/// The agents that have a mark of their own.
const MARKED: [&str; 7] = ["native", "claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];

/// An icon without a meaning of its own: words stand beside it.
pub fn icon(name: &'static str) -> Markup {
    html! { svg.i aria-hidden="true" { use href={ "#i-" (name) } {} } }
}

/// The arrow of a fold.
pub fn chevron() -> Markup {
    html! { svg class="i chev" aria-hidden="true" { use href="#i-chevron" {} } }
}

/// The mark of an agent, beside its name.
pub fn agent_mark(dialect: &str) -> Markup {
    let name = marked(dialect);
    html! { svg class={ "mark-a ag-" (name) } aria-hidden="true" { use href={ "#a-" (name) } {} } }
}

/// The mark of an agent, where its name does not stand beside it.
pub fn agent_mark_alone(dialect: &str) -> Markup {
    let name = marked(dialect);
    html! {
        svg class={ "mark-a ag-" (name) } role="img" aria-label=(agent_name(dialect)) { use href={ "#a-" (name) } {} }
    }
}

/// An agent's name for people.
pub fn agent_name(dialect: &str) -> &str {
    match dialect {
        "claude-code" => "Claude Code",
        "codex" => "Codex",
        "sage-el" => "sage for Emacs",
        "qwen-code" => "Qwen Code",
        "fluux" => "Fluux",
        "ai-sdk" => "AI SDK",
        other => other,
    }
}

fn marked(dialect: &str) -> &'static str {
    MARKED.iter().find(|known| **known == dialect).unwrap_or(&"other")
}

/// The symbols that some HTML uses.
pub fn sprite(page: &str) -> Markup {
    let mut used = String::new();
    for (name, symbol) in SYMBOLS.iter() {
        if page.contains(&format!("href=\"#{name}\"")) {
            used.push_str(symbol);
        }
    }
    sprite_of(&used)
}

/// Every symbol: for a file that is written before it is known what it uses.
pub fn whole_sprite() -> Markup {
    let symbols: Vec<&str> = SYMBOLS.iter().map(|(_, symbol)| *symbol).collect();
    sprite_of(&symbols.concat())
}

fn sprite_of(symbols: &str) -> Markup {
    html! { svg width="0" height="0" hidden { (PreEscaped(symbols)) } }
}
