//! A session as Markdown: prompts quoted, answers as they were written, calls folded.
//!
//! It is read by other programs: raw HTML becomes text and pictures become links, as on a page.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;

use pulldown_cmark::{Event, Options, Parser, Tag};
use scrollback::model::{Display, Message, Part, Role, ToolPart};
use scrollback::session::{Branch, Session};
use scrollback::view::Conversation;
use scrollback::view::dividers;
use scrollback::view::listing;
use scrollback::view::tool_view::{self, Ending, Sign, ToolView, attached_name, ending, result_text};
use serde_json::Value;

use super::{Document, Error, facts};
use crate::render::FILE_NESTED;
use crate::render::{MARKDOWN_LIMIT_BYTES, text, words};
use crate::transcript::{FILE_NESTED_MESSAGES, MAX_DEPTH, calls_of_sides, sides};

/// More of one output is cut: nobody pastes it into an issue.
const OUTPUT_LIMIT_BYTES: usize = 64 * 1024;

/// Writes the session as Markdown.
pub fn write(document: &Document<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let mut row = document.session.row()?;
    if let Some(summary) = listing::summary_elsewhere(document.session) {
        row.title = summary;
    }
    writeln!(out, "# {}\n", inline(&row.title))?;
    for (name, fact) in facts(&row, document.zone) {
        writeln!(out, "- {name}: {}", inline(&fact))?;
    }
    let nested_left = Cell::new(FILE_NESTED);
    for (at, head) in document.heads.iter().enumerate() {
        if document.heads.len() > 1 {
            let name = if at == 0 { "The newest branch" } else { "Another branch" };
            writeln!(out, "\n---\n\n# {name}, up to {}", inline(&text::short_id(&head.id())))?;
        }
        let writer = Writer { document, session: document.session, depth: 0, nested_left: &nested_left };
        writer.branch(&document.session.branch(*head), out)?;
    }
    Ok(())
}

/// Writes a session, or one that a call of it started.
struct Writer<'d> {
    document: &'d Document<'d>,
    session: &'d Session,
    /// Conversations around this one.
    depth: u8,
    /// How many further ones are written.
    nested_left: &'d Cell<usize>,
}

impl Writer<'_> {
    fn branch(&self, branch: &Branch<'_>, out: &mut dyn Write) -> Result<(), Error> {
        let conversation = Conversation::new(branch);
        let most = if self.depth == 0 { usize::MAX } else { FILE_NESTED_MESSAGES };
        let range = conversation.len().saturating_sub(most)..conversation.len();
        let sides = if self.depth == 0 { sides(self.session, &conversation, range.clone()) } else { HashMap::new() };
        for (at, message) in range.clone().zip(conversation.messages(range)) {
            self.message(&message?, sides.get(&at).map(Vec::as_slice).unwrap_or_default(), out)?;
        }
        Ok(())
    }

    fn message(&self, message: &Message, sides: &[Branch<'_>], out: &mut dyn Write) -> Result<(), Error> {
        let author = match (message.role, message.author()) {
            (_, "you") => "You",
            (Role::System, "system") => "System",
            (Role::Assistant, "assistant") => crate::render::icon::agent_name(self.session.dialect().name()),
            (_, author) => author,
        };
        let at = message.noted("timestamp").and_then(|at| at.parse().ok());
        let when = at.map(|at| format!(" · {}", words::day_and_time(at, self.document.zone))).unwrap_or_default();
        let mut body = Vec::new();
        let display = message.display();
        if let Some(display) = &display {
            writeln!(body, "\n{}", displayed(display))?;
        }
        let started = calls_of_sides(message, sides);
        for (at, part) in message.parts.iter().enumerate() {
            if display.is_some() && matches!(part, Part::Text(_)) {
                continue;
            }
            if let Part::Tool(call) = part {
                let side = started.get(call.call_id.as_str()).and_then(|side| sides.get(*side));
                call_to(call, &self.nested(call, side)?, &mut body)?;
                continue;
            }
            part_to(message, at, part, &mut body)?;
        }
        let is_unnamed = |side: &usize| !started.values().any(|started| started == side);
        for side in (0..sides.len()).filter(is_unnamed) {
            folded("A conversation beside this one", &self.inside(self.session, &sides[side])?, &mut body)?;
        }
        if !body.is_empty() {
            if !message.parts.iter().all(dividers::is_alone) || display.is_some() {
                // Inside of a call, a heading would end up in the outline of the whole.
                let (before, after) = if self.depth == 0 { ("## ", "") } else { ("**", "**") };
                writeln!(out, "\n{before}{}{when}{after}", inline(author))?;
            }
            out.write_all(&body)?;
        }
        Ok(())
    }

    /// The conversation that a call started: in the same file, or a session of its own.
    fn nested(&self, call: &ToolPart, side: Option<&Branch<'_>>) -> Result<String, Error> {
        let ToolView::SubAgent(agent) = ToolView::of(call) else { return Ok(String::new()) };
        if let Some(side) = side {
            return self.inside(self.session, side);
        }
        let found = self.document.sub_agents.find(&self.session.id().0, &call.call_id, agent.session);
        // One that is gone by now is not there.
        let Some(Ok(session)) = found.map(|source| self.document.sub_agents.open(&source)) else {
            return Ok(String::new());
        };
        match session.head() {
            Some(head) => self.inside(&session, &session.branch(head)),
            None => Ok(String::new()),
        }
    }

    fn inside(&self, session: &Session, branch: &Branch<'_>) -> Result<String, Error> {
        if self.depth >= MAX_DEPTH || self.nested_left.get() == 0 {
            return Ok(String::new());
        }
        self.nested_left.set(self.nested_left.get() - 1);
        let mut out = Vec::new();
        Writer { session, depth: self.depth + 1, ..*self }.branch(branch, &mut out)?;
        Ok(String::from_utf8_lossy(&out).trim_matches('\n').to_owned())
    }
}

fn part_to(message: &Message, at: usize, part: &Part, out: &mut Vec<u8>) -> Result<(), Error> {
    match part {
        Part::Text(text) if text.text.trim().is_empty() => {}
        Part::Text(text) if message.role == Role::User => writeln!(out, "\n{}", quoted(&text.text))?,
        Part::Text(text) if dividers::is_summarized(&text.text, &message.parts[at + 1..]) => {}
        Part::Text(text) => writeln!(out, "\n{}", harmless(&text.text))?,
        Part::Reasoning(thought) if thought.text.trim().is_empty() => {}
        Part::Reasoning(thought) => folded("Thinking", &harmless(&thought.text), out)?,
        Part::Tool(call) => call_to(call, "", out)?,
        Part::File(file) => {
            let name = attached_name(&message.parts, at);
            writeln!(out, "\n*File: {} ({})*", inline(name), inline(&file.media_type))?;
        }
        Part::ReasoningFile(file) => writeln!(out, "\n*File: {}*", inline(&file.media_type))?,
        Part::SourceUrl(source) => {
            let title = inline(source.title.as_deref().unwrap_or(&source.url));
            match text::web_address(&source.url) {
                Some(url) => writeln!(out, "\n- [{title}](<{}>)", url.replace(['<', '>'], ""))?,
                None => writeln!(out, "\n- {title}")?,
            }
        }
        Part::SourceDocument(source) => writeln!(out, "\n- {}", inline(&source.title))?,
        Part::Custom(_) | Part::StepStart | Part::Other(_) => {}
        Part::Steering(steering) => {
            for text in steering.parts.iter().filter_map(Part::as_text) {
                writeln!(out, "\n{}", quoted(text))?;
            }
        }
        Part::Data(data) => {
            let field = |key: &str| data.data.get(key).and_then(Value::as_str).unwrap_or_default();
            match data.kind.as_str() {
                "compaction" => {
                    writeln!(out, "\n---\n\n*Compacted: from here on the model sees a summary.*")?;
                    folded("Summary", &harmless(field("summary")), out)?;
                }
                "rewind" => writeln!(out, "\n---\n\n*Went back.* {}", inline(field("reason")))?,
                "restore" => writeln!(out, "\n---\n\n*Files were put back.*")?,
                "error" if field("kind") == "interrupted" => writeln!(out, "\n*Stopped by a person.*")?,
                "error" => writeln!(out, "\n**Error:** {}", inline(field("text")))?,
                "attachment" => writeln!(out, "\n*File: {}*", inline(field("filename")))?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// A call: one line that opens. `nested` is the conversation that it started.
fn call_to(call: &ToolPart, nested: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let view = ToolView::of(call);
    let argument = match &view {
        ToolView::Shell(run) => run.command.to_string(),
        ToolView::Change(changes) => changes.files.iter().map(|file| file.path).collect::<Vec<_>>().join(", "),
        ToolView::SubAgent(agent) => agent.task.to_owned(),
        ToolView::Todos { .. } => String::new(),
        ToolView::Plan { .. } | ToolView::Questions { .. } | ToolView::Other => {
            tool_view::summary(call.input(), |path| path).unwrap_or_default()
        }
    };
    let ended = match ending(call) {
        Ending::Ok => "",
        other => other.name(),
    };
    let ended = if ended.is_empty() { String::new() } else { format!(" · {ended}") };
    let summary = format!("<code>{}</code> {}{ended}", in_tag(&call.name), in_tag(&text::brief(&argument, 160)));
    let error = if let scrollback::ToolState::OutputError { error_text, .. } = &call.state { error_text } else { "" };
    let body = match &view {
        ToolView::Shell(run) => fenced("console", &format!("$ {}\n{}", run.command, text::shown(cut(&run.output)))),
        ToolView::Change(changes) => {
            let mut lines = String::new();
            for line in changes.files.iter().flat_map(|file| &file.hunks).flat_map(|hunk| &hunk.lines) {
                let sign = match line.sign {
                    Sign::Added => '+',
                    Sign::Removed => '-',
                    Sign::Context => ' ',
                };
                lines.push(sign);
                lines.push_str(line.text);
                lines.push('\n');
            }
            fenced("diff", &format!("{}{error}", cut(&lines)))
        }
        ToolView::Todos { items } => {
            let items = items.iter().map(|item| {
                format!("- [{}] {}", if item.status.name() == "completed" { "x" } else { " " }, inline(item.text))
            });
            items.collect::<Vec<_>>().join("\n")
        }
        ToolView::Plan { text } => harmless(text),
        ToolView::SubAgent(_) | ToolView::Questions { .. } | ToolView::Other => {
            let result = call.output().map(result_text).unwrap_or_default();
            fenced("", &format!("{}{error}", text::shown(cut(&result))))
        }
    };
    let nested = if nested.is_empty() { String::new() } else { format!("{nested}\n\n") };
    writeln!(out, "\n<details><summary>{summary}</summary>\n\n{nested}{body}\n\n</details>")?;
    Ok(())
}

fn displayed(display: &Display) -> String {
    match display {
        Display::Typed { text } | Display::Command { text } => quoted(text),
        Display::Shell { text, output, .. } => fenced("console", &format!("$ {text}\n{}", cut(output))),
        Display::Output { text, errors } => fenced("", &format!("{}{}", cut(text), cut(errors))),
        Display::Notification { text } => format!("*{}*", inline(text)),
        Display::Interrupted => "*Stopped by a person.*".to_owned(),
    }
}

fn folded(summary: &str, body: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    writeln!(out, "\n<details><summary>{summary}</summary>\n\n{body}\n\n</details>")?;
    Ok(())
}

/// Text in one line of which nothing is Markdown or HTML.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in text::line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '`' | '*' | '_' | '[' | ']' | '!' | '\\' | '|' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Text in one line inside of HTML, where nothing is Markdown.
fn in_tag(text: &str) -> String {
    let mut out = String::new();
    text::push(&mut out, &text::line(text));
    out
}

/// What a person typed, line by line.
fn quoted(text: &str) -> String {
    let escaped = text::shown(text.trim_end()).replace('&', "&amp;").replace('<', "&lt;").replace("![", "!\\[");
    escaped.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Markdown in which raw HTML is text and a picture is a link. What is too long to be parsed is code as a whole.
fn harmless(source: &str) -> String {
    let source = text::shown(source);
    if source.len() > MARKDOWN_LIMIT_BYTES {
        return fenced("", &source);
    }
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    for (event, range) in
        Parser::new_ext(&source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).into_offset_iter()
    {
        if range.start < copied {
            continue;
        }
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                out.push_str(&source[copied..range.start]);
                out.push_str(&source[range.clone()].replace('<', "&lt;"));
                copied = range.end;
            }
            Event::Start(Tag::Image { .. }) if source[range.clone()].starts_with('!') => {
                out.push_str(&source[copied..range.start]);
                copied = range.start + 1;
            }
            _ => {}
        }
    }
    out.push_str(&source[copied..]);
    out
}

/// A block of code whose fence is longer than any in it.
fn fenced(language: &str, content: &str) -> String {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", content.trim_end())
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(OUTPUT_LIMIT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_be_parsed_is_code() {
        let long = "<script>1</script> **x** ```\n".repeat(MARKDOWN_LIMIT_BYTES / 20);
        let code = harmless(&long);
        assert!(code.starts_with("````\n<script>") && code.ends_with("```\n````"), "{}", &code[..80]);
    }

    #[test]
    fn raw_html_is_text_and_a_picture_is_a_link() {
        assert_eq!(
            harmless("a <b>x</b>\n\n<script>1</script>\n\n![p](https://x.example/i.png) `<i>`"),
            "a &lt;b>x&lt;/b>\n\n&lt;script>1&lt;/script>\n\n[p](https://x.example/i.png) `<i>`"
        );
        assert_eq!(quoted("a\n<b> ![x](y)"), "> a\n> &lt;b> !\\[x](y)");
        assert_eq!(inline("a\nb <i> *c* [d]"), "a b &lt;i&gt; \\*c\\* \\[d\\]");
        assert_eq!(fenced("", "x ``` y"), "````\nx ``` y\n````");
    }
}
