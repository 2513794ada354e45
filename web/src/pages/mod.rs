//! The pages of the server: each is a function from what was asked to HTML.

pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod home;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod stats;
pub(crate) mod tree;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use maud::{Markup, PreEscaped};

use crate::site::Site;

/// What was asked for in an address, behind its path.
#[derive(Debug, Default, Clone)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Takes what was read of an address.
    pub(crate) fn new(params: Vec<(String, String)>) -> Params {
        Params(params)
    }

    /// A parameter that says something.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A number; anything else is as if nothing were there, where nobody has looked before (`wrong`).
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }

    /// The first parameter whose value is none of those that it takes, as a page for who typed it.
    pub(crate) fn wrong(&self, known: &[(&str, Takes<'_>)]) -> Option<Made> {
        known.iter().find_map(|(name, takes)| {
            let value = self.get(name)?;
            let (is_right, takes) = match takes {
                Takes::Number => (value.parse::<usize>().is_ok(), "a number".to_owned()),
                Takes::One(of) => (of.contains(&value), of.join(", ")),
            };
            (!is_right).then(|| error::wrong_parameter(name, value, &takes))
        })
    }

    /// The names of what is there.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Whether it is there, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The same address with one parameter changed, or taken away.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(key, value)| key != name && !value.is_empty() && key != "from");
        let changed = value.map(|value| (name.to_owned(), value.to_owned()));
        let pairs: Vec<String> = kept
            .cloned()
            .chain(changed)
            .map(|(key, value)| {
                format!("{}={}", crate::render::text::path_segment(&key), crate::render::text::path_segment(&value))
            })
            .collect();
        format!("?{}", pairs.join("&"))
    }
}

/// What a parameter takes.
pub(crate) enum Takes<'a> {
    /// A number from 0.
    Number,
    /// One of these words.
    One(&'a [&'a str]),
}

/// A page that was made.
pub(crate) struct Made {
    /// How it went.
    pub(crate) status: StatusCode,
    /// What the browser's tab says.
    pub(crate) title: String,
    /// Which of the main pages it belongs to.
    pub(crate) nav: Nav,
    /// What is between the header and the footer.
    pub(crate) body: Markup,
    /// What goes into its holes, if it has any.
    pub(crate) rest: Option<Rest>,
}

/// What is not known of a page when its beginning is sent.
pub(crate) struct Rest {
    /// Whether every session is read for it: one such question is answered at a time.
    pub(crate) reads_sessions: bool,
    /// Finds it out: one piece for each hole, or fewer for the last ones. It may stop when nobody waits any more.
    pub(crate) fill: Box<Fill>,
}

type Fill = dyn FnOnce(&Site, &Arc<AtomicBool>) -> Vec<Markup> + Send;

/// What stands in a hole until the page is sent. A text cannot look like it: it is escaped.
pub(crate) const HOLE: &str = "<!--hole-->";

/// A place of a page that is filled when its beginning has been sent.
pub(crate) fn hole() -> Markup {
    PreEscaped(HOLE.to_owned())
}

/// The main pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nav {
    /// The list of sessions.
    Sessions,
    /// Search.
    Search,
    /// Figures.
    Stats,
    /// Something below one of them.
    Other,
}
