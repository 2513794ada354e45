//! What a shell script writes into sensitive files.
//!
//! This is no shell: it knows enough of quotes, here-documents and operators to tell pipelines apart. A pipeline that writes
//! into such a file loses its texts; programs, options, paths and operators stay, so that people see what was done.

use std::ops::Range;

/// Scripts in scripts in scripts: nobody writes more.
const DEEPEST: usize = 4;

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "fish"];
const INTERPRETERS: &[&str] = &["python", "python3", "node", "perl", "ruby", "php", "deno", "bun"];
const PATCHERS: &[&str] = &["apply_patch", "applypatch", "patch"];

/// Run another program, whose name stays too.
const PREFIXES: &[&str] = &["sudo", "env", "command", "exec", "time", "nohup", "then", "do", "else", "if", "{", "!"];

/// End a group of commands, whose output can go to a file together.
const GROUP_ENDS: &[&str] = &["}", "done", "fi", "esac"];

/// Their words are paths and not what is written.
const READERS: &[&str] = &["cat", "head", "tail", "cd", "mkdir", "touch", "chmod", "cp", "mv"];

/// What the caller knows.
pub(super) trait Judge {
    /// Whether a word is the path of a sensitive file.
    fn is_sensitive(&self, path: &str) -> bool;
    /// What replaces a text; `None` if it is empty or replaced already.
    fn mask(&self, text: &str) -> Option<String>;
    /// A patch without the parts of sensitive files, if it has some.
    fn patch(&self, text: &str) -> Option<String>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The name of a program.
    Program,
    Word,
    /// What `<<<` gives to a program.
    Text,
    /// Where output goes.
    Target,
    /// The mark of a here-document, the number of a stream, where input comes from.
    Kept,
    Body,
}

struct Piece {
    kind: Kind,
    span: Range<usize>,
    pipeline: usize,
}

/// The script without what it writes into sensitive files; `None` if it writes nothing there.
pub(super) fn masked(script: &str, judge: &dyn Judge) -> Option<String> {
    masked_at(script, judge, 0)
}

fn masked_at(script: &str, judge: &dyn Judge, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let pieces = pieces(script);
    let of_pipelines = || pieces.chunk_by(|one, next| one.pipeline == next.pipeline);
    let is_group_end = |pieces: &[Piece]| {
        let is_end = |piece: &Piece| piece.kind != Kind::Program || GROUP_ENDS.contains(&&script[piece.span.clone()]);
        let is_target =
            |piece: &Piece| piece.kind == Kind::Target && is_file(&script[inside(script, &piece.span)], judge);
        pieces.iter().all(is_end) && pieces.iter().any(is_target)
    };
    // Where a group began is not looked for: everything before its end counts.
    let group = of_pipelines()
        .rev()
        .find(|pieces| is_group_end(pieces))
        .and_then(|pieces| Some(pieces.first()?.pipeline));
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // A here-document's body comes after later pipelines of its line, so the pieces were sorted by pipeline.
    for of_pipeline in of_pipelines() {
        let is_in_group = group.is_some_and(|group| of_pipeline[0].pipeline < group);
        edit(Script { script, judge, depth, is_in_group }, of_pipeline, &mut edits);
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (String::with_capacity(script.len()), 0);
    for (span, new) in edits {
        out.push_str(&script[at..span.start]);
        out.push_str(&new);
        at = span.end;
    }
    out.push_str(&script[at..]);
    Some(out)
}

/// What surrounds a pipeline.
struct Script<'s> {
    script: &'s str,
    judge: &'s dyn Judge,
    depth: usize,
    /// The output of its group goes to a sensitive file.
    is_in_group: bool,
}

/// What changes in one pipeline.
fn edit(around: Script<'_>, pieces: &[Piece], edits: &mut Vec<(Range<usize>, String)>) {
    let Script { script, judge, depth, is_in_group } = around;
    let text = |piece: &Piece| &script[piece.span.clone()];
    let bare = |piece: &Piece| &script[inside(script, &piece.span)];
    let runs = |names: &[&str]| {
        pieces.iter().any(|piece| {
            let name = text(piece).rsplit('/').next().unwrap_or_default();
            piece.kind == Kind::Program && names.contains(&name)
        })
    };
    let has_option = |option: &str| pieces.iter().any(|piece| text(piece).starts_with(option));
    let names_file = pieces.iter().any(|piece| piece.kind != Kind::Body && names_sensitive(bare(piece), judge));
    let writes = is_in_group
        || pieces.iter().any(|piece| piece.kind == Kind::Target && is_file(bare(piece), judge))
        || names_file
            && (runs(&["tee", "sponge", "dd"])
                || runs(&["sed", "perl", "gsed"])
                    && (has_option("-i") || has_option("-pi") || has_option("--in-place"))
                || runs(PATCHERS));
    let (is_shell, is_code) = (runs(SHELLS), runs(INTERPRETERS));
    // Which program a word belongs to.
    let mut reads_paths = false;
    for piece in pieces {
        if piece.kind == Kind::Program {
            reads_paths = READERS.contains(&text(piece).rsplit('/').next().unwrap_or_default());
        }
        let span = inside(script, &piece.span);
        let inner = &script[span.clone()];
        let new = match piece.kind {
            Kind::Program | Kind::Target | Kind::Kept => None,
            _ if let Some(patch) = judge.patch(inner) => Some(patch),
            Kind::Body | Kind::Word if is_shell && inner.contains([' ', '\n']) && !writes => {
                masked_at(inner, judge, depth + 1)
            }
            Kind::Body | Kind::Word if is_code && !writes && inner.contains(['(', '>']) => code(inner, judge),
            // The other part of a patch that was masked already.
            Kind::Body if writes && inner.contains("*** Begin Patch") => None,
            Kind::Body if writes => judge.mask(inner.trim_end_matches('\n')).map(|new| new + "\n"),
            Kind::Text if writes => judge.mask(inner),
            Kind::Word if writes && !reads_paths && !inner.starts_with('-') && !is_file(inner, judge) => {
                judge.mask(inner)
            }
            Kind::Body | Kind::Word | Kind::Text => None,
        };
        edits.extend(new.map(|new| (span, new)));
    }
}

/// A text that ends in such a name is none: `A=1 # .env`.
fn is_file(word: &str, judge: &dyn Judge) -> bool {
    !word.contains(['=', '#', '\n', '\t'])
        && !word.contains("  ")
        && word.split(' ').count() <= 2
        && judge.is_sensitive(word)
}

fn names_sensitive(word: &str, judge: &dyn Judge) -> bool {
    judge.is_sensitive(word) || word.split(['=', '\'', '"']).any(|part| judge.is_sensitive(part))
}

/// Code of another language: if it names such a file, its texts are hidden, but not the path and the mode.
fn code(code: &str, judge: &dyn Judge) -> Option<String> {
    const LONGEST_MODE: usize = 3;
    let literals = literals(code);
    if !literals.iter().any(|span| judge.is_sensitive(&code[span.clone()])) {
        return None;
    }
    let (mut out, mut at) = (String::new(), 0);
    for span in literals {
        let text = &code[span.clone()];
        if text.len() > LONGEST_MODE
            && !is_file(text, judge)
            && let Some(new) = judge.mask(text)
        {
            out.push_str(&code[at..span.start]);
            out.push_str(&new);
            at = span.end;
        }
    }
    (at > 0).then(|| out + &code[at..])
}

/// The insides of quoted texts.
fn literals(code: &str) -> Vec<Range<usize>> {
    let bytes = code.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if bytes.get(at + 1) != Some(&b'"') => at += 2,
            quote @ (b'"' | b'\'' | b'`') => {
                let start = at + 1;
                let end = quote_end(bytes, start, quote, true);
                found.push(start..end);
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Where a quoted text ends: at its quote, or with everything.
fn quote_end(bytes: &[u8], start: usize, quote: u8, has_escapes: bool) -> usize {
    let mut at = start;
    while at < bytes.len() && bytes[at] != quote {
        at += if has_escapes && bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// A word without the quotes around it.
fn inside(script: &str, span: &Range<usize>) -> Range<usize> {
    let bytes = script[span.clone()].as_bytes();
    match bytes {
        [quote @ (b'"' | b'\''), middle @ .., end]
            if quote == end && !middle.contains(quote) || is_one_quoted(bytes) =>
        {
            span.start + 1..span.end - 1
        }
        _ => span.clone(),
    }
}

/// `"a \"b\""`, but not `"a"b"c"`.
fn is_one_quoted(word: &[u8]) -> bool {
    word.len() >= 2 && word[0] == b'"' && quote_end(word, 1, b'"', true) == word.len() - 1
}

/// A here-document that was announced and comes with the next line.
struct Announced {
    mark: String,
    pipeline: usize,
}

fn pieces(script: &str) -> Vec<Piece> {
    let bytes = script.as_bytes();
    let mut pieces = Vec::new();
    let mut announced: Vec<Announced> = Vec::new();
    let (mut at, mut pipeline) = (0, 0);
    // What the next word is.
    let (mut next, mut is_first, mut is_mark) = (Kind::Word, true, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                at += 1;
                for here in announced.drain(..) {
                    let end = body_end(script, at, &here.mark);
                    pieces.push(Piece { kind: Kind::Body, span: at..end, pipeline: here.pipeline });
                    at = script[end..].find('\n').map_or(script.len(), |line| end + line + 1);
                }
                pipeline += 1;
                (next, is_first) = (Kind::Word, true);
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => at += 2,
            b'#' => at = script[at..].find('\n').map_or(script.len(), |end| at + end),
            b'&' if bytes.get(at + 1) == Some(&b'>') => at += 1,
            b'|' if bytes.get(at + 1) != Some(&b'|') => {
                at += 1;
                (next, is_first) = (Kind::Word, true);
            }
            b';' | b'&' | b'|' | b'(' | b')' => {
                at += 1;
                pipeline += 1;
                (next, is_first) = (Kind::Word, true);
            }
            b'>' => {
                let length = bytes[at..].iter().take_while(|byte| matches!(byte, b'>' | b'|' | b'&')).count();
                next = if bytes[at..at + length].ends_with(b"&") { Kind::Kept } else { Kind::Target };
                at += length;
            }
            b'<' => {
                let length = bytes[at..].iter().take_while(|byte| **byte == b'<').count();
                is_mark = length == 2;
                // `<<<` gives a text, `<` a path.
                next = if length >= 3 { Kind::Text } else { Kind::Kept };
                at += length;
                if is_mark && bytes.get(at) == Some(&b'-') {
                    at += 1;
                }
                if length >= 3 {
                    is_first = false;
                }
            }
            _ => {
                let end = word_end(bytes, at);
                let word = &script[at..end];
                let is_stream = word.bytes().all(|byte| byte.is_ascii_digit())
                    && bytes.get(end).is_some_and(|byte| matches!(byte, b'>' | b'<'));
                let kind = match next {
                    Kind::Word if is_stream => Kind::Kept,
                    Kind::Word if is_first => Kind::Program,
                    kind => kind,
                };
                if is_mark {
                    let mark = word.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
                    announced.push(Announced { mark, pipeline });
                    is_mark = false;
                }
                if kind == Kind::Program {
                    // `git apply` is one program with two words.
                    is_first = PREFIXES.contains(&word) || word == "git";
                }
                pieces.push(Piece { kind, span: at..end, pipeline });
                next = Kind::Word;
                at = end;
            }
        }
    }
    pieces.sort_by_key(|piece| piece.pipeline);
    pieces
}

/// The start of the line that has only the mark.
fn body_end(script: &str, start: usize, mark: &str) -> usize {
    let mut at = start;
    for line in script[start..].split_inclusive('\n') {
        if line.trim() == mark {
            return at;
        }
        at += line.len();
    }
    script.len()
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            quote @ (b'"' | b'\'' | b'`') => at = quote_end(bytes, at + 1, quote, quote != b'\'') + 1,
            b'$' if bytes.get(at + 1) == Some(&b'(') => {
                depth += 1;
                at += 2;
            }
            b')' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            byte if depth == 0 && (byte.is_ascii_whitespace() || b";|&<>()".contains(&byte)) => break,
            _ => at += 1,
        }
    }
    // An escape at the end, or before a character of several bytes.
    let mut end = at.min(bytes.len());
    while end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
        end += 1;
    }
    end
}
