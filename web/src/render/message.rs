//! One message: who, when, its parts, and what its turn cost.

use std::borrow::Cow;

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use scrollback::model::{DataPart, Display, Message, Part, Role, ToolPart, Usage};
use scrollback::view::dividers;
use scrollback::view::surroundings::{Around, TurnRequest};
use scrollback::view::tool_view::{SubAgent, ToolView, attached_name, todo, todo_list};
use serde_json::Value;

use super::icon::{agent_mark, agent_name, icon};
use super::tool::Nested;
use super::{Look, Show, ansi, divider, file, markdown, text, thought, todos, tool, words};
use crate::figures::Money;

/// The colours that people in a room share.
const COLOURS_OF_PEOPLE: u64 = 6;

/// Below this, a page shows no further part of a message, but the way to them.
const LEAST_ROOM_BYTES: usize = 1_000;

/// What is around a message: found by whoever walks the branch.
pub struct Beside<'a> {
    /// The time and the tokens of its turn, and what came along.
    pub around: &'a Around,
    /// Emojis, with the people who chose them.
    pub reactions: &'a [(String, Vec<String>)],
    /// The conversation that a call started, by the call and the session that it names.
    pub nested: &'a dyn Fn(&ToolPart, &SubAgent<'_>) -> Option<Nested>,
    /// Conversations that began here and that no call names.
    pub asides: Vec<Markup>,
    /// Whether nothing follows it.
    pub is_last: bool,
    /// The first part that is shown.
    pub from_part: usize,
}

/// A message with what stands before it.
pub fn message(message: &Message, beside: &Beside<'_>, look: &Look<'_>) -> Markup {
    *look.cwd.borrow_mut() = message.noted("cwd").map(str::to_owned);
    let display = message.display();
    let between = message.parts.iter().take_while(|part| dividers::is_before_message(part)).count();
    let before: String =
        message.parts[..between].iter().filter_map(|part| before_message(part, beside, look)).collect();
    let body = body(message, display.as_ref(), between.max(beside.from_part), beside, look);
    let is_silent = match &display {
        // It follows the command that printed it.
        Some(Display::Output { .. }) => true,
        _ => !message.parts.is_empty() && message.parts.iter().all(dividers::is_alone),
    };
    let is_left_out = match look.folds.show {
        Show::Everything | Show::NoTools => false,
        Show::Prompts => message.role != Role::User,
    };
    if is_left_out {
        return PreEscaped(before);
    }
    if is_silent {
        let is_empty = body.0.is_empty();
        return html! {
            (PreEscaped(before))
            @if !is_empty { article class="msg msg-quiet" id={ "m-" (text::anchor(&message.id)) } { div.msg-body { (body) } } }
        };
    }
    let class = match message.role {
        Role::User => "msg msg-user",
        Role::Assistant if look.is_room => "msg msg-agent",
        Role::Assistant => "msg",
        Role::System => "msg msg-system",
    };
    html! {
        (PreEscaped(before))
        article class=(class) id={ "m-" (text::anchor(&message.id)) } tabindex="-1" {
            (head(message, look))
            div.msg-body { (body) }
        }
    }
}

fn before_message(part: &Part, beside: &Beside<'_>, look: &Look<'_>) -> Option<String> {
    let Part::Data(data) = part else { return None };
    if is_moved(data, beside) {
        return None;
    }
    divider::of_part(&data.kind, &data.data, look).map(|divider| divider.0)
}

fn is_moved(data: &DataPart, beside: &Beside<'_>) -> bool {
    beside.around.moved.iter().any(|moved| data.data["record"] == **moved)
}

/// Who wrote it, when, and its anchor.
fn head(message: &Message, look: &Look<'_>) -> Markup {
    let at: Option<Timestamp> = message.noted("timestamp").and_then(|at| at.parse().ok());
    let (name, address) = name(message, look);
    let short = text::short_id(&message.id);
    let level = look.level;
    html! {
        header.msg-head {
            span.msg-mark aria-hidden="true" { (mark(message, &name, look)) }
            @match level {
                2 => h2.msg-who dir="auto" { (name) },
                3 => h3.msg-who dir="auto" { (name) },
                4 => h4.msg-who dir="auto" { (name) },
                _ => h5.msg-who dir="auto" { (name) },
            }
            @if !address.is_empty() { span dir="auto" { (address) } }
            @if let Some(at) = at { (words::clock(at, look.zone)) }
            @if let Some(thinking) = thinking(message) { span { "thinking: " (thinking) } }
            a.anchor href=(look.message_address(&message.id)) aria-label={ "Link to message " (short) } { "#" (short) }
        }
    }
}

/// The name of whoever wrote it, and the rest of their address.
fn name(message: &Message, look: &Look<'_>) -> (String, String) {
    let author = message.author();
    match (message.role, author) {
        (Role::User, "you") if look.sub_agent.is_some() => ("The task".to_owned(), String::new()),
        (Role::Assistant, model) if let Some(name) = look.sub_agent.filter(|name| !name.is_empty()) => {
            let model = if model == "assistant" { String::new() } else { text::brief(model, 80) };
            (text::brief(name, 80), model)
        }
        (Role::User | Role::System, "you") => ("You".to_owned(), String::new()),
        (Role::System, "system") => ("System".to_owned(), String::new()),
        (Role::Assistant, "assistant") => {
            let model = look.model.as_ref().map(|model| text::brief(model, 80));
            (model.unwrap_or_else(|| agent_name(look.dialect).to_owned()), String::new())
        }
        (Role::User | Role::System, sender) => match sender.split_once(['@', '/']) {
            Some((name, rest)) if !name.is_empty() => (text::brief(name, 80), format!("@{}", text::brief(rest, 80))),
            _ => (text::brief(sender, 80), String::new()),
        },
        (Role::Assistant, model) => (text::brief(model, 80), String::new()),
    }
}

fn mark(message: &Message, name: &str, look: &Look<'_>) -> Markup {
    match message.role {
        Role::User if look.is_room => {
            let colour = name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let initial: String = name.chars().next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
            html! { span class={ "person who-" (colour % COLOURS_OF_PEOPLE + 1) } { (text::shown(&initial)) } }
        }
        Role::User => html! { span.msg-you { (icon("prompt")) } },
        Role::Assistant => agent_mark(look.dialect),
        Role::System => html! {},
    }
}

/// How much the model was asked to think.
fn thinking(message: &Message) -> Option<String> {
    let thinking = message.metadata.as_ref()?.get("thinking")?;
    let level = thinking.get("level")?.as_str().filter(|level| !matches!(*level, "none" | ""))?;
    Some(text::brief(level, 40))
}

fn body(message: &Message, display: Option<&Display>, from: usize, beside: &Beside<'_>, look: &Look<'_>) -> Markup {
    let mut out = Body { html: String::new(), group: Group::None };
    if let Some(shown) = display.filter(|_| beside.from_part == 0) {
        out.push(Group::None, displayed(shown, look));
    }
    let failure = dividers::error_text(message);
    let mut is_cut = false;
    for (at, part) in message.parts.iter().enumerate().skip(from) {
        if look.room.bytes.get().saturating_sub(out.html.len()) < LEAST_ROOM_BYTES && at > from {
            out.push(Group::None, rest_of(message, at, look));
            is_cut = true;
            break;
        }
        let is_text = matches!(part, Part::Text(_));
        if is_text && display.is_some() {
            // What the model sees instead.
            continue;
        }
        if let Part::Text(text) = part
            && dividers::is_summarized(&text.text, &message.parts[at + 1..])
        {
            continue;
        }
        if failure == Some(at)
            && let Part::Text(text) = part
        {
            out.push(
                Group::None,
                html! { p.notice { (icon("warn")) span dir="auto" { (text::shown(look.cut(&text.text).0)) } } },
            );
            continue;
        }
        if matches!(part, Part::StepStart) && out.html.is_empty() {
            continue;
        }
        part_of(&mut out, message, at, part, beside, look);
    }
    if !is_cut {
        around(&mut out, message, beside, look);
    }
    if out.is_blank() && message.role == Role::User {
        out.push(Group::None, html! { p.meta { "(empty)" } });
    }
    PreEscaped(out.finish())
}

fn part_of(out: &mut Body, message: &Message, at: usize, part: &Part, beside: &Beside<'_>, look: &Look<'_>) {
    let hides_tools = look.folds.show != Show::Everything;
    let whole = look.part_address(&message.id, at);
    match part {
        Part::Text(text) if message.role == Role::User => out.push(Group::None, typed(&text.text, whole, look)),
        Part::Text(text) if text.text.trim().is_empty() => {}
        Part::Text(text) => out.push(Group::None, prose(&text.text, whole, look)),
        Part::Reasoning(_) | Part::Tool(_) if hides_tools => {}
        Part::Reasoning(reasoning) => out.push(Group::None, thought::reasoning(&reasoning.text, whole, look)),
        Part::Tool(call) => {
            let nested = match ToolView::of(call) {
                ToolView::SubAgent(agent) => (beside.nested)(call, &agent),
                _ => None,
            };
            out.push(
                Group::Tools,
                tool::call(call, tool::ending_in(call, look.is_running && beside.is_last), nested, whole, look),
            );
        }
        Part::File(part) => {
            out.push(Group::Files, file::file(part, attached_name(&message.parts, at), &message.id, at, look));
        }
        Part::ReasoningFile(part) => {
            out.push(Group::Files, file::chip("image", "picture in the thinking", &part.media_type))
        }
        Part::SourceUrl(source) => {
            out.push(Group::Sources, file::source(source.title.as_deref().unwrap_or_default(), &source.url));
        }
        Part::SourceDocument(source) => {
            let place = source.filename.as_deref().unwrap_or(&source.media_type);
            out.push(Group::Sources, file::source(&source.title, place));
        }
        Part::Custom(custom) => out.push(Group::None, unknown(&custom.kind)),
        Part::Steering(steering) => {
            for part in &steering.parts {
                part_of(out, &Message::new(&*message.id, Role::User, Vec::new()), at, part, beside, look);
            }
        }
        Part::StepStart => out.step(),
        Part::Data(data) if is_moved(data, beside) => {}
        Part::Data(data) => {
            out.push(if data.kind == "attachment" { Group::Files } else { Group::None }, data_part(data, look))
        }
        Part::Other(value) => out.push(Group::None, unknown(value.get("type").and_then(Value::as_str).unwrap_or("?"))),
    }
}

fn data_part(data: &DataPart, look: &Look<'_>) -> Markup {
    match data.kind.as_str() {
        "attachment" => file::attachment(&data.data),
        "reaction" => reaction_alone(&data.data),
        "mention" => html! {},
        kind => divider::of_part(kind, &data.data, look).unwrap_or_else(|| unknown(&format!("data-{kind}"))),
    }
}

/// A reaction whose message is not on this page.
fn reaction_alone(data: &Value) -> Markup {
    let emojis = data.get("emojis").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let emojis: Vec<String> = emojis.map(|emoji| text::brief(emoji, 20)).collect();
    let target = data.get("message_id").and_then(Value::as_str).unwrap_or("?");
    html! { p.meta { (if emojis.is_empty() { "took the reaction back".to_owned() } else { emojis.join(" ") }) " on " code { (text::short_id(target)) } } }
}

fn unknown(kind: &str) -> Markup {
    html! { p.meta { "A part of the kind " code { (text::brief(kind, 80)) } ", which is not shown here" } }
}

/// What a person typed. In a room, names that are addressed stand out.
fn typed(source: &str, whole: Option<String>, look: &Look<'_>) -> Markup {
    let (shown, is_whole) = look.cut(source);
    html! {
        @if look.is_room { (room_text(shown)) } @else { (markdown::typed(shown)) }
        @if !is_whole { (thought::rest(&source[shown.len()..], whole, look)) }
    }
}

fn room_text(source: &str) -> Markup {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut pieces: Vec<(bool, &str)> = Vec::new();
    let mut rest = source.trim_matches('\n');
    while let Some(at) = rest.find('@') {
        let starts_word = rest[..at].chars().next_back().is_none_or(|before| !is_name(before));
        let end = rest[at + 1..].find(|c| !is_name(c)).map_or(rest.len(), |end| at + 1 + end);
        pieces.push((false, &rest[..at]));
        pieces.push((starts_word && end > at + 1, &rest[at..end]));
        rest = &rest[end..];
    }
    pieces.push((false, rest));
    html! {
        div class="prose typed" dir="auto" {
            p { @for (is_mention, piece) in pieces { @if is_mention { span.mention { (text::shown(piece)) } } @else { (text::shown(piece)) } } }
        }
    }
}

fn prose(source: &str, whole: Option<String>, look: &Look<'_>) -> Markup {
    let (shown, is_whole) = look.cut(source);
    html! {
        (markdown::prose(shown, look.level))
        @if !is_whole { (thought::rest(&source[shown.len()..], whole, look)) }
    }
}

/// What a person typed, ran or saw, where the model got something else.
fn displayed(display: &Display, look: &Look<'_>) -> Markup {
    match display {
        Display::Typed { text } => typed(text, None, look),
        Display::Command { text } => html! { p.command { code { (text::shown(look.cut(text).0)) } } },
        Display::Shell { text, output, exit_code } => html! {
            pre.term tabindex="0" {
                span.term-cmd { (text::shown(text)) }
                (ansi::terminal(look.cut(output).0))
                @if let Some(code) = exit_code { span.term-exit { "exit status " (code) } }
            }
        },
        Display::Output { text, errors } => html! {
            pre.term tabindex="0" {
                (ansi::terminal(look.cut(text).0))
                @if !errors.is_empty() { span.term-exit { (ansi::terminal(look.cut(errors).0)) } }
            }
        },
        Display::Notification { text } => html! { p.meta dir="auto" { (text::shown(look.cut(text).0)) } },
        Display::Interrupted => {
            divider::of_part("error", &serde_json::json!({"kind": "interrupted"}), look).unwrap_or_default()
        }
    }
}

/// Reactions, attached files, the task list, and what the turn cost.
fn around(out: &mut Body, message: &Message, beside: &Beside<'_>, look: &Look<'_>) {
    for attached in &beside.around.attached {
        out.push(Group::Files, file::attached(attached));
    }
    for aside in &beside.asides {
        out.push(Group::Tools, aside.clone());
    }
    if !beside.reactions.is_empty() {
        out.push(Group::None, reactions(beside.reactions));
    }
    let items: Vec<_> = todo_list(message).into_iter().flatten().filter_map(todo).collect();
    if !items.is_empty() && message.role == Role::Assistant {
        out.push(Group::None, todos::folded(&items));
    }
    let facts = foot(message, beside.around, look);
    if message.role == Role::Assistant && !facts.is_empty() && look.folds.show == Show::Everything {
        out.push(Group::None, html! { footer.msg-foot { @for fact in facts { span { (fact) } } } });
    }
}

fn reactions(reactions: &[(String, Vec<String>)]) -> Markup {
    const PEOPLE_NAMED: usize = 12;
    html! {
        ul.reactions aria-label="Reactions" {
            @for (emojis, people) in reactions {
                li.reaction {
                    b { (text::brief(emojis, 40)) }
                    (people.iter().take(PEOPLE_NAMED).map(|person| text::brief(person.split(['@', '/']).next().unwrap_or(person), 40)).collect::<Vec<_>>().join(", "))
                    @if people.len() > PEOPLE_NAMED { " and " (people.len() - PEOPLE_NAMED) " more" }
                }
            }
        }
    }
}

/// The tokens, the cost and the time of a turn.
fn foot(message: &Message, around: &Around, look: &Look<'_>) -> Vec<String> {
    let (usage, requests) = requests(message, around);
    let mut facts = usage.map(|usage| words::usage_facts(&usage)).unwrap_or_default();
    facts.extend(match Money::of(&requests, look.price) {
        Money { usd: None, unpriced: 1.. } => Some("no price known".to_owned()),
        money => money.words(),
    });
    facts.extend(around.duration_ms.map(words::took));
    facts
}

/// The tokens of a turn that ends with a message, and its requests.
pub(super) fn requests<'a>(message: &Message, around: &'a Around) -> (Option<Usage>, Cow<'a, [TurnRequest]>) {
    let usage = message.metadata.as_ref().and_then(|metadata| metadata.get("usage"));
    let usage: Option<Usage> = usage.and_then(|usage| serde_json::from_value(usage.clone()).ok());
    // A message that says itself what it took is one request.
    let own = usage.filter(|_| around.requests.is_empty()).map(|usage| TurnRequest {
        model: message.noted("model").map(str::to_owned),
        at: message.noted("timestamp").and_then(|at| at.parse().ok()),
        usage,
        cost: None,
    });
    let requests = own.map_or(Cow::Borrowed(&around.requests[..]), |own| Cow::Owned(vec![own]));
    (usage.or(around.usage), requests)
}

/// The way to the parts that a page has no room for.
fn rest_of(message: &Message, from: usize, look: &Look<'_>) -> Markup {
    let left = message.parts.len() - from;
    html! {
        p.pager {
            (words::plural(left, "part")) " more of this message. "
            @if let super::Medium::Page(session) = look.medium {
                a.link href={ (session) "?message=" (text::path_segment(&message.id)) "&part=" (from) } { "Go on reading" }
            }
        }
    }
}

/// What neighbouring parts of one kind share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    None,
    Tools,
    Files,
    Sources,
}

/// The parts of a message as they are added.
struct Body {
    html: String,
    group: Group,
}

impl Body {
    fn push(&mut self, group: Group, part: Markup) {
        if part.0.is_empty() {
            return;
        }
        if group != self.group {
            self.close();
            self.html.push_str(match group {
                Group::None => "",
                Group::Tools => "<div class=\"tools\">",
                Group::Files => "<div class=\"files\">",
                Group::Sources => "<ul class=\"sources\" aria-label=\"Sources\">",
            });
            self.group = group;
        }
        self.html.push_str(&part.0);
    }

    /// A further response of the model begins.
    fn step(&mut self) {
        self.close();
        if !self.html.ends_with(STEP) {
            self.html.push_str(STEP);
        }
    }

    fn is_blank(&self) -> bool {
        self.html.is_empty()
    }

    fn close(&mut self) {
        self.html.push_str(match self.group {
            Group::None => "",
            Group::Tools | Group::Files => "</div>",
            Group::Sources => "</ul>",
        });
        self.group = Group::None;
    }

    fn finish(mut self) -> String {
        self.close();
        if self.html.ends_with(STEP) {
            self.html.truncate(self.html.len() - STEP.len());
        }
        self.html
    }
}

const STEP: &str = "<hr class=\"step\">";
