//! Words that follow "password" and the like in code, forms and sentences, and are no secrets.

/// Whether a word is one of them, in any case.
pub(super) fn is_word(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut lower = [0; LONGEST_BYTES];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    WORDS.binary_search_by(|known| known.as_bytes().cmp(lower)).is_ok()
}

/// No word of the list is longer.
const LONGEST_BYTES: usize = 16;

/// Sorted, for the search.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "a", "able", "about", "above", "absent", "accepted", "access", "account", "add", "admin", "again", "all",
    "also", "always", "an", "and", "anonymous", "any", "api", "apikey", "are", "array", "as", "asked", "assigned",
    "async", "at", "auth", "authentication", "authorization", "auto", "available", "await", "bad", "base",
    "base64", "basic", "bcrypt", "be", "bearer", "because", "been", "before", "being", "below", "blank", "bool",
    "boolean", "both", "but", "by", "byte", "bytes", "cached", "call", "can", "case", "changed", "char",
    "character", "characters", "check", "checked", "class", "clear", "client", "code", "common", "compromised",
    "config", "configured", "confirm", "const", "context", "cookie", "copied", "correct", "create", "created",
    "credential", "credentials", "crypt", "current", "data", "database", "date", "default", "defined", "deleted",
    "deprecated", "description", "dict", "different", "disabled", "does", "done", "double", "each", "email",
    "empty", "enabled", "encoded", "encrypted", "enter", "entered", "enum", "env", "environment", "error",
    "exactly", "example", "exists", "expired", "exposed", "extern", "failed", "false", "field", "fields", "file",
    "final", "fine", "first", "float", "for", "forgot", "forgotten", "format", "found", "from", "function",
    "generated", "get", "given", "good", "hardcoded", "has", "hash", "hashed", "header", "hello", "here", "hidden",
    "if", "ignored", "import", "in", "incorrect", "info", "input", "int", "integer", "internal", "invalid", "is",
    "it", "item", "json", "just", "keep", "kept", "key", "keyring", "keys", "known", "label", "last", "leaked",
    "least", "length", "let", "list", "literal", "local", "logged", "login", "long", "lost", "manual", "map",
    "masked", "match", "max", "maybe", "me", "message", "method", "min", "missing", "more", "must", "my", "name",
    "needed", "never", "new", "nil", "no", "none", "not", "now", "null", "number", "object", "of", "old",
    "omitted", "on", "one", "only", "option", "optional", "or", "other", "our", "out", "param", "parameter",
    "params", "pass", "passed", "passphrase", "passwd", "password", "passwords", "path", "plain", "plaintext",
    "please", "present", "previous", "print", "private", "production", "prompt", "properties", "property", "props",
    "protected", "provided", "public", "pwd", "random", "raw", "read", "readonly", "ready", "rejected", "remember",
    "removed", "renewed", "repeat", "request", "require", "required", "reset", "result", "return", "returned",
    "revoked", "right", "role", "root", "rotated", "safe", "salt", "same", "saved", "schema", "scope", "secret",
    "secrets", "secure", "select", "self", "sent", "server", "service", "session", "set", "sha", "shared", "short",
    "should", "show", "shown", "simple", "single", "some", "something", "static", "still", "stored", "str",
    "string", "strings", "strong", "struct", "success", "sudo", "super", "supplied", "system", "temporary", "test",
    "text", "textarea", "that", "the", "their", "then", "there", "these", "this", "to", "token", "tokens", "too",
    "true", "type", "typed", "typeof", "undefined", "under", "unique", "unknown", "unset", "unused", "updated",
    "us", "use", "used", "user", "username", "uses", "using", "utf", "uuid", "valid", "validated", "value",
    "values", "var", "variable", "vault", "vec", "verified", "via", "void", "was", "we", "weak", "when", "where",
    "which", "while", "will", "with", "without", "working", "wrong", "yes", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_sorted_and_short() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.len() <= LONGEST_BYTES));
        assert!(is_word("Password") && !is_word("tide"));
    }
}
