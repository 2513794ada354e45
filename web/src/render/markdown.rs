//! Markdown as HTML: raw HTML is text, a remote picture is a link, code has classes.
//!
//! Tags are written here event by event, without recursion; every text and address passes `render/text.rs`.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code;
use super::text::{self, push};

/// The Markdown that agents write.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The parser's time grows with depth times lines: a text with deeper nesting is shown unrendered.
const MAX_MARKERS_PER_LINE: usize = 256;

/// What is deeper in lists and quotes is not indented any more: it would leave the page.
const INDENTED: usize = 8;

/// Prose of a model. Its largest heading becomes `<h3>` below a message's `<h2>`, and the others follow.
pub fn prose(source: &str, message_level: u8) -> Markup {
    html! { div.prose dir="auto" { (markdown(source, message_level)) } }
}

/// What a person typed, as it was typed: only code between backticks is set as code, in a line or between lines.
pub fn typed(source: &str) -> Markup {
    let source = source.trim_matches('\n');
    let mut html = String::new();
    let mut rest = source;
    while let Some((before, language, code, after)) = fenced(rest) {
        push_paragraph(&mut html, before);
        html.push_str(&code::block(code, language).0);
        rest = after;
    }
    push_paragraph(&mut html, rest);
    html! { div class="prose typed" dir="auto" { (PreEscaped(html)) } }
}

/// The first block of code between lines of three backticks: what is before it, its language, the code, and what is after it.
fn fenced(source: &str) -> Option<(&str, &str, &str, &str)> {
    const FENCE: &str = "```";
    let is_line_start = |at: usize| at == 0 || source.as_bytes()[at - 1] == b'\n';
    let start = source.match_indices(FENCE).map(|(at, _)| at).find(|at| is_line_start(*at))?;
    let (language, body) = source[start + FENCE.len()..].split_once('\n')?;
    if language.contains('`') {
        return None;
    }
    let ends_line = |at: usize| body[at + FENCE.len()..].lines().next().is_none_or(|rest| rest.trim().is_empty());
    let is_end = |at: &usize| (*at == 0 || body.as_bytes()[at - 1] == b'\n') && ends_line(*at);
    let end = body.match_indices(FENCE).map(|(at, _)| at).find(is_end)?;
    let after = body[end..].split_once('\n').map_or("", |(_, after)| after);
    Some((&source[..start], language.trim(), body[..end].trim_end_matches('\n'), after))
}

fn push_paragraph(out: &mut String, source: &str) {
    let mut rest = source.trim_matches('\n');
    if rest.is_empty() {
        return;
    }
    out.push_str("<p>");
    while let Some(start) = rest.find('`') {
        let inside = &rest[start + 1..];
        let end = inside.find(['`', '\n']).filter(|end| *end > 0 && inside.as_bytes()[*end] == b'`');
        let Some(end) = end else {
            push(out, &rest[..=start]);
            rest = inside;
            continue;
        };
        push(out, &rest[..start]);
        out.push_str("<code>");
        push(out, &inside[..end]);
        out.push_str("</code>");
        rest = &inside[end + 1..];
    }
    push(out, rest);
    out.push_str("</p>");
}

fn markdown(source: &str, message_level: u8) -> Markup {
    let is_deep = |line: &str| {
        let markers = line.bytes().filter(|byte| matches!(byte, b'>' | b'*' | b'-' | b'+' | b'[' | b'`' | b'_' | b'~'));
        markers.count() > MAX_MARKERS_PER_LINE
    };
    if source.split(['\n', '\r']).any(is_deep) {
        return html! { pre.raw tabindex="0" { (text::shown(source)) } };
    }
    let largest = Parser::new_ext(source, OPTIONS).filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level as u8),
        _ => None,
    });
    let raised = largest.min().unwrap_or(HeadingLevel::H1 as u8);
    let mut writer = Writer {
        out: String::with_capacity(source.len() + source.len() / 4),
        shift: message_level + 1,
        raised,
        code: None,
        image: None,
        image_depth: 0,
        links: Vec::new(),
        alignments: Vec::new(),
        column: 0,
        in_head: false,
        depth: 0,
    };
    for event in Parser::new_ext(source, OPTIONS) {
        writer.event(event);
    }
    PreEscaped(writer.out)
}

struct Writer {
    out: String,
    /// The level of the largest heading, and what it is in the source.
    shift: u8,
    raised: u8,
    /// The language and the text of the open block of code.
    code: Option<(String, String)>,
    /// The address and the description of the open picture.
    image: Option<(String, String)>,
    /// How many tags are open inside of it.
    image_depth: usize,
    /// What closes each open link.
    links: Vec<&'static str>,
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// In how many lists and quotes it is.
    depth: usize,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Html(html) | Event::InlineHtml(html) => self.text(&html),
            Event::Code(code) => {
                if self.image.is_some() {
                    return self.text(&code);
                }
                self.out.push_str("<code>");
                push(&mut self.out, &code);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::FootnoteReference(label) => {
                self.out.push_str("<sup>");
                push(&mut self.out, &label);
                self.out.push_str("</sup>");
            }
            Event::TaskListMarker(is_done) => {
                let (sign, word) = if is_done { ("☑", "done: ") } else { ("☐", "open: ") };
                self.write(format_args!("<span aria-hidden=\"true\">{sign} </span><span class=\"vh\">{word}</span>"));
            }
            // Not enabled in OPTIONS.
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn text(&mut self, text: &str) {
        match (&mut self.code, &mut self.image) {
            (Some((_, code)), _) => code.push_str(text),
            (None, Some((_, description))) => description.push_str(text),
            (None, None) => push(&mut self.out, text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        if self.image.is_some() {
            // What describes a picture is text.
            self.image_depth += 1;
            return;
        }
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            Tag::Heading { level, .. } => {
                let level = self.level(level);
                self.write(format_args!("<h{level}>"));
            }
            Tag::BlockQuote(_) => self.open_deeper("blockquote"),
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) => self.code = Some((language.to_string(), String::new())),
            Tag::CodeBlock(CodeBlockKind::Indented) => self.code = Some((String::new(), String::new())),
            Tag::HtmlBlock => self.out.push_str("<p class=\"raw\">"),
            Tag::List(None) => self.open_deeper("ul"),
            Tag::List(Some(1)) => self.open_deeper("ol"),
            Tag::List(Some(first)) => self.open_deeper(&format!("ol start=\"{first}\"")),
            Tag::Item => self.out.push_str("<li>"),
            Tag::FootnoteDefinition(label) => {
                self.out.push_str("<div class=\"footnote\"><sup>");
                push(&mut self.out, &label);
                self.out.push_str("</sup> ");
            }
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.out
                    .push_str("<div class=\"scroll-x\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>");
            }
            Tag::TableHead => {
                (self.in_head, self.column) = (true, 0);
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let class = match self.alignments.get(self.column) {
                    Some(Alignment::Right) => " class=\"r\"",
                    Some(Alignment::Center) => " class=\"c\"",
                    _ => "",
                };
                let cell = if self.in_head { "th" } else { "td" };
                self.write(format_args!("<{cell}{class}>"));
                self.column += 1;
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<s>"),
            Tag::Link { dest_url, .. } => self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => self.image = Some((dest_url.to_string(), String::new())),
            // Not enabled in OPTIONS.
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if self.image.is_some() && self.image_depth > 0 {
            self.image_depth -= 1;
            return;
        }
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.out.push_str("</p>"),
            TagEnd::Heading(level) => {
                let level = self.level(level);
                self.write(format_args!("</h{level}>"));
            }
            TagEnd::BlockQuote(_) => self.close("</blockquote>"),
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    let code = code.strip_suffix('\n').unwrap_or(&code);
                    self.out.push_str(&code::block(code, &language).0);
                }
            }
            TagEnd::List(true) => self.close("</ol>"),
            TagEnd::List(false) => self.close("</ul>"),
            TagEnd::Item => self.out.push_str("</li>"),
            TagEnd::FootnoteDefinition => self.out.push_str("</div>"),
            TagEnd::Table => self.out.push_str("</tbody></table></div>"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.push_str("</tr></thead><tbody>");
            }
            TagEnd::TableRow => self.out.push_str("</tr>"),
            TagEnd::TableCell => self.out.push_str(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</s>"),
            TagEnd::Link => {
                let close = self.links.pop().unwrap_or_default();
                self.out.push_str(close);
            }
            TagEnd::Image => self.end_image(),
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_link(&mut self, address: &str) {
        match text::web_address(address) {
            Some(address) => {
                self.out.push_str("<a rel=\"noreferrer noopener\" href=\"");
                push(&mut self.out, address);
                self.out.push_str("\">");
                self.links.push("</a>");
            }
            // A path, or something that must not be followed: where it leads stays readable.
            None => {
                self.out.push_str("<span class=\"no-link\" title=\"");
                push(&mut self.out, &text::brief(address, 300));
                self.out.push_str("\">");
                self.links.push("</span>");
            }
        }
    }

    /// A picture is never loaded: whoever wrote the text would learn who reads it.
    fn end_image(&mut self) {
        let Some((address, description)) = self.image.take() else { return };
        let description = if description.trim().is_empty() { "picture".to_owned() } else { description };
        // A link has no link in it.
        let is_in_link = self.links.contains(&"</a>");
        match text::web_address(&address).filter(|_| !is_in_link) {
            Some(address) => {
                self.out.push_str("<a rel=\"noreferrer noopener\" href=\"");
                push(&mut self.out, address);
                self.out.push_str("\">");
                push(&mut self.out, &description);
                self.out.push_str("</a> <span class=\"meta\">(picture on ");
                push(&mut self.out, text::host(address));
                self.out.push_str(", not loaded)</span>");
            }
            None => {
                push(&mut self.out, &description);
                self.out.push_str(" <span class=\"meta\">(picture, not loaded)</span>");
            }
        }
    }

    /// Begins something that is indented, unless it is too deep for that.
    fn open_deeper(&mut self, tag: &str) {
        self.depth += 1;
        let flat = if self.depth > INDENTED { " class=\"flat\"" } else { "" };
        self.write(format_args!("<{tag}{flat}>"));
    }

    fn close(&mut self, tag: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.out.push_str(tag);
    }

    fn level(&self, level: HeadingLevel) -> u8 {
        (self.shift + (level as u8).saturating_sub(self.raised)).min(6)
    }

    fn write(&mut self, what: std::fmt::Arguments<'_>) {
        self.out.push_str(&what.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> String {
        markdown(source, 2).0
    }

    #[test]
    fn the_largest_heading_of_a_message_is_below_the_messages_own() {
        assert_eq!(check("## A\n\n#### B"), "<h3>A</h3><h5>B</h5>");
        assert_eq!(check("# A\n\n###### B"), "<h3>A</h3><h6>B</h6>");
    }

    #[test]
    fn what_was_typed_stays_but_for_code() {
        let check = |source: &str| typed(source).0;
        let inside = |html: &str| format!("<div class=\"prose typed\" dir=\"auto\">{html}</div>");
        for (typed, html) in [
            ("*a* __b__ <i>\n# c", "<p>*a* __b__ &lt;i&gt;\n# c</p>"),
            ("run `ls -l <x>` now", "<p>run <code>ls -l &lt;x&gt;</code> now</p>"),
            ("a ` b\nc `` d", "<p>a ` b\nc `` d</p>"),
            (
                "a\n```\n<x>\n```\nb",
                "<p>a</p><figure class=\"code\"><pre tabindex=\"0\"><code>&lt;x&gt;</code></pre></figure><p>b</p>",
            ),
            ("```\nnever closed", "<p>```\nnever closed</p>"),
        ] {
            assert_eq!(check(typed), inside(html), "{typed:?}");
        }
    }

    #[test]
    fn raw_html_is_text() {
        insta::assert_snapshot!(check("<script>alert(1)</script>\n\nx <img src=x onerror=alert(1)> y"), @r#"
        <p class="raw">&lt;script&gt;alert(1)&lt;/script&gt;
        </p><p>x &lt;img src=x onerror=alert(1)&gt; y</p>
        "#);
    }

    #[test]
    fn a_picture_is_a_link_that_says_so_and_an_unsafe_address_leads_nowhere() {
        insta::assert_snapshot!(check("![a *map*](https://tracker.example/x.png) ![](data:image/png;base64,AA)"), @r#"<p><a rel="noreferrer noopener" href="https://tracker.example/x.png">a map</a> <span class="meta">(picture on tracker.example, not loaded)</span> picture <span class="meta">(picture, not loaded)</span></p>"#);
        insta::assert_snapshot!(check("[x](javascript:alert\\(1\\)) [file](src/lib.rs) <javascript:a> <https://a.example/?a&b=\">"), @r#"<p><span class="no-link" title="javascript:alert(1)">x</span> <span class="no-link" title="src/lib.rs">file</span> <span class="no-link" title="javascript:a">javascript:a</span> <a rel="noreferrer noopener" href="https://a.example/?a&amp;b=&quot;">https://a.example/?a&amp;b=&quot;</a></p>"#);
        assert_eq!(check("[![alt](https://e.example/i.png)](https://e.example)").matches("<a ").count(), 1);
    }

    #[test]
    fn tables_lists_and_code_keep_their_structure() {
        insta::assert_snapshot!(check("| a | b |\n|---|--:|\n| 1 | `2` |\n\n3. x\n   - [x] y\n\n```rs\nfn\n```\n\n~~s~~[^1]\n\n[^1]: note"), @r##"<div class="scroll-x" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th>a</th><th class="r">b</th></tr></thead><tbody><tr><td>1</td><td class="r"><code>2</code></td></tr></tbody></table></div><ol start="3"><li>x<ul><li><span aria-hidden="true">☑ </span><span class="vh">done: </span>y</li></ul></li></ol><figure class="code"><figcaption>rs <button class="btn btn-icon end js-only" type="button" data-copy="code" aria-label="Copy the code"><svg class="i" aria-hidden="true"><use href="#i-copy"></use></svg></button></figcaption><pre tabindex="0"><code><span class="hl-keyword">fn</span></code></pre></figure><p><s>s</s><sup>1</sup></p><div class="footnote"><sup>1</sup> <p>note</p></div>"##);
    }

    #[test]
    fn a_deep_list_stops_indenting() {
        let list: String = (0..12).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
        let html = check(&list);
        assert_eq!((html.matches("<ul>").count(), html.matches("<ul class=\"flat\">").count()), (8, 4), "{html}");
        // One that follows begins anew.
        assert!(check(&format!("{list}\ntext\n\n> quote")).ends_with("<blockquote><p>quote</p></blockquote>"));
    }

    #[test]
    fn a_text_of_deep_nesting_is_shown_as_it_is() {
        assert!(check(&format!("{}x", "> ".repeat(1_000))).starts_with("<pre class=\"raw\""));
    }
}
