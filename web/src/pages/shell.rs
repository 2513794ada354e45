//! What every page has: the header with the search, the footer, and the icons that the page uses.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{HOLE, Made, Nav};
use crate::render::icon::{icon, sprite, whole_sprite};
use crate::render::words;
use crate::site::Site;

/// The theme that a reader chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system has it.
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// The theme of this name.
    pub(crate) fn named(name: &str) -> Theme {
        match name {
            "light" => Theme::Light,
            "dark" => Theme::Dark,
            _ => Theme::System,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    /// What the button chooses next, and what it is called.
    fn next(self) -> (Theme, &'static str) {
        match self {
            Theme::System => (Theme::Dark, "Use the dark theme"),
            Theme::Dark => (Theme::Light, "Use the light theme"),
            Theme::Light => (Theme::System, "Use the theme of the system"),
        }
    }
}

/// A page with its holes. `asked` is what was searched for.
pub(crate) fn page(made: &Made, theme: Theme, asked: &str, site: &Site) -> String {
    let shown = html! {
        a.skip href="#main" { "Skip to the content" }
        (header(made.nav, theme, asked))
        main.page id="main" { (made.body) }
        (footer(site))
        (help())
    };
    document(&made.title, theme, true, &shown)
}

/// A page for somebody who may not see anything yet.
pub(crate) fn bare(title: &str, body: Markup) -> String {
    let shown = html! { main.page id="main" { (body) } };
    document(title, Theme::System, false, &shown)
}

fn document(title: &str, theme: Theme, has_script: bool, shown: &Markup) -> String {
    let chosen = Some(theme.name()).filter(|_| theme != Theme::System);
    // What comes later may need any icon.
    let is_whole = !shown.0.contains(" data-live=") && !shown.0.contains(HOLE);
    let icons = if is_whole { sprite(&shown.0) } else { whole_sprite() };
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[chosen] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · scrollback" }
                link rel="icon" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
                @if has_script { script src="/assets/page.js" {} }
            }
            body { (icons) (PreEscaped(&shown.0)) }
        }
    }
    .0
}

fn header(nav: Nav, theme: Theme, asked: &str) -> Markup {
    let (next, label) = theme.next();
    let current = |of: Nav| (of == nav).then_some("page");
    html! {
        header.top {
            div.top-in {
                a.brand href="/" { (icon("logo")) "scrollback" }
                nav.nav aria-label="Main" {
                    a href="/" aria-current=[current(Nav::Sessions)] { "Sessions" }
                    a href="/search" aria-current=[current(Nav::Search)] { "Search" }
                    a href="/stats" aria-current=[current(Nav::Stats)] { "Stats" }
                }
                div.top-end {
                    @if nav != Nav::Search {
                        form.find action="/search" role="search" {
                            (icon("search"))
                            input type="search" name="q" value=(asked) placeholder="Search every session" aria-label="Search every session" autocomplete="off";
                            kbd.js-only aria-hidden="true" { "/" }
                        }
                    }
                    form method="post" action="/theme" {
                        button class="btn btn-icon" name="theme" value=(next.name()) aria-label=(label) { (icon("theme")) }
                    }
                }
            }
        }
    }
}

fn footer(site: &Site) -> Markup {
    let shelf = site.catalogue.shelf();
    let count = shelf.entries.len();
    let read = shelf.read_at.map(|at| words::ago(at, (site.now)()));
    html! {
        footer.foot {
            div.foot-in {
                span { (words::plural(count, "session")) @if let Some(read) = read { ", read " (read) } }
                @if shelf.unreadable > 0 { span { (words::plural(shelf.unreadable, "file")) " could not be read" } }
                span.js-only { kbd { "?" } " shows every key" }
                span { "scrollback " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

fn help() -> Markup {
    let keys: [(&[&str], &str); 10] = [
        (&["j", "k"], "next, previous message"),
        (&["J", "K"], "next, previous prompt"),
        (&["e", "E"], "next, previous failure"),
        (&["o"], "open or fold what is in this message"),
        (&["O"], "open or fold every tool"),
        (&["y"], "copy the link to this message"),
        (&["t", "f", "r"], "tree, files, replay of this session"),
        (&["/"], "search"),
        (&["g", "G"], "first, last message"),
        (&["Esc"], "close this"),
    ];
    html! {
        dialog.help id="help" aria-labelledby="help-title" {
            h2 id="help-title" { "Keys" }
            dl { @for (keys, what) in keys { dt { @for key in keys { kbd { (key) } " " } } dd { (what) } } }
        }
    }
}
