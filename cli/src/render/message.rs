//! A message: its header and its parts.

use scrollback::model::{DataPart, Display, FilePart, Message, Part, Role, ToolPart, Usage, json};
use scrollback::view::dividers;
use scrollback::view::tool_view::{self, Ending, SubAgent, ToolView, data_url_bytes};
use serde_json::Value;

use super::fold::{self, Fold};
use super::reaction;
use super::short_ids::ShortIds;
use super::sub_agents::SubAgents;
use super::todos::Todos;
use super::tool::{self, CallLook};
use super::{clock, divider};
use crate::ctx::Ctx;
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown, typed};

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
    pub(crate) todos: Todos,
    /// Reads the last words of sub-agents, where that is wanted.
    pub(crate) sub_agents: Option<&'a SubAgents>,
    /// Whether results may still come.
    pub(crate) live: bool,
    /// The directory that the current message was written in.
    cwd: Option<String>,
}

/// What is known about a message beside its content.
#[derive(Default)]
pub(crate) struct Around {
    /// Lines under it, such as reactions and attached files.
    pub(crate) under: Vec<String>,
    /// How long its turn took.
    pub(crate) duration_ms: Option<u64>,
    /// What its turn cost, where the message does not say so.
    pub(crate) usage: Option<Usage>,
    /// Records whose dividers are shown elsewhere.
    pub(crate) moved: Vec<String>,
}

/// What the texts of a message are, beside what somebody wrote.
pub(crate) struct Texts {
    /// People see its [`Display`] instead.
    pub(crate) are_displayed: bool,
    /// The position of the one that is an error.
    pub(crate) failure: Option<usize>,
}

impl Texts {
    pub(crate) fn of(message: &Message) -> Texts {
        Texts { are_displayed: message.display().is_some(), failure: dividers::error_text(message) }
    }
}

/// Whether a message is shown with its author: not what stands for itself, such as an interruption.
pub(crate) fn has_header(message: &Message, display: Option<&Display>, body: &str) -> bool {
    match display {
        // It follows the command that printed it.
        Some(Display::Output { .. }) => false,
        _ if message.parts.iter().all(dividers::is_alone) && !message.parts.is_empty() => false,
        _ => message.role != Role::System || !body.is_empty(),
    }
}

/// Thinking is folded to this many lines.
const THINKING_LINES: usize = 6;

impl<'a> Renderer<'a> {
    pub(crate) fn new(ctx: &'a Ctx, detail: Detail, ids: &'a ShortIds<'a>) -> Renderer<'a> {
        Renderer::within(ctx, detail, ids, ctx.prose())
    }

    /// Renders in a narrower space.
    pub(crate) fn within(ctx: &'a Ctx, detail: Detail, ids: &'a ShortIds<'a>, look: Look) -> Renderer<'a> {
        Renderer { ctx, look, detail, ids, todos: Todos::default(), sub_agents: None, live: false, cwd: None }
    }

    /// Renders a message.
    pub(crate) fn message(&mut self, message: &Message, around: &Around) -> String {
        let display = message.display();
        self.cwd = message.noted("cwd").map(str::to_owned);
        let between = message.parts.iter().take_while(|part| dividers::is_before_message(part)).count();
        let is_moved = |part: &Part| matches!(part, Part::Data(data) if around.moved.iter().any(|moved| data.data["record"] == **moved));
        let before = message.parts[..between].iter().filter(|part| !is_moved(part));
        let mut out: String = before.map(|part| self.part(part, message.role) + "\n").collect();
        let mut body = display.as_ref().map(|display| self.display(display)).unwrap_or_default();
        let (mut after_tool, texts) = (false, Texts::of(message));
        for (at, part) in message.parts.iter().enumerate().skip(between) {
            let text = if is_moved(part) { String::new() } else { self.part_of(message, at, &texts) };
            if text.is_empty() {
                continue;
            }
            // An empty line before each part, except between tool calls.
            let is_tool = matches!(part, Part::Tool(_));
            let stands_alone = !is_tool || !after_tool;
            if stands_alone && !body.is_empty() && !body.ends_with("\n\n") {
                body.push('\n');
            }
            after_tool = is_tool;
            body += &text;
        }
        let under: String = around.under.iter().map(|line| self.aside(line)).collect();
        let todos = self.todos(message);
        for block in [under, todos].into_iter().filter(|block| !block.is_empty()) {
            if !body.is_empty() && !body.ends_with("\n\n") {
                body.push('\n');
            }
            body += &block;
        }
        let has_header = has_header(message, display.as_ref(), &body);
        if has_header && body.is_empty() && message.role == Role::User && !self.live {
            body = self.aside("(empty)");
        }
        if has_header {
            out += &(self.header(message, around) + "\n");
        }
        if body.is_empty() && !has_header {
            return out;
        }
        out + body.trim_start_matches('\n') + "\n"
    }

    /// The author, the time, the id, and what the turn cost.
    pub(crate) fn header(&self, message: &Message, around: &Around) -> String {
        let paint = self.paint();
        let author = format!("▌ {}", message.author());
        let author = match message.role {
            Role::User => paint.cyan(&author),
            Role::Assistant => paint.green(&author),
            Role::System => paint.yellow(&author),
        };
        let when = message.noted("timestamp").and_then(|at| at.parse().ok());
        let when = when.map(|at| clock::stamp(at, &self.ctx.zone));
        let id = self.ids.short(&message.id).to_owned();
        let usage = message.metadata.as_ref().and_then(|metadata| metadata.get("usage"));
        let usage = usage.and_then(|usage| serde_json::from_value(usage.clone()).ok()).or(around.usage);
        let about = when.into_iter().chain([id]).chain(thinking_mode(message)).chain(usage.and_then(tokens));
        let about = about.chain(around.duration_ms.map(clock::span)).chain(cut_off(message));
        format!("{author}  {}\n", paint.dim(&about.collect::<Vec<_>>().join(" · ")))
    }

    /// A part as it is shown in its message: empty if something else shows it.
    pub(crate) fn part_of(&mut self, message: &Message, at: usize, texts: &Texts) -> String {
        match &message.parts[at] {
            // What the model sees instead.
            Part::Text(_) if texts.are_displayed => String::new(),
            Part::Text(text) if dividers::is_summarized(&text.text, &message.parts[at + 1..]) => String::new(),
            Part::Text(text) if texts.failure == Some(at) => {
                let error = serde_json::json!({"text": text.text});
                divider::of_part("error", &error, self.ids, &self.look, self.detail).unwrap_or_default()
            }
            Part::File(file) => self.file(file, tool_view::attached_name(&message.parts, at)),
            part => self.part(part, message.role),
        }
    }

    pub(crate) fn part(&mut self, part: &Part, role: Role) -> String {
        match part {
            // Only a model writes Markdown by design.
            Part::Text(text) if role == Role::User => self.typed(&text.text),
            Part::Text(text) => self.prose(&text.text),
            Part::Reasoning(reasoning) => self.thinking(&reasoning.text),
            Part::Tool(call) => self.call(call),
            Part::File(file) => self.file(file, tool_view::attached_name(std::slice::from_ref(part), 0)),
            Part::ReasoningFile(file) => {
                self.attached("", &file.media_type, data_url_bytes(&file.url).map(Value::from).as_ref())
            }
            Part::SourceUrl(source) => self.source(source.title.as_deref().unwrap_or("source"), &source.url),
            Part::SourceDocument(source) => {
                self.source(&source.title, source.filename.as_deref().unwrap_or(&source.media_type))
            }
            Part::Custom(custom) => self.aside(&format!("[{}]", custom.kind)),
            Part::Steering(steering) => steering.parts.iter().map(|part| self.part(part, Role::User)).collect(),
            Part::StepStart => String::new(),
            Part::Data(data) => self.data(data),
            Part::Other(value) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("?");
                self.aside(&format!("[part of unknown type {kind:?}; --json shows it]"))
            }
        }
    }

    fn call(&mut self, call: &ToolPart) -> String {
        let how = CallLook { look: self.look, full: self.detail.full, cwd: self.cwd.as_deref(), live: self.live };
        match ToolView::of(call) {
            // The list is what it was.
            ToolView::Todos { .. }
                if matches!(tool_view::ending(call), Ending::Failed | Ending::Denied | Ending::Interrupted) =>
            {
                tool::head(call, "", &[], &how) + &tool::failure(call, &how)
            }
            ToolView::Todos { items } => {
                let list = self.todos.update(&items, self.detail.full, Paint { colour: self.look.colour });
                tool::head(call, "", &[], &how) + &list
            }
            ToolView::SubAgent(agent) => {
                let noted = agent.session.map(str::to_owned);
                let session = noted.or_else(|| self.sub_agents?.started_by(&call.call_id));
                let words = session.as_deref().and_then(|session| self.sub_agents?.last_words(session));
                // It may have been removed since, or with the session that this one was copied from.
                let is_gone = |session: &str| self.sub_agents.is_some_and(|all| all.is_gone(session));
                let gone =
                    session.as_deref().is_some_and(is_gone).then(|| self.aside("  └ sub-agent: its session is gone"));
                let agent = SubAgent { session: session.as_deref().filter(|_| gone.is_none()), ..agent };
                tool::sub_agent(call, &agent, words.as_deref(), &how) + &gone.unwrap_or_default()
            }
            view => tool::render(call, &view, &how),
        }
    }

    fn data(&self, data: &DataPart) -> String {
        let text = |key: &str| data.data.get(key).and_then(Value::as_str).unwrap_or_default();
        match data.kind.as_str() {
            "attachment" if json::is_object(&data.data) => {
                self.attached(text("filename"), text("mime_type"), data.data.get("size"))
            }
            "attachment" => self.attached(data.data.as_str().unwrap_or_default(), "", None),
            "reaction" => self.aside(&reaction::alone(&data.data, self.ids)),
            kind => divider::of_part(kind, &data.data, self.ids, &self.look, self.detail)
                .unwrap_or_else(|| self.aside(&format!("[data: {kind}]"))),
        }
    }

    /// What a person typed, ran or saw.
    pub(crate) fn display(&self, display: &Display) -> String {
        match display {
            Display::Typed { text } => self.typed(text),
            Display::Command { text } => self.typed(text),
            Display::Shell { text, output, exit_code } => {
                let command = self.printed(&format!("! {text}"), |line| line.to_owned());
                let failed = exit_code.map(|code| format!("✗ exit code {code}")).unwrap_or_default();
                let output = self.printed(output, |line| self.paint().dim(line))
                    + &self.printed(&failed, |line| self.paint().red(line));
                if output.is_empty() { command } else { format!("{command}\n{output}") }
            }
            Display::Output { text, errors } => {
                self.printed(text, |line| self.paint().dim(line)) + &self.printed(errors, |line| self.paint().red(line))
            }
            Display::Notification { text } => self.printed(text, |line| self.paint().dim(line)),
            Display::Interrupted => String::new(),
        }
    }

    /// Lines as a program printed them, as wide as the window.
    fn printed(&self, text: &str, style: impl Fn(&str) -> String) -> String {
        let (first, last) = tool::OUTPUT_LINES;
        let indented = fold::printed(text, Fold::unless(self.detail.full, first, last), &self.look, style);
        outdent(&indented)
    }

    /// What a person typed, line by line.
    fn typed(&self, text: &str) -> String {
        typed::render(text, &self.look.beside(2), "  ")
    }

    fn prose(&self, text: &str) -> String {
        let inner = self.look.beside(2);
        indent(&markdown::render(text, &inner))
    }

    fn thinking(&self, text: &str) -> String {
        let paint = self.paint();
        let inner = Look { colour: false, ..self.look.beside(4) };
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

    fn file(&self, file: &FilePart, name: &str) -> String {
        let ours = file.provider_metadata.as_ref().and_then(|metadata| metadata.get("scrollback")?.get("size"));
        let size = ours.cloned().or_else(|| Some(data_url_bytes(&file.url)?.into()));
        self.attached(name, &file.media_type, size.as_ref())
    }

    fn attached(&self, name: &str, media_type: &str, size: Option<&Value>) -> String {
        let size = match size {
            Some(Value::String(size)) => size.clone(),
            Some(Value::Number(bytes)) => fold::size(bytes.as_u64().unwrap_or(0) as usize),
            _ => String::new(),
        };
        let unnamed = if media_type.starts_with("image/") { "image" } else { "file" };
        let known: Vec<&str> =
            [media_type, &size].into_iter().filter(|fact| !matches!(*fact, "" | "unknown")).collect();
        let name = if name.is_empty() { unnamed } else { name };
        let about = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        self.aside(&format!("⎘ {name}{about}"))
    }

    fn source(&self, title: &str, place: &str) -> String {
        self.aside(&format!("↗ {title}: {place}"))
    }

    fn aside(&self, text: &str) -> String {
        format!("  {}\n", self.paint().dim(text))
    }

    /// The task list of a message, if it changed.
    pub(crate) fn todos(&mut self, message: &Message) -> String {
        let Some(list) = tool_view::todo_list(message).filter(|list| !list.is_empty()) else { return String::new() };
        let items: Vec<_> = list.iter().filter_map(tool_view::todo).collect();
        outdent(&self.todos.update(&items, self.detail.full, self.paint()))
    }

    fn paint(&self) -> Paint {
        Paint { colour: self.look.colour }
    }
}

/// The token counts of a turn that are known.
fn tokens(usage: Usage) -> Option<String> {
    let count = |count: u64| if count < 10_000 { count.to_string() } else { format!("{:.1}k", count as f64 / 1e3) };
    let input = usage.input.map(|input| format!("{} in", count(input)));
    let output = usage.output.map(|output| format!("{} out", count(output)));
    let known: Vec<String> = input.into_iter().chain(output).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// What is not under a call is two columns further left.
fn outdent(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect()
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
