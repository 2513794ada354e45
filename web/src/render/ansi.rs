//! What a program printed on a terminal: its colours as classes, everything else that directs a terminal gone or visible.

use maud::{Markup, PreEscaped};

use super::text::push;

/// Longer sequences are nothing that a program writes for a person.
const MAX_SEQUENCE_BYTES: usize = 4096;

/// The sixteen colours that a terminal has, as programs expect them: what is nearest to a 24-bit colour is found among these.
const PALETTE: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// Printed text as HTML.
pub fn terminal(text: &str) -> Markup {
    let mut out =
        Printed { html: String::with_capacity(text.len() + 64), style: Style::default(), open: Style::default() };
    for line in text.split_inclusive('\n') {
        out.line(line);
    }
    out.close();
    PreEscaped(out.html)
}

/// How characters are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    foreground: Option<u8>,
    background: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    struck: bool,
    inverted: bool,
}

struct Printed {
    html: String,
    style: Style,
    /// The style of the open element.
    open: Style,
}

impl Printed {
    /// A progress bar writes its line again and again: the last one is what remains.
    fn line(&mut self, line: &str) {
        let (content, end) = match line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')) {
            Some(content) => (content, "\n"),
            None => (line, ""),
        };
        let mut rest = content.rsplit('\r').find(|piece| !piece.is_empty()).unwrap_or_default();
        while let Some(escape) = rest.find(['\u{1b}', '\u{9b}', '\u{8}']) {
            self.text(&rest[..escape]);
            rest = &rest[escape..];
            let length = self.sequence(rest);
            rest = &rest[length..];
        }
        self.text(rest);
        self.text(end);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.open != self.style {
            self.close();
            let classes = self.style.classes();
            if !classes.is_empty() {
                self.html.push_str("<span class=\"");
                self.html.push_str(&classes);
                self.html.push_str("\">");
            }
            self.open = self.style;
        }
        push(&mut self.html, text);
    }

    fn close(&mut self) {
        if !self.open.classes().is_empty() {
            self.html.push_str("</span>");
        }
        self.open = Style::default();
    }

    /// Takes the sequence that a text starts with, and returns its length.
    fn sequence(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        if let Some(rest) = text.strip_prefix('\u{9b}') {
            return '\u{9b}'.len_utf8() + self.control(rest).unwrap_or(0);
        }
        match bytes.get(1) {
            // A character taken back; man pages print bold letters so.
            _ if bytes[0] == 8 => 1,
            Some(b'[') => 2 + self.control(&text[2..]).unwrap_or(0),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => 2 + string_length(&text[2..]),
            Some(b'(' | b')' | b'#' | b'%' | b' ') => 2 + text[2..].chars().next().map_or(0, char::len_utf8),
            Some(0x30..=0x7e) => 2,
            Some(_) | None => {
                push(&mut self.html, "\u{1b}");
                1
            }
        }
    }

    /// The length of a control sequence without its start; `None` if it does not end.
    fn control(&mut self, text: &str) -> Option<usize> {
        let bytes = &text.as_bytes()[..text.len().min(MAX_SEQUENCE_BYTES)];
        let length = bytes.iter().take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
        let end = *bytes.get(length)?;
        if end == b'm' {
            self.style.set(&text[..length]);
        }
        (0x40..=0x7e).contains(&end).then_some(length + 1)
    }
}

/// The length of a string for the terminal, such as a title or the address of a link, with what ends it.
fn string_length(text: &str) -> usize {
    let bytes = &text.as_bytes()[..text.floor_char_boundary(MAX_SEQUENCE_BYTES)];
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            7 => return at + 1,
            0x1b if bytes.get(at + 1) == Some(&b'\\') => return at + 2,
            _ => {}
        }
    }
    0
}

impl Style {
    /// Applies the numbers of a sequence.
    fn set(&mut self, numbers: &str) {
        let numbers: Vec<u16> = numbers.split([';', ':']).map(|number| number.parse().unwrap_or(0)).collect();
        let mut rest = numbers.as_slice();
        while let Some((first, more)) = rest.split_first() {
            rest = more;
            match first {
                0 => *self = Style::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                7 => self.inverted = true,
                9 => self.struck = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                27 => self.inverted = false,
                29 => self.struck = false,
                30..=37 => self.foreground = Some((first - 30) as u8),
                90..=97 => self.foreground = Some((first - 82) as u8),
                39 => self.foreground = None,
                40..=47 => self.background = Some((first - 40) as u8),
                100..=107 => self.background = Some((first - 100) as u8),
                49 => self.background = None,
                38 | 48 => {
                    let (colour, used) = extended(rest);
                    rest = &rest[used.min(rest.len())..];
                    if *first == 38 {
                        self.foreground = colour;
                    } else {
                        self.background = colour.map(|colour| colour % 8);
                    }
                }
                _ => {}
            }
        }
    }

    fn classes(&self) -> String {
        let mut classes: Vec<String> = Vec::new();
        // A background has one colour of letters: it is readable on each.
        match (self.background, self.foreground) {
            (Some(background), _) => classes.push(format!("a-bg-{background}")),
            (None, Some(foreground)) => classes.push(format!("a-{foreground}")),
            (None, None) => {}
        }
        let marks = [
            (self.bold, "a-b"),
            (self.dim && self.foreground.is_none() && self.background.is_none(), "a-d"),
            (self.italic, "a-i"),
            (self.underlined, "a-u"),
            (self.struck, "a-s"),
            (self.inverted && self.background.is_none(), "a-inv"),
        ];
        classes.extend(marks.into_iter().filter(|(is_on, _)| *is_on).map(|(_, class)| class.to_owned()));
        classes.join(" ")
    }
}

/// The nearest of the sixteen colours to a colour of 256, or of 24 bits, and how many numbers it takes.
fn extended(numbers: &[u16]) -> (Option<u8>, usize) {
    let byte = |number: u16| number.min(255) as u8;
    match numbers {
        [5, index, ..] => (Some(of_256(byte(*index))), 2),
        [2, red, green, blue, ..] => (Some(nearest(byte(*red), byte(*green), byte(*blue))), 4),
        _ => (None, numbers.len()),
    }
}

fn of_256(index: u8) -> u8 {
    match index {
        0..16 => index,
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            nearest(grey, grey, grey)
        }
    }
}

fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let distance = |(r, g, b): (u8, u8, u8)| {
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(r, red) + square(g, green) + square(b, blue)
    };
    (0..16).min_by_key(|index| distance(PALETTE[usize::from(*index)])).unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_classes_and_other_sequences_are_gone() {
        for (printed, html) in [
            ("plain <b>", "plain &lt;b&gt;"),
            ("\u{1b}[31mred\u{1b}[0m", "<span class=\"a-1\">red</span>"),
            ("\u{1b}[1;32mok\u{1b}[22m.", "<span class=\"a-2 a-b\">ok</span><span class=\"a-2\">.</span>"),
            ("\u{1b}[38;5;196mx", "<span class=\"a-9\">x</span>"),
            ("\u{1b}[38;2;250;250;250mx\u{1b}[39my", "<span class=\"a-15\">x</span>y"),
            ("\u{1b}[41;97m FAIL \u{1b}[m", "<span class=\"a-bg-1\"> FAIL </span>"),
            ("\u{1b}[7minv", "<span class=\"a-inv\">inv</span>"),
            ("10%\r50%\r100%\n", "100%\n"),
            ("a\u{1b}[2Jb\u{1b}[10;5Hc", "abc"),
            ("\u{1b}]8;;javascript:alert(1)\u{7}link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]0;title", "0;title"),
            ("\u{1b}", "\u{241b}"),
            ("\u{9b}31mx", "<span class=\"a-1\">x</span>"),
            ("a\u{7}b", "a\u{2407}b"),
            ("\u{1b}[38;5", "38;5"),
        ] {
            assert_eq!(terminal(printed).0, html, "{printed:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_printed_gives_closed_spans_with_known_classes(
            pieces in proptest::collection::vec("\u{1b}|\\[|\\]|[0-9;:]{0,6}|m|J|\u{9b}|<img src=x>|é|\r|\n|\u{7}|\\\\", 0..40)
        ) {
            let html = terminal(&pieces.concat()).0;
            prop_assert_eq!(html.matches("<span").count(), html.matches("</span>").count());
            prop_assert!(!html.contains("<img") && !html.contains(char::from(0x1b)));
            for class in html.split("<span class=\"").skip(1) {
                let class = class.split('"').next().unwrap_or_default();
                prop_assert!(class.split(' ').all(|class| class.starts_with("a-")), "{}", class);
            }
        }
    }
}
