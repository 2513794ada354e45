//! Pseudo-random choices, the same for the same kind and number.

pub(crate) struct Random(u64);

pub(crate) const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
pub(crate) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(crate) const DIGITS: &str = "0123456789";
pub(crate) const HEX: &str = "0123456789abcdef";
pub(crate) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(crate) const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
pub(crate) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(crate) const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const WORDS: &str = "tide moon harbour lantern sailor kelp granite meadow orchard violin copper thunder island walnut marble pepper candle forest river bridge window garden summer winter rocket planet silver golden ocean desert castle dragon puzzle ribbon saddle tunnel velvet wizard yellow zephyr basket button camera dinner engine finger guitar hammer insect jacket kitten ladder magnet needle oyster pencil rabbit school ticket umbrella valley wagon";

impl Random {
    pub(crate) fn new(kind: &str, at: u64) -> Random {
        let seed = kind.bytes().fold(at.wrapping_mul(0x9e37_79b9_7f4a_7c15), |seed, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut random = Random(seed | 1);
        (0..4).for_each(|_| _ = random.below(2));
        random
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    pub(crate) fn signs(&mut self, alphabet: &str, count: usize) -> String {
        (0..count).map(|_| alphabet.as_bytes()[self.below(alphabet.len())] as char).collect()
    }

    pub(crate) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    pub(crate) fn word(&mut self) -> &'static str {
        let words: Vec<&str> = WORDS.split(' ').collect();
        words[self.below(words.len())]
    }

    pub(crate) fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|count| self.signs(HEX, count)).join("-")
    }

    pub(crate) fn sentence(&mut self) -> String {
        let count = 5 + self.below(10);
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// A password as people make them.
    pub(crate) fn password(&mut self) -> String {
        match self.below(5) {
            0 => format!("{}{}{}", self.word(), self.signs(DIGITS, 4), self.one(&["!", "#", "$", "%", "&"])),
            1 => format!("{}{}!{}", self.word().to_uppercase(), self.word(), self.signs(DIGITS, 2)),
            2 => self.signs("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!#%*+_-", 12) + "7q",
            3 => format!("{}-{}-{}", self.word(), self.signs(DIGITS, 2), self.word()),
            _ => self.signs(ALNUM, 16) + "4z",
        }
    }
}
