//! Patterns: the regular expressions that define pre-tokens.

use std::sync::{Arc, OnceLock};

use crate::{Analysis, Engine, Lexer, PatternError, TranscribedLexer, difference};

/// The published spelling, without possessive quantifiers, of gpt2, r50k and p50k.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The published spelling, without possessive quantifiers, of cl100k (and Llama 3).
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// tiktoken 0.14's spelling of cl100k. The pieces differ where a text ends in a newline and blanks:
/// `\s++$` comes before the branch that takes newlines.
const CL100K_OF_TIKTOKEN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// The spelling of Qwen2, Qwen2.5 and Qwen3.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The spelling of Mistral's tekken.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Numbers in groups of three: the first stage of deepseek_v3.
const DIGIT_GROUPS: &str = r"\p{N}{1,3}";

/// Each number alone.
const SINGLE_DIGITS: &str = r"\p{N}";

/// Han characters and kana: the second stage of deepseek_v3.
const HAN_AND_KANA: &str = "[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";

/// The third stage of deepseek_v3. (In its file the newlines stand as themselves.)
const DEEPSEEK_V3: &str = concat!(
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
);

/// The published spelling of o200k.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// A pre-tokenization pattern: a regular expression whose matches, found one after the other,
/// are the pre-tokens of a text.
///
/// Cheap to clone. Making one checks nothing: whether an engine can run the pattern is known
/// when a [lexer](Pattern::lexer) is made from it.
///
/// ```
/// use bpe_lexers::{Family, Pattern};
///
/// let own = Pattern::new(r"\w+|\s+");
/// assert_eq!(own.family(), None);
/// // A known pattern is recognised, wherever it was read from and however it is spelt.
/// assert_eq!(Pattern::new(Pattern::o200k().as_str()).family(), Some(Family::O200k));
/// assert_eq!(Pattern::new(r"[\p{N}]").family(), Some(Family::SingleDigits));
/// ```
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    /// The family, when it is known or was asked for.
    family: Arc<OnceLock<Option<Family>>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl core::fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_tuple("Pattern")
            .field(&self.source)
            .finish()
    }
}

/// A pattern that this crate knows, so that it can do more with it than run it: transcribe it
/// by hand ([`TranscribedLexer`](crate::TranscribedLexer)) and find
/// [safe cuts](crate::Cuts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// gpt2, r50k, p50k.
    Gpt2,
    /// cl100k, and Llama 3, which took it over.
    Cl100k,
    /// cl100k as tiktoken 0.14 spells it: other pieces where a text ends in a newline and blanks,
    /// with the same tokens.
    Cl100kOfTiktoken,
    /// o200k, and gpt-oss.
    O200k,
    /// Qwen2 and Qwen3: cl100k with each number alone.
    Qwen2,
    /// Mistral's tekken: o200k without contractions and with each number alone.
    Tekken,
    /// Numbers in groups of three at most; what stands between them is a gap.
    DigitGroups,
    /// Each number alone; what stands between them is a gap.
    SingleDigits,
    /// Runs of Han characters and kana, the second stage of deepseek_v3.
    HanAndKana,
    /// The third stage of deepseek_v3. It matches no number and no control character.
    DeepseekV3,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 10] = [
        Self::Gpt2,
        Self::Cl100k,
        Self::Cl100kOfTiktoken,
        Self::O200k,
        Self::Qwen2,
        Self::Tekken,
        Self::DigitGroups,
        Self::SingleDigits,
        Self::HanAndKana,
        Self::DeepseekV3,
    ];

    /// Returns the spelling that defines the family.
    fn spelling(self) -> &'static str {
        match self {
            Self::Gpt2 => GPT2,
            Self::Cl100k => CL100K,
            Self::Cl100kOfTiktoken => CL100K_OF_TIKTOKEN,
            Self::O200k => O200K,
            Self::Qwen2 => QWEN2,
            Self::Tekken => TEKKEN,
            Self::DigitGroups => DIGIT_GROUPS,
            Self::SingleDigits => SINGLE_DIGITS,
            Self::HanAndKana => HAN_AND_KANA,
            Self::DeepseekV3 => DEEPSEEK_V3,
        }
    }

    /// Returns whether the matches of the pattern cover every text, so that it makes no
    /// [gap](crate::Label::Gap).
    pub fn covers_every_text(self) -> bool {
        match self {
            Self::Gpt2
            | Self::Cl100k
            | Self::Cl100kOfTiktoken
            | Self::O200k
            | Self::Qwen2
            | Self::Tekken => true,
            Self::DigitGroups | Self::SingleDigits | Self::HanAndKana | Self::DeepseekV3 => false,
        }
    }
}

impl Pattern {
    /// Returns the pattern of gpt2, r50k_base, p50k_base and p50k_edit.
    pub fn gpt2() -> Self {
        Self::of_family(Family::Gpt2)
    }

    /// Returns the pattern of cl100k_base.
    ///
    /// This is the published spelling. tiktoken has used others since, which give the same
    /// tokens but cut a text that ends in a newline and blanks into other pieces.
    pub fn cl100k() -> Self {
        Self::of_family(Family::Cl100k)
    }

    /// Returns the pattern of o200k_base and o200k_harmony.
    pub fn o200k() -> Self {
        Self::of_family(Family::O200k)
    }

    /// Returns the pattern of a family, in the spelling that defines it.
    pub fn of_family(family: Family) -> Self {
        Self {
            source: Arc::from(family.spelling()),
            family: Arc::new(OnceLock::from(Some(family))),
        }
    }

    /// Returns the three patterns of deepseek_v3, in the order in which they cut.
    pub fn deepseek_v3() -> [Self; 3] {
        [Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3].map(Self::of_family)
    }

    /// The names that [`by_name`](Self::by_name) knows.
    pub const NAMES: [&str; 12] = [
        "gpt2",
        "r50k",
        "p50k",
        "cl100k",
        "llama3",
        "o200k",
        "gptoss",
        "qwen2",
        "qwen3",
        "tekken",
        "digit_groups",
        "single_digits",
    ];

    /// Returns the pattern of the encoding or model `name`, one of [`NAMES`](Self::NAMES); the last two
    /// are parts that several patterns in sequence are made of.
    ///
    /// ```
    /// use bpe_lexers::{Family, Pattern};
    ///
    /// assert_eq!(Pattern::by_name("llama3"), Some(Pattern::cl100k()));
    /// ```
    pub fn by_name(name: &str) -> Option<Self> {
        let family = match name {
            "gpt2" | "r50k" | "p50k" => Family::Gpt2,
            "cl100k" | "llama3" => Family::Cl100k,
            "o200k" | "gptoss" => Family::O200k,
            "qwen2" | "qwen3" => Family::Qwen2,
            "tekken" => Family::Tekken,
            "digit_groups" => Family::DigitGroups,
            "single_digits" => Family::SingleDigits,
            _ => return None,
        };
        Some(Self::of_family(family))
    }

    /// Returns the pattern spelt `source`.
    ///
    /// The syntax is that of the engine: [`ReferenceLexer`](crate::ReferenceLexer) takes what
    /// fancy-regex takes, [`AutomataLexer`](crate::AutomataLexer) what regex-syntax takes, and
    /// where they take the same they mean the same.
    pub fn new(source: &str) -> Self {
        let mut families = Family::ALL.into_iter();
        match families.find(|family| family.spelling() == source) {
            Some(family) => Self::of_family(family),
            None => Self {
                source: Arc::from(source),
                family: Arc::default(),
            },
        }
    }

    /// Returns the regular expression as it was spelt.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the known family that the pattern belongs to: the one that cuts every text into the
    /// same spans, which is [proved](difference), however the two are spelt.
    ///
    /// The first call for a spelling that is none of those that define the families costs some
    /// milliseconds.
    ///
    /// ```
    /// use bpe_lexers::{Family, Pattern};
    ///
    /// // tiktoken 0.14's spelling of GPT-2's pattern.
    /// let pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
    /// assert_eq!(Pattern::new(pattern).family(), Some(Family::Gpt2));
    /// ```
    pub fn family(&self) -> Option<Family> {
        *self.family.get_or_init(|| self.family_by_meaning())
    }

    fn family_by_meaning(&self) -> Option<Family> {
        let analysis = Analysis::new(core::slice::from_ref(self)).ok()?;
        let spans = analysis.spans(PROBE);
        let words = spans.iter().filter(|span| span.label == crate::Label::Word);
        let words: Vec<_> = words.map(|span| span.range()).collect();
        Family::ALL.into_iter().find(|&family| {
            let other = Self::of_family(family);
            // Most are told apart by one text; the proof is for what is left.
            let Ok(lexer) = TranscribedLexer::new(&other) else {
                return false;
            };
            pre_tokens(lexer, PROBE) == words
                && difference(core::slice::from_ref(self), &[other])
                    .is_ok_and(|text| text.is_none())
        })
    }

    /// Returns a lexer for this pattern; the same as [`lexer`](crate::lexer).
    ///
    /// # Errors
    ///
    /// The pattern is malformed, or the engine cannot run it.
    pub fn lexer(&self, engine: Engine) -> Result<Box<dyn Lexer>, PatternError> {
        crate::lexer(self, engine)
    }
}

/// A text that all families cut differently.
const PROBE: &str = "It's IT'S e\u{301}A 12345\t\u{6F22}\u{30A2}AB/\n\n  .the!/\r 1\n ";

fn pre_tokens(mut lexer: TranscribedLexer, text: &str) -> Vec<core::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Ok(Some(range)) = lexer.next_pre_token(text, start) {
        start = range.end;
        found.push(range);
    }
    found
}
