//! The languages that have colours: their words, comments and quotes, a few lines for each.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lexer::Kind;

/// How a language is written.
pub(super) struct Language {
    /// What fences call it, and the extensions of its files.
    names: &'static str,
    pub(super) shape: Shape,
    keywords: &'static str,
    constants: &'static str,
    types: &'static str,
    /// Whether words mean the same in capitals.
    ignores_case: bool,
    /// What a comment up to the end of its line begins with.
    pub(super) line_comments: &'static [&'static str],
    /// Whether such a comment begins only where a word could: `#` is also a part of words.
    pub(super) comments_after_spaces: bool,
    /// What other comments begin and end with.
    pub(super) comments: &'static [(&'static str, &'static str)],
    pub(super) comments_nest: bool,
    pub(super) quotes: &'static [Quote],
    /// Whether a quote can have letters before it.
    pub(super) prefixed_quotes: bool,
    /// Whether `'` holds one character, or begins a lifetime or a label.
    pub(super) has_chars: bool,
    /// Which signs are a part of words.
    pub(super) in_words: &'static str,
    /// Which signs begin a word that they explain.
    pub(super) sigils: &'static str,
    /// Whether a word before `(` is called.
    pub(super) has_calls: bool,
    /// Whether a word before `!` is called.
    pub(super) has_macros: bool,
    /// Whether types begin with a capital, and constants are capitals.
    pub(super) capital_types: bool,
    /// Whether the first word of a line is what is run.
    pub(super) has_commands: bool,
    /// Whether `/` may begin a regular expression.
    pub(super) has_patterns: bool,
    /// Whether a line begins with the name of a field.
    pub(super) line_keys: bool,
    /// Whether a text before `:` is the name of a field.
    pub(super) quoted_keys: bool,
    /// Whether a word before `:` is one in braces.
    pub(super) has_properties: bool,
}

/// What a language is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Words and signs.
    Code,
    /// Elements in angle brackets.
    Tags,
    /// Lines whose beginning says what they are.
    Lines,
}

/// What a text stands between.
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether `\` takes the meaning of the next character.
    pub(super) escapes: bool,
    /// Whether it can have several lines.
    pub(super) has_lines: bool,
}

/// A language and what its words are.
pub(super) struct Words {
    pub(super) language: &'static Language,
    kinds: HashMap<&'static str, Kind>,
    /// With which bytes a comment or a text can begin.
    pub(super) opens: [bool; 256],
}

impl Words {
    fn of(language: &'static Language) -> Words {
        let lists =
            [(language.types, Kind::Type), (language.constants, Kind::Constant), (language.keywords, Kind::Keyword)];
        let mut opens = [false; 256];
        let quotes = language.quotes.iter().map(|quote| quote.open);
        let comments = language.line_comments.iter().copied().chain(language.comments.iter().map(|(open, _)| *open));
        quotes.chain(comments).for_each(|open| opens[usize::from(open.as_bytes()[0])] = true);
        let kinds = lists.iter().flat_map(|(words, kind)| words.split(' ').map(move |word| (word, *kind)));
        Words { language, kinds: kinds.collect(), opens }
    }

    /// What a word is, wherever it stands.
    pub(super) fn kind(&self, word: &str) -> Option<Kind> {
        match self.language.ignores_case {
            true => self.kinds.get(&*word.to_ascii_lowercase()),
            false => self.kinds.get(word),
        }
        .copied()
    }
}

/// One name of each language.
#[cfg(test)]
pub(super) static NAMES_LISTED: LazyLock<Vec<&str>> =
    LazyLock::new(|| LANGUAGES.iter().filter_map(|language| language.names.split(' ').next()).collect());

/// The language of a name.
pub(super) fn known(name: &str) -> Option<&'static Words> {
    static WORDS: LazyLock<Vec<Words>> = LazyLock::new(|| LANGUAGES.iter().map(Words::of).collect());
    static NAMES: LazyLock<HashMap<&'static str, &'static Words>> = LazyLock::new(|| {
        WORDS
            .iter()
            .flat_map(|words| words.language.names.split(' ').map(move |name| (name, words)))
            .collect()
    });
    const NAME_BYTES: usize = 20;
    let is_name = name.len() <= NAME_BYTES && !name.is_empty();
    NAMES.get(is_name.then(|| name.to_ascii_lowercase())?.as_str()).copied()
}

const fn quote(sign: &'static str) -> Quote {
    Quote { open: sign, close: sign, escapes: true, has_lines: false }
}

const fn over_lines(sign: &'static str) -> Quote {
    Quote { has_lines: true, ..quote(sign) }
}

const fn exact(open: &'static str, close: &'static str) -> Quote {
    Quote { open, close, escapes: false, has_lines: true }
}

const DOUBLE: &[Quote] = &[quote("\"")];
const BOTH: &[Quote] = &[quote("\""), quote("'")];
const TRIPLE: &[Quote] = &[over_lines("\"\"\""), over_lines("'''"), quote("\""), quote("'")];
const OVER_LINES: &[Quote] = &[over_lines("\""), over_lines("'")];
const STARS: &[(&str, &str)] = &[("/*", "*/")];

/// A language of which nothing is known.
const PLAIN: Language = Language {
    names: "",
    shape: Shape::Code,
    keywords: "",
    constants: "",
    types: "",
    ignores_case: false,
    line_comments: &[],
    comments_after_spaces: false,
    comments: &[],
    comments_nest: false,
    quotes: BOTH,
    prefixed_quotes: false,
    has_chars: false,
    in_words: "",
    sigils: "",
    has_calls: true,
    has_macros: false,
    capital_types: false,
    has_commands: false,
    has_patterns: false,
    line_keys: false,
    quoted_keys: false,
    has_properties: false,
};

/// Braces, two slashes, types in capitals.
const BRACES: Language =
    Language { line_comments: &["//"], comments: STARS, capital_types: true, constants: "true false null", ..PLAIN };

/// Data, line by line.
const DATA: Language = Language {
    line_comments: &["#"],
    comments_after_spaces: true,
    has_calls: false,
    line_keys: true,
    quotes: TRIPLE,
    ..PLAIN
};

static LANGUAGES: [Language; 48] = [
    Language {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop macro_rules match mod move mut pub ref return self Self static struct super trait type union unsafe use where while yield",
        constants: "true false",
        types: "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        comments_nest: true,
        quotes: &[over_lines("\"")],
        prefixed_quotes: true,
        has_chars: true,
        has_macros: true,
        ..BRACES
    },
    Language {
        names: "javascript js mjs cjs jsx typescript ts mts cts tsx node vue svelte",
        keywords: "abstract any as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new of override private protected public readonly return satisfies set static super switch this throw try type typeof var void while with yield",
        constants: "true false null undefined NaN Infinity",
        types: "bigint boolean never number object string symbol unknown",
        quotes: &[quote("\""), quote("'"), over_lines("`")],
        in_words: "$",
        sigils: "@",
        has_patterns: true,
        ..BRACES
    },
    Language {
        names: "python py pyi py3 python3 gyp starlark bzl",
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
        constants: "True False None self cls Ellipsis NotImplemented",
        types: "bool bytes dict float frozenset int list object set str tuple type",
        line_comments: &["#"],
        quotes: TRIPLE,
        prefixed_quotes: true,
        sigils: "@",
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "bash sh shell zsh ksh fish bashrc zshrc bats ebuild",
        keywords: "if then elif else fi for while until do done case esac in function select return exit break continue export local readonly declare typeset unset shift source alias set eval exec trap begin end and or not switch",
        constants: "true false",
        line_comments: &["#"],
        comments_after_spaces: true,
        quotes: &[over_lines("\""), exact("'", "'"), over_lines("`")],
        in_words: "-./+~",
        sigils: "$",
        has_calls: false,
        has_commands: true,
        ..PLAIN
    },
    Language {
        names: "json jsonc json5 jsonl ndjson geojson webmanifest ipynb",
        constants: "true false null",
        line_comments: &["//"],
        comments: STARS,
        has_calls: false,
        quoted_keys: true,
        ..PLAIN
    },
    Language {
        names: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
        constants: "true false nil iota",
        types: "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        quotes: &[quote("\""), quote("'"), exact("`", "`")],
        ..BRACES
    },
    Language {
        names: "c h cpp c++ cc cxx hpp hh hxx ino objc m mm cuda cu glsl hlsl wgsl metal",
        keywords: "alignas alignof asm auto break case catch class concept const consteval constexpr continue co_await co_return co_yield decltype default delete do else enum explicit export extern final for friend goto if inline mutable namespace new noexcept operator override private protected public register requires restrict return sizeof static static_assert static_cast dynamic_cast reinterpret_cast const_cast struct switch template this throw try typedef typeid typename union using virtual volatile while",
        constants: "true false nullptr NULL",
        types: "bool char double float int long short signed unsigned void wchar_t size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
        quotes: &[exact("R\"(", ")\""), quote("\""), quote("'")],
        sigils: "#",
        ..BRACES
    },
    Language {
        names: "java groovy gradle",
        keywords: "abstract assert break case catch class continue def default do else enum extends final finally for if implements import in instanceof interface native new package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var volatile while yield",
        types: "boolean byte char double float int long short void",
        quotes: TRIPLE,
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "csharp cs c# fsharp fs f#",
        keywords: "abstract as async await base break case catch class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is let lock match member module mutable namespace new of open operator out override params partial private protected public readonly record ref return sealed set sizeof stackalloc static struct switch then this throw try type typeof unchecked unsafe using var virtual void when where while with yield",
        types: "bool byte char decimal double dynamic float int long nint object sbyte short string uint ulong ushort",
        sigils: "#",
        ..BRACES
    },
    Language {
        names: "kotlin kt kts scala sc",
        keywords: "abstract as break by case catch class companion const continue crossinline data def do else enum extends external final finally for fun get given if implicit import in infix init inline inner interface internal is lateinit lazy match new object open operator out override package private protected public return sealed set super suspend tailrec this throw trait try type typealias val var when where while with yield",
        quotes: TRIPLE,
        sigils: "@",
        comments_nest: true,
        ..BRACES
    },
    Language {
        names: "swift",
        keywords: "actor as associatedtype async await break case catch class continue convenience default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in indirect init inout internal is lazy let mutating nonisolated open operator override private protocol public repeat required rethrows return self Self some static struct subscript super switch throw throws try typealias var weak where while",
        constants: "true false nil",
        quotes: &[over_lines("\"\"\""), quote("\"")],
        sigils: "@#",
        comments_nest: true,
        ..BRACES
    },
    Language {
        names: "dart",
        keywords: "abstract as assert async await break case catch class const continue covariant default deferred do dynamic else enum export extends extension external factory final finally for get if implements import in interface is late library mixin new of on operator part required rethrow return set static super switch sync this throw try typedef var void when while with yield",
        types: "bool double int num",
        quotes: TRIPLE,
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "zig",
        keywords: "align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern fn for if inline linksection noalias nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
        constants: "true false null undefined",
        types: "anyerror bool comptime_int f16 f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 usize void",
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "solidity sol",
        keywords: "abstract assembly break constructor continue contract delete do else emit enum error event external fallback for function if immutable import indexed interface internal is library mapping memory modifier new override payable pragma private public pure receive require return returns revert storage struct try type unchecked using view virtual while",
        types: "address bool bytes bytes32 int int256 string uint uint8 uint256",
        ..BRACES
    },
    Language {
        names: "protobuf proto thrift",
        keywords: "enum extend extensions import map message max namespace oneof option optional package public repeated required reserved returns rpc service stream struct syntax to typedef",
        types: "bool bytes double fixed32 fixed64 float i16 i32 i64 int32 int64 list set sfixed32 sfixed64 sint32 sint64 string uint32 uint64 void",
        ..BRACES
    },
    Language {
        names: "graphql gql",
        keywords: "directive enum extend fragment implements input interface mutation on query repeatable scalar schema subscription type union",
        types: "Boolean Float ID Int String",
        line_comments: &["#"],
        quotes: &[over_lines("\"\"\""), quote("\"")],
        sigils: "$@",
        ..BRACES
    },
    Language {
        names: "php php3 phtml",
        keywords: "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enddeclare endfor endforeach endif endswitch endwhile enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while xor yield",
        types: "bool float int iterable mixed never object string void",
        line_comments: &["//", "#"],
        quotes: OVER_LINES,
        sigils: "$",
        ..BRACES
    },
    Language {
        names: "ruby rb rake gemspec gemfile rakefile podfile crystal cr",
        keywords: "alias and attr_accessor attr_reader attr_writer begin break case class def defined? do else elsif end ensure extend for if in include loop module next not or private protected public raise redo require require_relative rescue retry return self super then undef unless until when while yield",
        constants: "true false nil __FILE__",
        line_comments: &["#"],
        quotes: OVER_LINES,
        sigils: ":@$",
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "perl pl pm raku",
        keywords: "and cmp die do else elsif eq for foreach ge given gt if last le local lt my ne next no not or our package print qw redo require return say state sub unless until use when while x xor",
        constants: "undef __PACKAGE__",
        line_comments: &["#"],
        comments_after_spaces: true,
        quotes: OVER_LINES,
        sigils: "$@%",
        ..PLAIN
    },
    Language {
        names: "lua luau",
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        constants: "true false nil self",
        line_comments: &["--"],
        comments: &[("--[[", "]]")],
        quotes: &[quote("\""), quote("'"), exact("[[", "]]")],
        ..PLAIN
    },
    Language {
        names: "r rmd julia jl",
        keywords: "abstract begin break catch const continue do else elseif end export finally for function global if import in let library local macro module mutable next quote repeat return struct try type using where while",
        constants: "true false nothing missing TRUE FALSE NULL NA NaN Inf",
        line_comments: &["#"],
        quotes: &[over_lines("\"\"\""), quote("\"")],
        in_words: "!",
        sigils: "@",
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "elixir ex exs heex erlang erl hrl",
        keywords: "after and begin case catch cond def defdelegate defexception defguard defimpl defmacro defmodule defp defprotocol defstruct do else end fn for fun if import in not of or quote raise receive require rescue super throw try unless unquote use when with",
        constants: "true false nil",
        line_comments: &["#", "%"],
        comments_after_spaces: true,
        quotes: TRIPLE,
        in_words: "?",
        sigils: ":@",
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "haskell hs elm purescript purs idris",
        keywords: "as case class data default deriving do else exposing family forall foreign hiding if import in infix infixl infixr instance let module newtype of port qualified then type where",
        line_comments: &["--"],
        comments: &[("{-", "-}")],
        comments_nest: true,
        quotes: DOUBLE,
        in_words: "'",
        has_calls: false,
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "ocaml ml mli reason coq lean sml",
        keywords: "and as assert begin class constraint def do done downto else end exception external for fun function functor if import in include inherit initializer lazy let match method module mutable namespace new object of open private rec sig struct then theorem to try type val virtual when where while with",
        constants: "true false",
        types: "bool char float int list option string unit",
        line_comments: &[],
        comments: &[("(*", "*)")],
        comments_nest: true,
        quotes: &[over_lines("\"")],
        in_words: "'",
        has_calls: false,
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "clojure clj cljs cljc edn lisp el elisp cl scheme scm racket rkt fennel",
        keywords: "case cond def define defmacro defmethod defmulti defn defn- defprotocol defrecord defun defvar do doseq dotimes fn for if if-let if-not lambda let let* letrec loop ns or and not progn quote recur require set! setq throw try unless when when-let when-not while",
        constants: "nil true false t",
        line_comments: &[";"],
        quotes: &[over_lines("\"")],
        in_words: "-?!*+/<>=.'&",
        sigils: ":",
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "sql mysql postgres postgresql psql plpgsql sqlite ddl",
        keywords: "add all alter analyze and any as asc begin between by case cast check column commit conflict constraint create cross database default delete desc describe distinct do drop else end except exists explain foreign from full function grant group having if in index inner insert intersect into is join key left like limit materialized natural not nothing of offset on or order outer over partition pragma primary procedure recursive references rename replace returning revoke right rollback row rows select set table temporary then to transaction trigger union unique update using vacuum values view virtual when where window with",
        constants: "null true false",
        types: "bigint blob bool boolean char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
        ignores_case: true,
        line_comments: &["--"],
        comments: STARS,
        quotes: &[exact("'", "'"), exact("\"", "\"")],
        ..PLAIN
    },
    Language {
        names: "yaml yml clang-format",
        constants: "true false null yes no on off ~",
        quotes: OVER_LINES,
        quoted_keys: true,
        sigils: "",
        ..DATA
    },
    Language {
        names: "toml ini cfg conf config properties env dotenv editorconfig gitconfig desktop service socket timer",
        constants: "true false",
        line_comments: &["#", ";"],
        quotes: TRIPLE,
        ..DATA
    },
    Language {
        names: "html htm xhtml xml svg xsl xslt plist csproj rss atom xaml xsd mathml html+erb jinja jinja2 hbs handlebars ejs",
        shape: Shape::Tags,
        ..PLAIN
    },
    Language {
        names: "css scss sass less",
        line_comments: &["//"],
        comments_after_spaces: true,
        comments: STARS,
        in_words: "-",
        sigils: "@#$",
        keywords: "@media @import @layer @supports @container @font-face @keyframes @page @mixin @include @use @extend @if @else @for @each @return @function important",
        has_properties: true,
        ..PLAIN
    },
    Language { names: "diff patch", shape: Shape::Lines, ..PLAIN },
    Language { names: "markdown md mdx mkd rst", shape: Shape::Lines, line_comments: &["#"], ..PLAIN },
    Language {
        names: "dockerfile docker containerfile",
        keywords: "FROM AS RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL MAINTAINER",
        line_comments: &["#"],
        comments_after_spaces: true,
        in_words: "-./",
        sigils: "$",
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "makefile make mk mak gnumakefile just justfile",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport",
        line_comments: &["#"],
        quotes: BOTH,
        in_words: "-.",
        sigils: "$",
        line_keys: true,
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "cmake",
        keywords: "if else elseif endif foreach endforeach while endwhile function endfunction macro endmacro return",
        constants: "ON OFF TRUE FALSE",
        ignores_case: true,
        line_comments: &["#"],
        quotes: &[over_lines("\"")],
        sigils: "$",
        ..PLAIN
    },
    Language {
        names: "hcl terraform tf tfvars nomad",
        keywords: "data for for_each if in locals module output provider resource terraform variable",
        constants: "true false null",
        types: "any bool list map number object set string tuple",
        line_comments: &["#", "//"],
        comments: STARS,
        quotes: DOUBLE,
        in_words: "-",
        ..PLAIN
    },
    Language {
        names: "nix",
        keywords: "assert else if in inherit import let or rec then with",
        constants: "true false null",
        line_comments: &["#"],
        comments: STARS,
        quotes: &[exact("''", "''"), over_lines("\"")],
        in_words: "-'",
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "powershell ps1 psm1 pwsh",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach from function if in param process return switch throw trap try until using while",
        ignores_case: true,
        line_comments: &["#"],
        comments_after_spaces: true,
        comments: &[("<#", "#>")],
        quotes: &[Quote { escapes: false, ..over_lines("\"") }, exact("'", "'")],
        in_words: "-",
        sigils: "$",
        has_commands: true,
        ..PLAIN
    },
    Language {
        names: "bat cmd batch",
        keywords: "call cd copy del do echo else endlocal exist exit for goto if in mkdir move not off on pause pushd popd ren rmdir set setlocal shift start",
        ignores_case: true,
        line_comments: &["rem ", "REM ", "::"],
        quotes: DOUBLE,
        sigils: "%",
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "awk gawk",
        keywords: "BEGIN END break continue delete do else exit for function getline if in next print printf return while",
        line_comments: &["#"],
        quotes: DOUBLE,
        sigils: "$",
        has_patterns: true,
        ..PLAIN
    },
    Language {
        names: "nginx caddyfile apache apacheconf htaccess",
        constants: "on off",
        line_comments: &["#"],
        comments_after_spaces: true,
        in_words: "-.",
        sigils: "$",
        has_calls: false,
        has_commands: true,
        ..PLAIN
    },
    Language {
        names: "tex latex sty bib",
        line_comments: &["%"],
        quotes: &[],
        sigils: "\\",
        has_calls: false,
        ..PLAIN
    },
    Language {
        names: "nim nims",
        keywords: "addr and as asm bind block break case cast concept const continue converter defer discard distinct do elif else end enum except export finally for from func if import in include interface is isnot iterator let macro method mixin mod nil not notin object of or out proc ptr raise ref return shl shr static template try tuple type using var when while xor yield",
        constants: "true false nil",
        types: "bool char float int seq string",
        line_comments: &["#"],
        quotes: &[over_lines("\"\"\""), quote("\"")],
        has_chars: true,
        capital_types: true,
        ..PLAIN
    },
    Language {
        names: "asm nasm s x86asm armasm",
        line_comments: &[";", "#", "//"],
        comments: STARS,
        sigils: "%",
        in_words: ".",
        has_calls: false,
        has_commands: true,
        ..PLAIN
    },
    Language {
        names: "vhdl vhd ada adb ads pascal pas delphi",
        keywords: "abort abs access all and architecture array at begin body case constant declare delay div do downto else elsif end entity entry exception exit for function generic goto if implementation in interface is library loop mod new not null of on or others out package port private procedure process program record rem repeat return reverse select separate signal subtype task then to type unit until use uses var variable when while with xor",
        ignores_case: true,
        line_comments: &["--", "//"],
        comments: &[("(*", "*)")],
        quotes: DOUBLE,
        ..PLAIN
    },
    Language {
        names: "verilog v sv systemverilog svh",
        keywords: "always always_comb always_ff always_latch and assign begin case default else end endcase endfunction endmodule endtask for function generate genvar if initial inout input logic localparam module negedge not or output parameter posedge reg return signed task typedef wire xor",
        line_comments: &["//"],
        comments: STARS,
        quotes: DOUBLE,
        in_words: "'",
        sigils: "$",
        ..PLAIN
    },
    Language {
        names: "fortran f90 f95 f03 f",
        keywords: "allocatable allocate call case contains cycle deallocate dimension do else elseif end enddo endif exit function if implicit in integer intent interface module none only out parameter pointer print private program public read real result return save select subroutine then type use where while write character complex logical",
        ignores_case: true,
        line_comments: &["!"],
        ..PLAIN
    },
    Language {
        names: "prisma",
        keywords: "datasource enum generator model type view",
        constants: "true false",
        types: "BigInt Boolean Bytes DateTime Decimal Float Int Json String",
        line_comments: &["//"],
        sigils: "@",
        quotes: DOUBLE,
        ..PLAIN
    },
];
