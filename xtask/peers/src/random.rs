//! Random texts, the same in every run: what real corpora do not hold.

/// The linear congruential generator of `bench-data/cases`.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A text of up to 24 parts, each drawn from one of the kinds below; one in some two hundred repeats
    /// a part many times.
    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(24) {
            let mut part = String::new();
            self.push_part(&mut part);
            let times = match self.below(2400) {
                0 => 1 + self.below(400),
                _ => 1,
            };
            text.extend(std::iter::repeat_n(&*part, times));
        }
        text
    }

    /// Bytes of all kinds: any, broken characters, and text.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..=self.below(12) {
            match self.below(4) {
                0 => bytes.extend((0..=self.below(8)).map(|_| self.below(256) as u8)),
                1 => bytes.push(self.pick(&[0x80, 0xBF, 0xC0, 0xC3, 0xE4, 0xED, 0xF0, 0xF4, 0xFF])),
                2 => {
                    let mut part = String::new();
                    self.push_part(&mut part);
                    let cut = self.below(part.len() + 1);
                    bytes.extend(&part.as_bytes()[..cut]);
                }
                _ => self.push_part_bytes(&mut bytes),
            }
        }
        bytes
    }

    fn push_part_bytes(&mut self, bytes: &mut Vec<u8>) {
        let mut part = String::new();
        self.push_part(&mut part);
        bytes.extend(part.as_bytes());
    }

    fn push_part(&mut self, text: &mut String) {
        let some = 1 + self.below(6);
        match self.below(16) {
            0 | 1 => (0..some).for_each(|_| text.push((b'a' + self.below(26) as u8) as char)),
            2 => (0..some).for_each(|_| text.push((b'A' + self.below(26) as u8) as char)),
            3 => (0..some).for_each(|_| text.push((b'0' + self.below(10) as u8) as char)),
            4 => (0..some).for_each(|_| text.push((0x21 + self.below(0x5E) as u8) as char)),
            5 | 6 => (0..some).for_each(|_| text.push(self.pick(BLANKS))),
            7 => text.push(' '),
            8 => text.push_str(self.pick(CONTRACTIONS)),
            9 => text.push_str(self.pick(WORDS)),
            10 => text.push_str(self.pick(AWKWARD)),
            11 => (0..some).for_each(|_| text.push(self.in_range(0xA0, 0x2AF))),
            12 => (0..some).for_each(|_| text.push(self.in_range(0x300, 0x1FFF))),
            13 => (0..some).for_each(|_| text.push(self.in_range(0x2E80, 0xD7FF))),
            14 => (0..some).for_each(|_| text.push(self.in_range(0x10000, 0x1FFFF))),
            // All planes, assigned or not.
            _ => (0..some).for_each(|_| text.push(self.in_range(0, 0x10FFFF))),
        }
    }

    /// A character from this range of code points; for a surrogate U+FFFD.
    fn in_range(&mut self, from: u32, to: u32) -> char {
        let code = from + self.below((to - from + 1) as usize) as u32;
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// Blanks of every kind, and what is taken for a blank though it is none.
const BLANKS: &[char] = &[
    ' ', ' ', ' ', '\n', '\n', '\r', '\t', '\u{B}', '\u{C}', '\u{1C}', '\u{85}', '\u{A0}',
    '\u{1680}', '\u{180E}', '\u{2003}', '\u{200B}', '\u{2028}', '\u{2029}', '\u{202F}', '\u{205F}',
    '\u{3000}', '\u{FEFF}',
];

/// With both letter cases, other apostrophes, and the letters that fold to `s` and `k`.
const CONTRACTIONS: &[&str] = &[
    "'s",
    "'t",
    "'re",
    "'ve",
    "'m",
    "'ll",
    "'d",
    "'S",
    "'T",
    "'RE",
    "'Ve",
    "'M",
    "'lL",
    "'D",
    "'",
    "''s",
    "'sd",
    "\u{2019}s",
    "'\u{17F}",
    "'\u{212A}",
    "don't",
    "DON'T",
    "we'LLs",
    "'l",
    "'v",
    "I'm",
    "y'all'd've",
    "\u{2bc}s",
];

const WORDS: &[&str] = &[
    "the",
    " the",
    "The",
    "THE",
    "theThe",
    "HTTPServer",
    "tokenization",
    " naïve",
    "straße",
    "Ελλάδα",
    "привет",
    " Москва",
    "中文",
    "标记化",
    "日本語",
    "トークン",
    "한국어",
    "ไทย",
    "हिन्दी",
    "עברית",
    "العربية",
    "e\u{301}",
    "İstanbul",
    "ǅ",
    "ʰʷ",
    "ª",
    "Ⅷ",
    "½",
    "٣٤٥",
    "１２３４",
    "http://",
    "//",
    "/\n",
    "!\r\n",
    "::",
    "=>",
    "();\n",
    "<|endoftext|>",
    "<|",
    "|>",
    "endoftext",
    "<|fim_",
    "<|endofprompt|>",
    "<|start|>",
    "<|reserved_200500|>",
];

/// Sequences that are joined, hidden, reversed, private or no characters at all.
const AWKWARD: &[&str] = &[
    "👩\u{200D}👩\u{200D}👧",
    "🏳\u{FE0F}\u{200D}🌈",
    "🇩🇪",
    "1\u{FE0F}\u{20E3}",
    "👍🏽",
    "\u{200D}",
    "\u{200C}",
    "\u{AD}",
    "\u{202E}",
    "\u{E000}",
    "\u{F8FF}",
    "\u{FFFE}",
    "\u{FFFF}",
    "\u{10FFFF}",
    "\u{FFFD}",
    "\0",
    "\u{7F}",
    "\u{E0061}",
    "\u{1F1E6}",
    "\u{1100}\u{1161}\u{11A8}",
    "\u{0E33}",
    "\u{0F73}",
    "\u{1D400}",
    "\u{2460}",
    "\u{3007}",
    "\u{4DC0}",
    "\u{20000}",
    "\u{31350}",
];

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_texts_and_another_seed_others() {
        let texts = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.text()).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn texts_hold_characters_of_every_length_and_bytes_are_often_no_text() {
        let mut random = Random::new(3);
        let texts: String = (0..500).map(|_| random.text()).collect();
        for len in 1..=4 {
            assert!(texts.chars().any(|c| c.len_utf8() == len), "{len}");
        }
        let broken = (0..500).filter(|_| std::str::from_utf8(&random.bytes()).is_err());
        assert!(broken.count() > 100);
    }
}
