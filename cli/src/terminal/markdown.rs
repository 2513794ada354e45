//! Renders Markdown for a terminal, event by event, without recursion.
//!
//! Raw HTML is shown as text, links with their address, images by their description.
//! Without colour, the marks of code and strikethrough stay.

use std::mem::take;

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};
use scrollback_web::render::MARKDOWN_LIMIT_BYTES;

use super::inline::Inline;
use super::page::{Margin, Page};
use super::styled::Styled;
use super::table::Table;
use super::{Look, clean, highlight, width};

/// The Markdown that agents write.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The parser's time grows with depth times lines: a text with deeper nesting is shown unrendered.
const MAX_MARKERS_PER_LINE: usize = 256;

/// Renders Markdown as lines that end with a newline.
///
/// No line is wider than `look.width` (code: `look.code`), or [`super::MIN_COLUMNS`] if that is more.
pub(crate) fn render(source: &str, look: &Look) -> String {
    let is_deep = |line| markers(line) > MAX_MARKERS_PER_LINE;
    if source.len() > MARKDOWN_LIMIT_BYTES || source.split(['\n', '\r']).any(is_deep) {
        let mut page = Page::new(look);
        // Line by line: what is known of a line takes more memory than the line.
        for line in without_last_line_end(source).split('\n') {
            page.code(&Styled::lines(line, Style::new()));
        }
        return page.finish();
    }
    let mut writer = Writer {
        page: Page::new(look),
        look: *look,
        inline: Inline::new(look.colour),
        lists: Vec::new(),
        literal: String::new(),
        language: None,
        table: None,
    };
    for event in Parser::new_ext(source, OPTIONS) {
        writer.event(event);
    }
    writer.write_text();
    writer.page.finish()
}

struct Writer<'a> {
    page: Page,
    look: Look,
    inline: Inline<'a>,
    /// Open lists: the next number, if they have numbers.
    lists: Vec<Option<u64>>,
    /// The code or HTML of the open block.
    literal: String,
    /// The language of the open code block.
    language: Option<CowStr<'a>>,
    table: Option<Table>,
}

impl<'a> Writer<'a> {
    fn event(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => {
                if let Some(block) = self.inline.start(tag) {
                    self.start_block(block);
                }
            }
            Event::End(tag) => {
                if let Some(block) = self.inline.end(tag) {
                    self.end_block(block);
                }
            }
            Event::Text(text) if self.language.is_some() => self.literal.push_str(&text),
            Event::Text(text) | Event::InlineHtml(text) => self.inline.push(&text),
            Event::Html(html) => self.literal.push_str(&html),
            Event::Code(code) => self.inline.push_code(&code),
            Event::SoftBreak => self.inline.push(" "),
            Event::HardBreak => self.inline.push_line_end(),
            Event::FootnoteReference(label) => self.inline.push(&format!("[^{label}]")),
            Event::TaskListMarker(done) => self.inline.push(if done { "[x] " } else { "[ ] " }),
            Event::Rule => self.write_rule(),
            // Not enabled in OPTIONS.
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.push(&text),
        }
    }

    fn start_block(&mut self, block: Tag<'a>) {
        // The text of a tight list item is not a paragraph; it ends where a block starts.
        self.write_text();
        match block {
            Tag::Heading { level, .. } => {
                self.page.open(Margin::hanging(format!("{} ", "#".repeat(level as usize))));
                self.inline.start_strong();
            }
            Tag::BlockQuote(_) => self.page.open(Margin::bar("│ ")),
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) => self.language = Some(language),
            Tag::CodeBlock(CodeBlockKind::Indented) => self.language = Some(CowStr::Borrowed("")),
            Tag::List(first) => self.lists.push(first),
            Tag::Item => {
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => "• ".to_owned(),
                };
                self.page.open(Margin::hanging(marker));
            }
            Tag::FootnoteDefinition(label) => self.start_footnote(&label),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::TableHead | Tag::TableRow => {
                if block == Tag::TableHead {
                    self.inline.start_strong();
                }
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            _ => {}
        }
    }

    fn end_block(&mut self, block: TagEnd) {
        if block == TagEnd::TableCell {
            let cell = self.inline.take();
            if let Some(table) = &mut self.table {
                table.push_cell(cell);
            }
            return;
        }
        self.write_text();
        match block {
            TagEnd::Heading(_) => {
                self.inline.end_strong();
                self.page.close();
            }
            TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition => self.page.close(),
            TagEnd::Item => return self.page.close(),
            TagEnd::TableRow => return,
            TagEnd::List(_) => {
                self.lists.pop();
                if !self.lists.is_empty() {
                    return;
                }
            }
            TagEnd::CodeBlock => self.write_code(),
            TagEnd::HtmlBlock => {
                let html = take(&mut self.literal);
                self.page.code(&Styled::lines(without_last_line_end(&html), Style::new().dimmed()));
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    table.write_to(&mut self.page);
                }
            }
            TagEnd::TableHead => {
                self.inline.end_strong();
                return;
            }
            _ => {}
        }
        self.page.end_block();
    }

    fn start_footnote(&mut self, label: &str) {
        let label = format!("[^{}]: ", clean::line(label));
        if width::of(&label) <= Margin::MAX_COLUMNS {
            self.page.open(Margin::hanging(label));
        } else {
            self.inline.push(&label);
            self.write_text();
            self.page.open(Margin::bar("  "));
        }
    }

    fn write_text(&mut self) {
        let text = self.inline.take();
        self.page.prose(&text);
    }

    fn write_code(&mut self) {
        let language = self.language.take().unwrap_or(CowStr::Borrowed(""));
        let code = take(&mut self.literal);
        let mut code = Styled::lines(without_last_line_end(&code), Style::new());
        if self.look.colour
            && let Some(runs) = highlight::runs(code.as_str(), &language)
        {
            code.paint(runs);
        }
        self.page.open(Margin::bar("  "));
        self.page.code(&code);
        self.page.close();
    }

    fn write_rule(&mut self) {
        self.write_text();
        let mut rule = Styled::default();
        rule.push(&"─".repeat(self.page.room()), Style::new().dimmed());
        self.page.prose(&rule);
        self.page.end_block();
    }
}

/// Counts the quote and list markers that a line starts with.
fn markers(line: &str) -> usize {
    let in_marker = |c: char| matches!(c, ' ' | '\t' | '>' | '-' | '+' | '*' | '.' | ')') || c.is_ascii_digit();
    let lead = &line[..line.find(|c| !in_marker(c)).unwrap_or(line.len())];
    let ends_marker = |pair: &&[u8]| matches!(pair, [b'-' | b'+' | b'*' | b'.' | b')', b' ' | b'\t']);
    lead.matches('>').count() + lead.as_bytes().windows(2).filter(ends_marker).count()
}

fn without_last_line_end(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}
