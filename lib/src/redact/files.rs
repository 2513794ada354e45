//! Files whose content is a secret as a whole, whatever is in it.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind, packed};
use memchr::{memchr, memmem, memrchr};
use regex::Regex;

use super::RuleError;

/// Patterns of the file's name, or of the end of its path.
#[rustfmt::skip]
const SENSITIVE: &[&str] = &[
    ".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", "credentials.json", "credentials.y*ml", "client_secret*.json",
    "service-account*.json", "service_account*.json", "secrets.y*ml", "secrets.json", "secrets.toml",
    "secrets.*.y*ml", "secrets.env", "secret.y*ml", "*.secrets", ".ssh/id_*", ".ssh/*_key", ".ssh/*_rsa", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", ".npmrc", ".netrc", "_netrc", ".pypirc",
    ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".aws/credentials", ".docker/config.json",
    ".kube/config", "kubeconfig", "*.kubeconfig", "*kubeconfig*.y*ml", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".config/gcloud/**", ".config/gh/hosts.yml",
    "application_default_credentials.json", ".credentials.json", "oauth_creds.json", ".codex/auth.json", "*.tfstate",
    "terraform.tfvars", "*.auto.tfvars", ".vault-token",
    ".terraformrc", "master.key", ".s3cfg", ".boto", "wp-config.php", ".dockercfg", ".dockerconfigjson", "etc/shadow",
];

/// Examples for people, and the half of a key that is public.
#[rustfmt::skip]
const OPEN: &[&str] = &[
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.*.example", "*.env.example", "*.env.sample",
    "*.example", "*.sample", "*.pub", ".env.d.ts", ".env?example", ".env?sample", ".env?template", ".env?dist", "*.env.js", "*.env.ts",
];

/// A longer text is no path.
const MAX_PATH_BYTES: usize = 4096;

/// Which files are secrets as a whole.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The user's own.
    users: Option<Users>,
}

#[derive(Clone, Debug)]
struct Users {
    pattern: Regex,
    hints: Hints,
}

/// Our own, compiled when the first path is judged: most texts have no hint of one.
static OURS: LazyLock<Option<Ours>> =
    LazyLock::new(|| Some(Ours { sensitive: compile(SENSITIVE).ok()?, open: compile(OPEN).ok()? }));

static OUR_HINTS: LazyLock<Hints> = LazyLock::new(|| Hints::new(SENSITIVE));

#[derive(Debug)]
struct Ours {
    sensitive: Regex,
    open: Regex,
}

/// Texts of which every path of such a file has one in it, in the case in which people write them.
#[derive(Clone, Debug)]
struct Hints {
    search: Search,
    /// Whether a path ends with the text: `self.keys()` names no `*.key`.
    ends: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Search {
    /// Many bytes at a time, where the processor can.
    Packed(packed::Searcher),
    OneByOne(AhoCorasick),
    /// A pattern of the user could be anything.
    Anything,
}

impl Files {
    /// Adds the user's globs to our own.
    pub(super) fn new(globs: &[String]) -> Result<Files, RuleError> {
        if let Some(glob) = globs.iter().find(|glob| glob.contains(['[', ']', '{', '}'])) {
            let why = "only `*`, `**` and `?` stand for other characters".to_owned();
            return Err(RuleError::Glob { globs: glob.clone(), why });
        }
        if globs.is_empty() {
            return Ok(Files { users: None });
        }
        let globs: Vec<&str> = globs.iter().map(String::as_str).collect();
        let hints = Hints::new(&[SENSITIVE, &globs].concat());
        Ok(Files { users: Some(Users { pattern: compile(&globs)?, hints }) })
    }

    /// Whether a text could have the path of such a file in it: most have not, and this is fast.
    pub(super) fn may_be_named_in(&self, text: &[u8]) -> bool {
        self.hints().find(text, |_| Found::Enough) || has_quotes_in_word(text)
    }

    /// The lines of a text that could have the path of such a file in them.
    pub(super) fn lines_naming<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let hints = self.hints();
        if matches!(hints.search, Search::Anything) {
            return text.lines().collect();
        }
        let (bytes, mut lines, mut done) = (text.as_bytes(), Vec::new(), 0);
        hints.find(bytes, |at| {
            if at >= done {
                let start = memrchr(b'\n', &bytes[..at]).map_or(0, |before| before + 1);
                done = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
                lines.push(&text[start..done]);
            }
            Found::GoOn
        });
        lines
    }

    /// The user's globs and ours, or ours alone.
    fn hints(&self) -> &Hints {
        self.users.as_ref().map_or(&OUR_HINTS, |users| &users.hints)
    }

    pub(super) fn is_sensitive(&self, path: &str) -> bool {
        if path.len() > MAX_PATH_BYTES || path.contains('\n') {
            return false;
        }
        let path = path.trim().trim_matches(['"', '\'', '`']).replace('\\', "/");
        let is_users = self.users.as_ref().is_some_and(|users| users.pattern.is_match(&path));
        let is_ours = |ours: &Ours| ours.sensitive.is_match(&path) && !ours.open.is_match(&path);
        is_users || OURS.as_ref().is_some_and(is_ours)
    }
}

fn compile(globs: &[&str]) -> Result<Regex, RuleError> {
    let alternatives: Vec<String> = globs.iter().copied().map(pattern).collect();
    let whole = format!("(?i)(?:^|/)(?:{})$", alternatives.join("|"));
    Regex::new(&whole).map_err(|error| RuleError::Glob { globs: alternatives.join(" "), why: error.to_string() })
}

/// Whether two quotes are in the middle of a word, as in `cat .en""v`; they may be escaped for JSON.
pub(super) fn has_quotes_in_word(text: &[u8]) -> bool {
    static QUOTES: LazyLock<[memmem::Finder<'static>; 4]> =
        LazyLock::new(|| ["''", "\"\"", r#"\"\""#, r#"\\\"\\\""#].map(memmem::Finder::new));
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.');
    QUOTES.iter().any(|quotes| {
        let length = quotes.needle().len();
        quotes
            .find_iter(text)
            .any(|at| at > 0 && is_word(text.get(at - 1)) && is_word(text.get(at + length)))
    })
}

/// Whether `.env` here is `process.env.NAME`: the variables of a program, and no file.
fn is_process_env(text: &[u8], place: &std::ops::Range<usize>) -> bool {
    let after = text[place.start..].strip_prefix(b".env");
    text[..place.start].ends_with(b"process") && matches!(after, Some([b'.', b'A'..=b'Z', ..] | [b'[', ..]))
}

/// Whether one place is enough.
#[derive(PartialEq, Eq)]
enum Found {
    Enough,
    GoOn,
}

impl Hints {
    fn new(globs: &[&str]) -> Hints {
        let hints: Option<Vec<&str>> = globs.iter().copied().map(hint).collect();
        let Some(mut hints) = hints else { return Hints { search: Search::Anything, ends: Vec::new() } };
        // The few that people write in capitals.
        hints.extend([".ENV", ".PEM", ".KEY", "Credentials", "CREDENTIALS", "Secrets", "SECRETS", "Kubeconfig"]);
        let is_end = |hint: &str| {
            let lower = hint.to_lowercase();
            globs.iter().filter(|glob| hint_of(glob) == lower).all(|glob| glob.ends_with(&lower))
        };
        // `.env` is in `.envrc`, and fewer are faster; `.keystore` does not end with `.key`.
        let all = hints.clone();
        hints.retain(|hint| !all.iter().any(|other| other != hint && hint.contains(other) && !is_end(other)));
        hints.sort_unstable();
        hints.dedup();
        let ends = hints.iter().map(|hint| is_end(hint)).collect();
        let mut config = packed::Config::new();
        let packed = config.match_kind(packed::MatchKind::LeftmostLongest).builder().extend(&hints).build();
        let one_by_one = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&hints);
        let search = match packed {
            Some(packed) => Search::Packed(packed),
            None => one_by_one().map_or(Search::Anything, Search::OneByOne),
        };
        Hints { search, ends }
    }

    /// Calls `found` with the places of hints; returns whether one was enough.
    fn find(&self, text: &[u8], mut found: impl FnMut(usize) -> Found) -> bool {
        let mut is_enough = |hint: usize, place: std::ops::Range<usize>| {
            let goes_on =
                text.get(place.end).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'('));
            let is_file = !(goes_on && self.ends[hint] || is_process_env(text, &place));
            is_file && found(place.start) == Found::Enough
        };
        match &self.search {
            Search::Packed(search) => {
                search.find_iter(text).any(|it| is_enough(it.pattern().as_usize(), it.start()..it.end()))
            }
            Search::OneByOne(search) => search.find_iter(text).any(|it| is_enough(it.pattern().as_usize(), it.range())),
            Search::Anything => found(0) == Found::Enough,
        }
    }
}

/// The longest part of a glob that stands in every path that it matches, if it is long enough to be rare.
fn hint(glob: &str) -> Option<&str> {
    Some(hint_of(glob)).filter(|part| part.len() >= 3)
}

/// Parts of paths that are in every other text, where another part will do.
const FREQUENT: &[&str] = &["config", "config.json", ".config", "_key", "_rsa"];

fn hint_of(glob: &str) -> &str {
    let parts = || glob.trim_start_matches("~/").split(['*', '?', '/']);
    // Short ones are frequent, too, and make the search slower.
    let is_rare = |part: &&str| part.len() >= 4 && !FREQUENT.contains(part);
    let longest = |part: &&str| part.len();
    parts()
        .filter(is_rare)
        .max_by_key(longest)
        .or_else(|| parts().max_by_key(longest))
        .unwrap_or_default()
}

/// A glob as an expression: `*` and `?` stay in a folder, `**` does not.
fn pattern(glob: &str) -> String {
    let glob = glob.strip_prefix("~/").or_else(|| glob.strip_prefix('/')).unwrap_or(glob);
    let mut out = String::new();
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = after;
        } else {
            match c {
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_at_the_end_of_paths_ends_there() {
        let files = Files::new(&[]).unwrap();
        for text in [
            "cat a.key",
            "a.key\\n",
            "\"a.pem\"",
            "x.KEY",
            "store.keystore",
            "a.keys b.key",
            ".env.local",
            "cat .en''v",
        ] {
            assert!(files.may_be_named_in(text.as_bytes()), "{text}");
        }
        for text in [".kube/config", "/etc/shadow", "~/.config/gcloud/x", ".docker/config.json", "process.env"] {
            assert!(files.may_be_named_in(text.as_bytes()), "{text}");
        }
        for text in ["the config", "process.env.HOME", "tsconfig.json"] {
            assert!(!files.may_be_named_in(text.as_bytes()), "{text}");
        }
        for text in ["self.keys()", "map.key(a)", "a.key_id", "a.pems", "keystore", "the environment"] {
            assert!(!files.may_be_named_in(text.as_bytes()), "{text}");
        }
        let text = "one\ncat a.key && cat .env\ntwo.keys\n.env:1:x";
        assert_eq!(files.lines_naming(text), ["cat a.key && cat .env", ".env:1:x"]);
    }

    #[test]
    fn files_are_known_by_name_and_folder() {
        let files = Files::new(&["*.tide".to_owned(), "vault/**".to_owned()]).unwrap();
        for path in [
            ".env",
            "/srv/app/.env.production",
            "C:\\app\\.env",
            "credentials.json",
            "deploy/secrets.yaml",
            "secrets.yml",
            "/home/ada/.ssh/id_ed25519",
            "~/.ssh/id_work",
            "server.pem",
            ".npmrc",
            "~/.netrc",
            "/home/ada/.aws/credentials",
            "kubeconfig",
            ".env-prod",
            ".env_prod",
            ".envrc",
            "my-kubeconfig-dev.yaml",
            "~/.kube/config",
            "a.tide",
            "x/vault/deep/file",
        ] {
            assert!(files.is_sensitive(path), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            ".env-example",
            ".env_template",
            "src/environment.ts",
            "id_ed25519.pub",
            "README.md",
            "self.keys",
            "credentials.rs",
            "config",
            "/home/ada/.aws/config",
            "pem.rs",
            "",
            "~/.ssh/known_hosts",
        ] {
            assert!(!files.is_sensitive(path), "{path}");
        }
    }
}
