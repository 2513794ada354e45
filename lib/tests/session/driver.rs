//! What later dialects need of the driver and `native` does not use: each test dialect states facts and nothing else.

use std::borrow::Cow;
use std::path::Path;

use crate::support::{describe, reading};
use scrollback::dialect::{Dialect, Event, Format, Layout, Link, Moment, Parent};
use scrollback::model::{Body, Content, Kind, Part, ToolResult, Usage};
use scrollback::session::Session;
use scrollback::view::Conversation;
use serde::Deserialize;

/// What all test dialects' records share: any field may be there.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    call: Option<Cow<'a, str>>,
    #[serde(borrow)]
    answers: Option<Cow<'a, str>>,
    tokens: Option<u64>,
}

impl<'a> Fields<'a> {
    fn kind(&self) -> Kind {
        match self.kind.as_deref() {
            Some("user") => Kind::User,
            Some("assistant") => Kind::Assistant,
            Some("result") => Kind::ToolResult,
            _ => Kind::Other,
        }
    }

    fn link(&self, text: &'a str, parent: Parent<'a>) -> Event<'a> {
        Event::Record(Link {
            id: self.id.clone(),
            parent,
            at: self.at.clone().map_or(Moment::Absent, Moment::Text),
            ..Link::new(text, self.kind())
        })
    }
}

fn body(text: &str) -> Body {
    let fields: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
    let words = fields.text.clone().unwrap_or_default().into_owned();
    let mut said = Content::default();
    match (&fields.answers, &fields.call) {
        (Some(call), _) => said.results.push(ToolResult {
            call_id: call.clone().into_owned(),
            name: None,
            output: words.into(),
            outcome: scrollback::model::Outcome::Done,
            preliminary: false,
            duration_ms: None,
            about: Default::default(),
        }),
        (None, Some(call)) => said.parts.push(Part::from(serde_json::json!({
            "type": "dynamic-tool", "toolName": "x", "toolCallId": call, "state": "input-available", "input": {}
        }))),
        (None, None) => said.parts.push(Part::text(words)),
    }
    said.usage = fields.tokens.map(|output| Usage { output: Some(output), ..Usage::default() });
    match fields.kind() {
        Kind::User => Body::User(said),
        Kind::Assistant => Body::Assistant(said),
        Kind::ToolResult => Body::ToolResult(said),
        _ => Body::Other(text.into()),
    }
}

fn layout(root: &Path, pattern: &'static str, format: Format) -> Vec<Layout> {
    vec![Layout { root: root.to_path_buf(), pattern, companions: &[], sidecar: None, format }]
}

/// The parts of a dialect that all of these have in common.
macro_rules! dialect {
    ($name:ident, $pattern:literal, $format:expr, $repeated:ident, $bridges:expr, $link:expr) => {
        struct $name;

        impl scrollback::dialect::Dialect for $name {
            fn name(&self) -> &'static str {
                stringify!($name)
            }

            fn layouts(&self, home: &scrollback::model::Home) -> Vec<scrollback::dialect::Layout> {
                self.layouts_in(&home.dir)
            }

            fn layouts_in(&self, store: &std::path::Path) -> Vec<scrollback::dialect::Layout> {
                crate::driver::layout(store, $pattern, $format)
            }

            fn traits(&self) -> scrollback::dialect::Traits {
                scrollback::dialect::Traits {
                    bridged_gap_ms: $bridges,
                    ..scrollback::dialect::Traits::new(scrollback::dialect::RepeatedId::$repeated)
                }
            }

            fn link<'a>(
                &self,
                text: &'a str,
                emit: &mut dyn FnMut(scrollback::dialect::Event<'a>),
            ) -> Result<(), serde_json::Error> {
                $link(text, emit)
            }

            fn body(&self, text: &str) -> scrollback::model::Body {
                crate::driver::body(text)
            }
        }
    };
}

mod blocks;
mod document;
mod fork;
mod log;
mod rows;

type Emit<'e, 'a> = &'e mut dyn FnMut(Event<'a>);

fn read(dialect: &'static dyn Dialect, lines: &str) -> Session {
    Session::from_bytes(dialect, lines.trim_start().as_bytes().to_vec(), &reading())
}

/// What a reader sees: the description, then each message's words.
fn shown(session: &Session) -> String {
    let mut shown = vec![describe(session)];
    if let Some(head) = session.head() {
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        for message in conversation.messages(0..conversation.len()) {
            let message = message.unwrap();
            let words = message.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.text.clone()),
                Part::Tool(tool) => Some(serde_json::to_value(tool).unwrap()["state"].as_str().unwrap().to_owned()),
                Part::StepStart => Some("|".to_owned()),
                _ => None,
            });
            shown.push(format!("{}: {}", message.id, words.collect::<Vec<_>>().join(" ")));
        }
    }
    shown.join("\n")
}
