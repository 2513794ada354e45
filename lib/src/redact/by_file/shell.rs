//! What a shell script writes into sensitive files.
//!
//! This is no shell: it knows enough of quotes, here-documents and operators to tell pipelines apart. A pipeline that writes
//! into such a file loses its texts; programs, options, paths and operators stay, so that people see what was done.

use std::ops::Range;

use super::edited::Edited;
use super::file_mask::FileMask;
use super::patches;

/// Scripts in scripts in scripts: nobody writes more.
const DEEPEST: usize = 4;

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "fish"];

/// Run a script elsewhere, or a shell that does: `ssh host "…"`, `docker exec c sh -c '…'`.
#[rustfmt::skip]
const CARRIERS: &[&str] = &[
    "ssh", "docker", "podman", "nerdctl", "kubectl", "oc", "su", "runuser", "eval", "xargs", "watch", "timeout", "flock", "wsl",
    "vagrant", "multipass", "lxc", "limactl", "fly", "flyctl", "heroku", "gcloud", "nsenter", "chroot", "parallel",
];

const INTERPRETERS: &[&str] = &["python", "python3", "node", "perl", "ruby", "php", "deno", "bun"];
const PATCHERS: &[&str] = &["apply_patch", "applypatch", "patch"];

/// Run another program, whose name stays too.
const PREFIXES: &[&str] = &["sudo", "env", "command", "exec", "time", "nohup", "then", "do", "else", "if", "{", "!"];

/// End a group of commands, whose output can go to a file together.
const GROUP_ENDS: &[&str] = &["}", "done", "fi", "esac"];

/// Their words are paths and not what is written.
const READERS: &[&str] = &["cat", "head", "tail", "cd", "mkdir", "touch", "chmod", "cp", "mv", "install"];

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
pub(super) fn masked(script: &str, mask: FileMask<'_>) -> Option<String> {
    masked_at(script, mask, 0)
}

fn masked_at(script: &str, mask: FileMask<'_>, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let mut edited = Edited::new(script);
    for (span, new) in edits(script, &pieces(script), mask, depth) {
        edited.replace(span, &new);
    }
    edited.finish()
}

/// The words of one command that change, by their places: `["sed", "-i", "s/a/b/", ".env"]`. A script for a shell is not looked into.
pub(super) fn masked_words(words: &[&str], mask: FileMask<'_>) -> Vec<(usize, String)> {
    let (mut script, mut pieces, mut is_first) = (String::new(), Vec::new(), true);
    for word in words {
        let kind = if is_first { Kind::Program } else { Kind::Word };
        if is_first && SHELLS.contains(&name_of(word)) {
            return Vec::new();
        }
        is_first &= is_followed_by_program(word);
        pieces.push(Piece { kind, span: script.len()..script.len() + word.len(), pipeline: 0 });
        script.push_str(word);
    }
    let edits = edits(&script, &pieces, mask, 0).into_iter();
    edits
        .filter_map(|(span, new)| {
            let index = pieces.iter().position(|piece| piece.span.start <= span.start && span.end <= piece.span.end)?;
            let piece = &pieces[index].span;
            Some((index, [&script[piece.start..span.start], &new, &script[span.end..piece.end]].concat()))
        })
        .collect()
}

/// What changes in a script, in order.
fn edits(script: &str, pieces: &[Piece], mask: FileMask<'_>, depth: usize) -> Vec<(Range<usize>, String)> {
    let of_pipelines = || pieces.chunk_by(|one, next| one.pipeline == next.pipeline);
    let around = Script { script, mask, depth, variables: variables(script, pieces, mask) };
    let runs_only = |pieces: &[Piece], names: &[&str]| {
        let has_only = |piece: &Piece| match piece.kind {
            Kind::Program => names.contains(&&script[piece.span.clone()]),
            Kind::Word | Kind::Text | Kind::Body => false,
            Kind::Target | Kind::Kept => true,
        };
        pieces.iter().all(has_only) && around.goes_to_file(pieces)
    };
    // Where a group began is not looked for: everything before its end counts.
    let group = of_pipelines().rev().find(|pieces| runs_only(pieces, GROUP_ENDS)).map(|pieces| pieces[0].pipeline);
    // `exec > .env`: everything after it goes there.
    let redirected = of_pipelines().find(|pieces| runs_only(pieces, &["exec"])).map(|pieces| pieces[0].pipeline);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // A here-document's body comes after later pipelines of its line, so the pieces were sorted by pipeline.
    for of_pipeline in of_pipelines() {
        let number = of_pipeline[0].pipeline;
        let is_in_group = group.is_some_and(|group| number < group) || redirected.is_some_and(|from| number > from);
        edit(&around, of_pipeline, is_in_group, &mut edits);
    }
    edits.sort_by_key(|(span, _)| span.start);
    edits
}

/// The names of variables that have the path of a sensitive file: `F=.env`.
fn variables<'s>(script: &'s str, pieces: &[Piece], mask: FileMask<'_>) -> Vec<&'s str> {
    let is_word = |piece: &&Piece| matches!(piece.kind, Kind::Program | Kind::Word);
    let assigned = pieces.iter().filter(is_word).filter_map(|piece| assignment(&script[piece.span.clone()]));
    assigned
        .filter(|(_, value)| mask.is_sensitive(value.trim_matches(['"', '\''])))
        .map(|(name, _)| name)
        .collect()
}

/// The name and the value of `NAME=value`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    word.split_once('=').filter(|(name, _)| is_name(name))
}

/// What surrounds a pipeline.
struct Script<'s> {
    script: &'s str,
    mask: FileMask<'s>,
    depth: usize,
    /// Their values are paths of sensitive files.
    variables: Vec<&'s str>,
}

impl Script<'_> {
    /// A text that ends in such a name is none: `A=1 # .env`.
    fn is_file(&self, word: &str) -> bool {
        let is_path = || {
            !word.contains(['=', '#', '\n', '\t'])
                && !word.contains("  ")
                && word.split(' ').count() <= 2
                && self.mask.is_sensitive(word)
        };
        self.is_variable(word) || is_path()
    }

    fn names_file(&self, word: &str) -> bool {
        self.is_variable(word)
            || self.mask.is_sensitive(word)
            || word.split(['=', '\'', '"']).any(|part| self.mask.is_sensitive(part))
    }

    /// `$F` or `${F}`, with a path of such a file in it.
    fn is_variable(&self, word: &str) -> bool {
        let name = word.strip_prefix('$').unwrap_or_default();
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        self.variables.contains(&name)
    }

    /// Whether the output of a pipeline goes to such a file.
    fn goes_to_file(&self, pieces: &[Piece]) -> bool {
        let is_target =
            |piece: &Piece| piece.kind == Kind::Target && self.is_file(&self.script[inside(self.script, &piece.span)]);
        pieces.iter().any(is_target)
    }
}

/// What changes in one pipeline; that of a group writes where the group does.
fn edit(around: &Script<'_>, pieces: &[Piece], is_in_group: bool, edits: &mut Vec<(Range<usize>, String)>) {
    let Script { script, mask, depth, .. } = *around;
    let text = |piece: &Piece| &script[piece.span.clone()];
    let runs = |names: &[&str]| {
        pieces.iter().any(|piece| piece.kind == Kind::Program && names.contains(&name_of(text(piece))))
    };
    let has_option = |option: &str| pieces.iter().any(|piece| text(piece).starts_with(option));
    let names_file = pieces
        .iter()
        .any(|piece| piece.kind != Kind::Body && around.names_file(&script[inside(script, &piece.span)]));
    let writes = is_in_group
        || around.goes_to_file(pieces)
        || names_file
            && (runs(&["tee", "sponge", "dd", "dotenv", "install"])
                || runs(&["sed", "perl", "gsed"])
                    && (has_option("-i") || has_option("-pi") || has_option("--in-place"))
                || runs(PATCHERS));
    let (is_shell, is_code) = (runs(SHELLS) || runs(CARRIERS), runs(INTERPRETERS));
    // `echo … | ssh host "cat > .env"`: what comes in goes there.
    let carries = is_shell
        && pieces.iter().filter(|piece| piece.kind == Kind::Word).any(|piece| {
            let inner = &script[inside(script, &piece.span)];
            let is_target =
                |piece: &Piece| piece.kind == Kind::Target && around.is_file(&inner[inside(inner, &piece.span)]);
            inner.contains('>') && self::pieces(inner).iter().any(is_target)
        });
    // Which program a word belongs to.
    let mut reads_paths = false;
    for piece in pieces {
        if piece.kind == Kind::Program {
            reads_paths = [READERS, SHELLS, CARRIERS].iter().any(|names| names.contains(&name_of(text(piece))));
        }
        let span = inside(script, &piece.span);
        let inner = &script[span.clone()];
        let new = match piece.kind {
            Kind::Program | Kind::Target | Kind::Kept => None,
            _ if let Some(patch) = patches::masked(inner, mask) => Some(patch),
            Kind::Word if is_shell && inner.contains([' ', '\n']) && !writes => masked_at(inner, mask, depth + 1),
            Kind::Body if is_shell && !writes && !carries => masked_at(inner, mask, depth + 1),
            Kind::Body | Kind::Word if is_code && !writes && inner.contains(['(', '>']) => code(inner, around),
            // The other part of a patch that was masked already.
            Kind::Body if writes && inner.contains("*** Begin Patch") => None,
            Kind::Body if writes || carries => mask.placeholder(inner.trim_end_matches('\n')).map(|new| new + "\n"),
            Kind::Text if writes || carries => mask.placeholder(inner),
            Kind::Word if (writes || carries) && !reads_paths && !inner.starts_with('-') && !around.is_file(inner) => {
                mask.placeholder(inner)
            }
            Kind::Body | Kind::Word | Kind::Text => None,
        };
        edits.extend(new.map(|new| (span, new)));
    }
}

/// Code of another language: if it names such a file, its texts are hidden, but not the path and the mode.
fn code(code: &str, around: &Script<'_>) -> Option<String> {
    const LONGEST_MODE: usize = 3;
    let literals = literals(code);
    if !literals.iter().any(|span| around.mask.is_sensitive(&code[span.clone()])) {
        return None;
    }
    let mut edited = Edited::new(code);
    for span in literals {
        let text = &code[span.clone()];
        if text.len() > LONGEST_MODE
            && !around.is_file(text)
            && let Some(new) = around.mask.placeholder(text)
        {
            edited.replace(span, &new);
        }
    }
    edited.finish()
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
                    is_first = is_followed_by_program(word);
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

/// A program without its folder.
fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// `sudo tee` and `F=.env tee` run another program; `git apply` is one program with two words.
fn is_followed_by_program(word: &str) -> bool {
    PREFIXES.contains(&word) || word == "git" || assignment(word).is_some()
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
