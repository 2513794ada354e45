//! Random words, prose, code and ids: the same for the same seed.

/// Pseudo-random numbers (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    /// As many between 1 and 10 as between 10 and 100: how words and sizes of files are distributed.
    pub(super) fn log_uniform(&mut self, least: u64, most: u64) -> u64 {
        let doublings = (most / least.max(1)).max(1).ilog2() + 1;
        let low = least << self.below(doublings.into());
        (low + self.below(low)).min(most)
    }

    /// A total in so many shares, a few of them much larger than the others.
    pub(super) fn shares(&mut self, total: usize, count: usize) -> Vec<usize> {
        let weights: Vec<u64> = (0..count).map(|_| self.log_uniform(1, 200)).collect();
        let sum: u64 = weights.iter().sum();
        weights.into_iter().map(|weight| (total as u64 * weight / sum.max(1)) as usize).collect()
    }
}

const SYLLABLES: &[&str] = &[
    "ba", "ce", "di", "fo", "gu", "ha", "in", "ka", "le", "mi", "no", "or", "pa", "re", "si", "to", "un", "ve", "wo",
    "tion", "ment", "er",
];
const COMMON: &[&str] = &[
    "the", "a", "of", "and", "to", "file", "test", "in", "is", "it", "error", "line", "with", "for", "value", "this",
    "not", "read", "write", "when",
];
const WIDE: &[&str] = &["会话记录", "検索する", "오류", "→", "é", "“ß”", "👩‍💻", "∑"];
const WORDS: u64 = 16_384;
const CODE_LINES: u64 = 8_192;

/// Text of the kinds that sessions hold.
pub(super) struct Text {
    pub(super) random: Random,
    words: Vec<String>,
    code: Vec<String>,
}

impl Text {
    pub(super) fn new(seed: u64) -> Text {
        let mut random = Random(seed);
        let mut words: Vec<String> = COMMON.iter().map(|word| (*word).to_owned()).collect();
        while (words.len() as u64) < WORDS {
            let count = random.between(2, 4);
            words.push((0..count).map(|_| random.pick(SYLLABLES)).collect());
        }
        let mut text = Text { random, words, code: Vec::new() };
        text.code = (0..CODE_LINES).map(|_| text.code_line()).collect();
        text
    }

    fn word(&mut self) -> &str {
        let at = self.random.log_uniform(1, WORDS) - 1;
        &self.words[at as usize]
    }

    pub(super) fn words(&mut self, count: u64) -> String {
        let mut text = String::new();
        for at in 0..count {
            text.push_str(if at == 0 { "" } else { " " });
            let word = self.word().to_owned();
            text.push_str(&word);
        }
        text
    }

    pub(super) fn identifier(&mut self) -> String {
        self.words(2).replace(' ', "_")
    }

    fn code_line(&mut self) -> String {
        let indent = "    ".repeat(self.random.below(4) as usize);
        let (name, other) = (self.identifier(), self.identifier());
        match self.random.below(6) {
            0 => format!("{indent}let {name} = self.{other}(\"{}\")?;", self.words(3)),
            1 => format!("{indent}// {}", self.words(9)),
            2 => format!("{indent}if {name} != {other}[{}] {{", self.random.below(99)),
            3 => format!("{indent}\t\"{name}\": \"{}\\n\",", self.words(4)),
            4 => format!("{indent}pub fn {name}(&self, {other}: &str) -> Option<u64> {{"),
            _ => format!("{indent}}}"),
        }
    }

    /// Lines of code, at least so many bytes.
    pub(super) fn code(&mut self, bytes: u64) -> String {
        let (mut text, mut at) = (String::new(), self.random.below(CODE_LINES));
        while (text.len() as u64) < bytes {
            text.push_str(&self.code[at as usize]);
            text.push('\n');
            at = (at + 1) % CODE_LINES;
        }
        text
    }

    /// Markdown, at least so many bytes.
    pub(super) fn prose(&mut self, bytes: u64) -> String {
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            let piece = match self.random.below(20) {
                0 => format!("## {}", self.words(4)),
                1 => format!("{0} {1} {0}", self.random.pick(WIDE), self.random.pick(WIDE)),
                2 => format!("```rust\n{}```", self.code(400)),
                3 => format!("- {}\n- `{}`", self.words(8), self.identifier()),
                _ => format!("{}.", self.words(18)),
            };
            text.push_str(&piece);
            text.push_str("\n\n");
        }
        text
    }

    /// The output of a tool: mostly short, sometimes very long.
    pub(super) fn output(&mut self) -> String {
        let bytes = self.random.log_uniform(100, 20_000);
        self.code(bytes)
    }

    /// Base64, as in pictures and signatures.
    pub(super) fn base64(&mut self, chars: u64) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        while (text.len() as u64) < chars {
            let bits = self.random.next();
            text.extend((0..10).map(|digit| char::from(DIGITS[(bits >> (6 * digit)) as usize & 63])));
        }
        text
    }

    /// A name such as `msg_01…`.
    pub(super) fn name(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:08x}", self.random.next(), self.random.next() as u32)
    }

    pub(super) fn uuid(&mut self) -> String {
        let (high, low) = (self.random.next(), self.random.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }
}
