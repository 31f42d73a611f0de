//! What the families of patterns have in common, and where they differ.

/// Where the contractions `'s|'t|'re|'ve|'m|'ll|'d` stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    /// Nowhere.
    None,
    /// A branch of their own, the first, in lower case only.
    AloneInLowerCase,
    /// A branch of their own, the first.
    Alone,
    /// At the end of a word.
    AfterWord,
}

/// One family. All are of the form: contraction, word, number, a blank and others, white space.
pub(super) struct Rule {
    pub(super) contractions: Contractions,
    /// May any character but a letter, a number and CR, LF stand before a word? If not, a blank may,
    /// and before a number too.
    pub(super) prefix: bool,
    /// Do words end where the case says so, and marks belong to them?
    pub(super) cases: bool,
    /// How many numbers are a pre-token at most; 0: any number of them.
    pub(super) numbers: usize,
    /// Are numbers cut out by an earlier stage? Then what stands before them ends there as at the end of
    /// the text.
    pub(super) numbers_first: bool,
    /// Do slashes, with CR and LF, belong to the others before them?
    pub(super) slash: bool,
    /// Are newlines and white space before them a pre-token, and newlines after others part of those?
    pub(super) newlines: bool,
    /// Is white space that the segment ends in one pre-token, whatever newlines are in it?
    pub(super) whole_at_end: bool,
}

/// A family as a type, so that each has loops of its own.
pub(super) trait Rules: 'static {
    const RULE: Rule;
}

/// gpt2, r50k, p50k.
pub(super) struct Gpt2;

impl Rules for Gpt2 {
    const RULE: Rule = Rule {
        contractions: Contractions::AloneInLowerCase,
        prefix: false,
        cases: false,
        numbers: 0,
        numbers_first: false,
        slash: false,
        newlines: false,
        whole_at_end: false,
    };
}

/// cl100k, llama3.
pub(super) struct Cl100k;

impl Rules for Cl100k {
    const RULE: Rule = Rule {
        contractions: Contractions::Alone,
        prefix: true,
        numbers: 3,
        newlines: true,
        ..Gpt2::RULE
    };
}

/// o200k, gpt-oss.
pub(super) struct O200k;

impl Rules for O200k {
    const RULE: Rule = Rule {
        contractions: Contractions::AfterWord,
        cases: true,
        slash: true,
        ..Cl100k::RULE
    };
}

/// cl100k as tiktoken 0.14 spells it.
pub(super) struct Cl100kOfTiktoken;

impl Rules for Cl100kOfTiktoken {
    const RULE: Rule = Rule {
        whole_at_end: true,
        ..Cl100k::RULE
    };
}

/// Qwen2, Qwen3.
pub(super) struct Qwen2;

impl Rules for Qwen2 {
    const RULE: Rule = Rule {
        numbers: 1,
        ..Cl100k::RULE
    };
}

/// Mistral's tekken.
pub(super) struct Tekken;

impl Rules for Tekken {
    const RULE: Rule = Rule {
        contractions: Contractions::None,
        numbers: 1,
        ..O200k::RULE
    };
}

/// Each number alone, then gpt2.
pub(super) struct SingleDigitsThenGpt2;

impl Rules for SingleDigitsThenGpt2 {
    const RULE: Rule = Rule {
        numbers: 1,
        numbers_first: true,
        ..Gpt2::RULE
    };
}

/// Numbers in groups of three, then gpt2.
pub(super) struct DigitGroupsThenGpt2;

impl Rules for DigitGroupsThenGpt2 {
    const RULE: Rule = Rule {
        numbers: 3,
        ..SingleDigitsThenGpt2::RULE
    };
}
