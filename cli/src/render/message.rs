//! A message: its header and its parts.

use scrollback::model::{DataPart, Display, Message, Part, Role, json};
use serde_json::Value;

use super::reaction::{self, Reaction};
use super::short_ids::ShortIds;
use super::{divider, tool};
use crate::ctx::Ctx;
use crate::render::clock;
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown};

/// How messages are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// Unfolds tool calls and thinking.
    pub(crate) full: bool,
}

/// Renders messages one after another, and remembers what need not be repeated.
pub(crate) struct Renderer<'a> {
    ctx: &'a Ctx,
    look: Look,
    detail: Detail,
    ids: &'a ShortIds<'a>,
    /// The task list that was shown last.
    pub(crate) todos: Option<Value>,
}

/// Thinking is folded to this many lines.
const THINKING_LINES: usize = 6;

impl<'a> Renderer<'a> {
    pub(crate) fn new(ctx: &'a Ctx, detail: Detail, ids: &'a ShortIds<'a>) -> Renderer<'a> {
        Renderer::within(ctx, detail, ids, ctx.prose())
    }

    /// Renders in a narrower space.
    pub(crate) fn within(ctx: &'a Ctx, detail: Detail, ids: &'a ShortIds<'a>, look: Look) -> Renderer<'a> {
        Renderer { ctx, look, detail, ids, todos: None }
    }

    /// Renders a message, with lines such as reactions under it.
    pub(crate) fn message(&mut self, message: &Message, under: &[String]) -> String {
        let display = display(message);
        let between = message.parts.iter().take_while(|part| divider::is_before_message(part)).count();
        let mut out: String = message.parts[..between].iter().map(|part| self.part(part) + "\n").collect();
        match &display {
            // It follows the command that printed it.
            Some(Display::Output { .. }) => {}
            _ if between == message.parts.len() && between > 0 => {}
            _ => out += &self.header(message),
        }
        let mut after_tool = false;
        let failure = failure(message);
        let shown = display.map(|display| self.display(&display)).unwrap_or_default();
        if !shown.is_empty() && !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
        out += &shown;
        for (at, part) in message.parts.iter().enumerate().skip(between) {
            let text = match part {
                // What the model sees instead.
                Part::Text(_) if !shown.is_empty() => String::new(),
                Part::Text(text) if failure == Some(at) => {
                    let error = serde_json::json!({"text": text.text});
                    divider::of_part("error", &error, self.ids, &self.look).unwrap_or_default()
                }
                part => self.part(part),
            };
            if text.is_empty() {
                continue;
            }
            // An empty line before each part, except between tool calls.
            let is_tool = matches!(part, Part::Tool(_));
            let stands_alone = !is_tool || !after_tool;
            if stands_alone && !out.ends_with("\n\n") {
                out.push('\n');
            }
            after_tool = is_tool;
            out += &text;
        }
        if !under.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
        out.extend(under.iter().map(|line| self.aside(line)));
        out += &self.todos(message);
        out.push('\n');
        out
    }

    /// The author, the time and the id.
    pub(crate) fn header(&self, message: &Message) -> String {
        let paint = self.paint();
        let metadata =
            |key: &str| message.metadata.as_ref().and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
        let author = format!("▌ {}", reaction::author(message));
        let author = match message.role {
            Role::User => paint.cyan(&author),
            Role::Assistant => paint.green(&author),
            Role::System => paint.yellow(&author),
        };
        let when = metadata("timestamp").and_then(|at| at.parse().ok()).map(|at| clock::stamp(at, &self.ctx.zone));
        let id = self.ids.short(&message.id).to_owned();
        let about: Vec<String> =
            when.into_iter().chain([id]).chain(thinking_mode(message)).chain(cut_off(message)).collect();
        format!("{author}  {}\n", paint.dim(&about.join(" · ")))
    }

    pub(crate) fn part(&self, part: &Part) -> String {
        match part {
            Part::Text(text) => self.prose(&text.text),
            Part::Reasoning(reasoning) => self.thinking(&reasoning.text),
            Part::Tool(call) if self.detail.full => tool::open(call, &self.look),
            Part::Tool(call) => tool::folded(call, &self.look),
            Part::File(file) => {
                let name = file.filename.as_deref().unwrap_or("file");
                let ours = file.provider_metadata.as_ref().and_then(|metadata| metadata.get("scrollback")?.get("size"));
                self.attached(name, &file.media_type, ours)
            }
            Part::ReasoningFile(file) => self.attached("file", &file.media_type, None),
            Part::SourceUrl(source) => self.source(source.title.as_deref().unwrap_or("source"), &source.url),
            Part::SourceDocument(source) => {
                self.source(&source.title, source.filename.as_deref().unwrap_or(&source.media_type))
            }
            Part::Custom(custom) => self.aside(&format!("[{}]", custom.kind)),
            Part::Steering(steering) => steering.parts.iter().map(|part| self.part(part)).collect(),
            Part::StepStart => String::new(),
            Part::Data(data) => self.data(data),
            Part::Other(value) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("?");
                self.aside(&format!("[part of unknown type {kind:?}; --json shows it]"))
            }
        }
    }

    fn data(&self, data: &DataPart) -> String {
        let text = |key: &str| data.data.get(key).and_then(Value::as_str).unwrap_or_default();
        match data.kind.as_str() {
            "attachment" if json::is_object(&data.data) => {
                self.attached(text("filename"), text("mime_type"), data.data.get("size"))
            }
            "attachment" => self.attached(data.data.as_str().unwrap_or_default(), "", None),
            "reaction" => self.aside(&Reaction::alone(&data.data, self.ids)),
            kind => divider::of_part(kind, &data.data, self.ids, &self.look)
                .unwrap_or_else(|| self.aside(&format!("[data: {kind}]"))),
        }
    }

    /// What a person typed, ran or saw.
    fn display(&self, display: &Display) -> String {
        match display {
            Display::Typed { text } => self.prose(text),
            Display::Command { text } => format!("  {}\n", clean::line(text)),
            Display::Shell { text, output } => {
                let command = self.printed(&format!("! {text}"), |line| line.to_owned());
                let output = self.printed(output, |line| self.paint().dim(line));
                if output.is_empty() { command } else { format!("{command}\n{output}") }
            }
            Display::Output { text, errors } => {
                self.printed(text, |line| self.paint().dim(line)) + &self.printed(errors, |line| self.paint().red(line))
            }
            Display::Notification { text } => self.printed(text, |line| self.paint().dim(line)),
            Display::Interrupted => String::new(),
        }
    }

    /// Lines as a program printed them.
    fn printed(&self, text: &str, style: impl Fn(&str) -> String) -> String {
        clean::text(text).trim_end().lines().map(|line| format!("  {}\n", style(line))).collect()
    }

    fn prose(&self, text: &str) -> String {
        let inner = Look { width: self.look.width.saturating_sub(2), ..self.look };
        indent(&markdown::render(text, &inner))
    }

    fn thinking(&self, text: &str) -> String {
        let paint = self.paint();
        let inner = Look { width: self.look.width.saturating_sub(4), colour: false };
        let rendered = markdown::render(text, &inner);
        let lines: Vec<&str> = rendered.lines().collect();
        let shown = if self.detail.full { lines.len() } else { THINKING_LINES };
        let mut out: String =
            lines.iter().take(shown).map(|line| format!("  {}\n", paint.dim(&format!("┊ {line}")))).collect();
        if lines.len() > shown {
            let more = format!("┊ … {} more lines of thinking (--full)", lines.len() - shown);
            out += &format!("  {}\n", paint.dim(&more));
        }
        out
    }

    fn attached(&self, name: &str, media_type: &str, size: Option<&Value>) -> String {
        let size = match size {
            Some(Value::String(size)) => size.clone(),
            Some(Value::Number(size)) => format!("{size} bytes"),
            _ => String::new(),
        };
        let known: Vec<&str> =
            [media_type, &size].into_iter().filter(|fact| !matches!(*fact, "" | "unknown")).collect();
        let name = if name.is_empty() { "file" } else { name };
        let about = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        self.aside(&format!("⎘ {name}{about}"))
    }

    fn source(&self, title: &str, place: &str) -> String {
        self.aside(&format!("↗ {title}: {place}"))
    }

    fn aside(&self, text: &str) -> String {
        format!("  {}\n", self.paint().dim(text))
    }

    /// The task list, if it changed.
    pub(crate) fn todos(&mut self, message: &Message) -> String {
        let todos = message.metadata.as_ref().and_then(|metadata| metadata.get("todos")).cloned();
        let (Some(todos), true) = (&todos, todos != self.todos && todos.is_some()) else { return String::new() };
        self.todos = Some(todos.clone());
        let item = |todo: &Value| {
            let text = todo.get("content").and_then(Value::as_str).unwrap_or_default();
            let paint = self.paint();
            match todo.get("status").and_then(Value::as_str) {
                Some("completed") => format!("  {} {}\n", paint.green("☑"), paint.dim(text)),
                Some("in_progress") => format!("  {} {}\n", paint.yellow("◐"), clean::line(text)),
                _ => format!("  ☐ {}\n", clean::line(text)),
            }
        };
        let list: String = todos.as_array().into_iter().flatten().map(item).collect();
        if list.is_empty() { list } else { format!("\n{list}") }
    }

    fn paint(&self) -> Paint {
        Paint { colour: self.look.colour }
    }
}

/// How people see a message whose text is what the model sees.
pub(crate) fn display(message: &Message) -> Option<Display> {
    let display = message.metadata.as_ref()?.get("display")?;
    serde_json::from_value(display.clone()).ok()
}

/// The position of the error text: the last text of a failed message, unless another part describes the error.
fn failure(message: &Message) -> Option<usize> {
    let failed = message.metadata.as_ref().is_some_and(|metadata| metadata.get("error") == Some(&Value::Bool(true)));
    let is_error = |part: &Part| matches!(part, Part::Data(data) if data.kind == "error");
    let last = message.parts.iter().rposition(|part| matches!(part, Part::Text(_)));
    last.filter(|_| failed && !message.parts.iter().any(is_error))
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") })
        .collect()
}

/// The thinking mode that the message sets.
fn thinking_mode(message: &Message) -> Option<String> {
    let thinking = message.metadata.as_ref()?.get("thinking")?;
    let level = thinking.get("level").and_then(Value::as_str).filter(|level| !level.is_empty());
    match (thinking.get("disabled").and_then(Value::as_bool), level) {
        (Some(true), _) => Some("thinking off".to_owned()),
        (_, level) => level.map(|level| format!("thinking {}", clean::line(level))),
    }
}

/// Whether the model did not complete the message.
fn cut_off(message: &Message) -> Option<String> {
    let is_marked = message.metadata.as_ref()?.get("interrupted")? == &Value::Bool(true);
    is_marked.then(|| "interrupted".to_owned())
}
