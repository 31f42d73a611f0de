//! What a pipeline does, in words.

use std::fmt::Write as _;

use bpe_core::{Atoms, TokenId};
use serde_json::Value;

use crate::pipeline::Pipeline;
use crate::pipeline::model::Model;
use crate::specials::Specials;
use crate::tokenizer::Tokenizer;

/// What a tokenizer does, in words, and what is odd about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The steps in the order in which a text meets them: the part of the file, and what it does.
    pub steps: Vec<(String, String)>,
    /// What runs it here.
    pub engine: Vec<String>,
    /// What may surprise.
    pub oddities: Vec<String>,
}

/// Tokens and texts that are shown as examples.
const EXAMPLES: usize = 5;

/// Texts that tell whether text comes back: blanks, line ends, cases, accents, other forms of the same
/// characters, rare ones.
const PROBES: [&str; 14] = [
    "a  b",
    " a",
    "a ",
    "   ",
    "a\tb",
    "a\r\nb",
    "ABC",
    "Café",
    "Cafe\u{301}",
    "ﬁ ½ Å",
    "don 't , it .",
    "漢字かな",
    "\u{10FFFD}\u{1F469}\u{200D}\u{1F680}",
    "\u{0}\u{7}\u{FEFF}",
];

impl Pipeline {
    /// The steps of this pipeline, its engines here, and its oddities.
    ///
    /// Cost: O(tokens) and some hundred encodings.
    pub fn inspect(&self) -> Inspection {
        let mut inspection = Inspection {
            steps: self.steps(),
            ..Inspection::default()
        };
        match &self.parts.model {
            Model::Bpe(tokenizer) => {
                self.inspect_bpe(tokenizer, &mut inspection);
            }
            Model::Affix(_) => inspection.engine.push(
                "BPE by the spelling of tokens, with a prefix or suffix: a heap of pairs for each piece, \
                 O(n log n)"
                    .to_owned(),
            ),
            Model::WordPiece(_) => inspection.engine.push(
                "WordPiece by two tries with failure links: each byte of a word is read once".to_owned(),
            ),
        }
        inspection.engine.push(match self.cuts() {
            Ok(_) => {
                "long texts and streams are cut where each step is known to be local".to_owned()
            }
            Err(why) => format!("long texts are done by one thread, and there is no stream: {why}"),
        });
        self.inspect_round_trips(&mut inspection);
        inspection
    }

    fn steps(&self) -> Vec<(String, String)> {
        let source = &self.parts.source;
        let added = &self.parts.added.tokens;
        let mut steps = Vec::new();
        if !added.is_empty() {
            let special = added.iter().filter(|token| token.special).count();
            let flagged = added
                .iter()
                .filter(|token| token.single_word || token.lstrip || token.rstrip)
                .count();
            let normalized = added.iter().filter(|token| token.normalized).count();
            let mut words = format!(
                "{} tokens are found as text: {special} special ones where they are allowed, the others \
                 always",
                added.len()
            );
            if normalized > 0 {
                let _ = write!(words, "; {normalized} in normalized text");
            }
            if flagged > 0 {
                let _ = write!(
                    words,
                    "; {flagged} with blanks around them, or as whole words only"
                );
            }
            steps.push(("added_tokens".to_owned(), words));
        }
        let parts = [
            ("normalizer", &source.normalizer, "normalizers"),
            ("pre_tokenizer", &source.pre_tokenizer, "pretokenizers"),
        ];
        for (part, value, inside) in parts {
            append_steps(part, value, inside, &mut steps);
        }
        steps.push(("model".to_owned(), self.model_in_words()));
        let parts = [
            ("post_processor", &source.post_processor, "processors"),
            ("decoder", &source.decoder, "decoders"),
        ];
        for (part, value, inside) in parts {
            append_steps(part, value, inside, &mut steps);
        }
        for (part, value) in [
            ("truncation", &source.truncation),
            ("padding", &source.padding),
        ] {
            if !value.is_null() {
                let words = format!(
                    "{}; left off unless it is asked for",
                    parameters(value, &[])
                );
                steps.push((part.to_owned(), words));
            }
        }
        steps
    }

    fn model_in_words(&self) -> String {
        match &self.parts.model {
            Model::Affix(_) => "BPE with a prefix or suffix on its tokens".to_owned(),
            Model::WordPiece(model) => format!(
                "WordPiece of {} tokens: the longest token from the left; a word without any is {:?}",
                model.tokens().len(),
                model.token_text(model.unknown_id()).unwrap_or_default()
            ),
            Model::Bpe(tokenizer) => {
                let form = tokenizer.canonical();
                let mut words = format!(
                    "BPE of {} tokens and {} rules that can fire, over ",
                    tokenizer.vocabulary().len(),
                    form.rule_count()
                );
                words += match form.atoms() {
                    Atoms::Bytes => "bytes",
                    Atoms::Characters { .. } => "characters",
                };
                if form.whole_piece_lookup() {
                    words += "; a piece that is a token becomes it without merging";
                }
                words
            }
        }
    }

    fn inspect_bpe(&self, tokenizer: &Tokenizer, inspection: &mut Inspection) {
        let form = tokenizer.canonical();
        let engine = &mut inspection.engine;
        engine.push(match &self.parts.direct {
            Some(_) if self.parts.normalizers.is_empty() => {
                "the text is encoded as it is, added tokens are found on the way".to_owned()
            }
            Some(_) => {
                "the text is encoded as it is where normalizing leaves it so, else step by step on \
                        a copy"
                    .to_owned()
            }
            None => "step by step: what the steps change is a copy".to_owned(),
        });
        engine.push(match tokenizer.patterns() {
            [] => "no pattern: the whole text is one piece, cut where no token spans two bytes"
                .to_owned(),
            patterns => {
                let family = |pattern: &bpe_lexers::Pattern| match pattern.family() {
                    Some(family) => format!("the lexer of {family:?}"),
                    None => format!("an engine for the pattern {:?}", pattern.as_str()),
                };
                let engines: Vec<_> = patterns.iter().map(family).collect();
                format!("pieces: {}", engines.join(", then "))
            }
        });
        engine.push(match (form.is_proper(), form.is_reordered()) {
            (true, false) => "merging: rules in the order of the file, which is proper".to_owned(),
            (true, true) => "merging: rules in another order, which is proper and gives the same tokens"
                .to_owned(),
            _ => "merging: the pair of best priority each time, since the order of the rules is improper"
                .to_owned(),
        });
        let oddities = &mut inspection.oddities;
        let unreachable: Vec<TokenId> = form.unreachable_tokens().collect();
        if !unreachable.is_empty() {
            oddities.push(format!(
                "{} tokens that merging does not give{}: {}",
                unreachable.len(),
                match form.whole_piece_lookup() {
                    true => ", but a whole piece can be",
                    false => "",
                },
                self.examples(&unreachable)
            ));
        }
        let improper = form.improper_rules().count();
        if improper > 0 {
            oddities.push(format!(
                "{improper} rules with a side that a later rule makes"
            ));
        }
        if let Atoms::Characters { unknown, .. } = form.atoms() {
            let missing = (0..=u8::MAX)
                .filter(|&byte| tokenizer.vocabulary().byte_fallback(byte).is_none())
                .count();
            if missing > 0 {
                let becomes = match unknown {
                    Some(id) => format!("is {}", self.examples(&[id])),
                    None => "is an error".to_owned(),
                };
                oddities.push(format!(
                    "{missing} bytes without a token: a character that is no token {becomes}"
                ));
            }
        }
    }

    fn examples(&self, ids: &[TokenId]) -> String {
        let examples = ids.iter().take(EXAMPLES);
        let examples = examples.map(|&id| {
            let text = self.token_text(id).unwrap_or_default();
            format!("{text:?} ({id})")
        });
        let mut words = examples.collect::<Vec<_>>().join(", ");
        if ids.len() > EXAMPLES {
            words += ", ...";
        }
        words
    }

    /// Texts that do not come back, and the special tokens that text can make.
    fn inspect_round_trips(&self, inspection: &mut Inspection) {
        for probe in PROBES {
            let ids = match self.encode(probe) {
                Ok(ids) => ids,
                Err(error) => {
                    let oddity = format!("{probe:?} has no tokens: {error}");
                    inspection.oddities.push(oddity);
                    continue;
                }
            };
            let text = self.decode(&ids).unwrap_or_default();
            if text != probe {
                let oddity = format!("{probe:?} comes back as {text:?}");
                inspection.oddities.push(oddity);
            }
        }
        let Ok(allowing) = self.with_specials(Specials::AllowAll) else {
            return;
        };
        let found = |content: &str, id: TokenId| {
            let ids = allowing.encode(content);
            ids.is_ok_and(|ids| ids == [id])
        };
        let added = self.parts.added.tokens.iter();
        let lost: Vec<TokenId> = added
            .filter(|token| !found(&token.content, token.id))
            .map(|token| token.id)
            .collect();
        if !lost.is_empty() {
            inspection.oddities.push(format!(
                "{} added tokens that their own text does not give: {}",
                lost.len(),
                self.examples(&lost)
            ));
        }
    }
}

/// The steps of a part of the file, one inside the other.
fn append_steps(part: &str, value: &Value, inside: &str, steps: &mut Vec<(String, String)>) {
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        if value.is_null() {
            continue;
        }
        match value[inside].as_array() {
            Some(list) => waiting.extend(list.iter().rev()),
            None => steps.push((part.to_owned(), step_in_words(part, value))),
        }
    }
}

fn step_in_words(part: &str, value: &Value) -> String {
    let kind = value["type"].as_str().unwrap_or_default();
    let words = match (part, kind) {
        ("normalizer", "NFC") => "characters are composed",
        ("normalizer", "NFD") => "characters are decomposed",
        ("normalizer", "NFKC") => "characters are composed, compatible ones are made one",
        ("normalizer", "NFKD") => "characters are decomposed, compatible ones are made one",
        ("normalizer", "Lowercase") => "lower case",
        ("normalizer", "Strip") => "blanks at the ends go",
        ("normalizer", "StripAccents") => "combining marks go",
        ("normalizer", "Prepend") => "something is set before the text",
        ("normalizer", "BertNormalizer") => "BERT's cleaning",
        (_, "ByteLevel") if part == "post_processor" => {
            "blanks are no part of offsets, if trim_offsets"
        }
        (_, "ByteLevel") if part == "decoder" => "characters that stand for bytes become bytes",
        (_, "ByteLevel") => {
            "each byte becomes a character; use_regex cuts by GPT-2's pattern before"
        }
        (_, "Replace") => "what is found is replaced",
        ("pre_tokenizer", "Split") => "the text is cut by a pattern",
        ("pre_tokenizer", "Digits") => "numbers are cut out",
        ("pre_tokenizer", "Punctuation") => "punctuation is cut out",
        ("pre_tokenizer", "Whitespace") => "words and runs of other characters; blanks go",
        ("pre_tokenizer", "WhitespaceSplit") => "cut at blanks, which go",
        ("pre_tokenizer", "BertPreTokenizer") => "cut at blanks, which go, and around punctuation",
        ("pre_tokenizer", "Metaspace") => {
            "a character takes the place of blanks and begins a piece"
        }
        ("post_processor", "TemplateProcessing") => "tokens are set around the text, if asked for",
        ("post_processor", _) => "tokens are set around the text, if asked for",
        ("decoder", "ByteFallback") => "tokens like <0x0A> become bytes",
        ("decoder", "Fuse") => "all becomes one string",
        ("decoder", "Strip") => "some characters at the ends of a string go",
        ("decoder", "WordPiece") => "a blank before each token without the prefix",
        ("decoder", "Metaspace") => "the character becomes a blank again",
        ("decoder", "BPEDecoder") => "the suffix becomes a blank",
        ("normalizer", "SentencePiece") => "what the .model file says",
        ("decoder", "SentencePiece") => "what the library of SentencePiece does to its pieces",
        ("decoder", "CTC") => "repeated tokens are one",
        _ => "",
    };
    let mut text = match words {
        "" => kind.to_owned(),
        words => format!("{kind}: {words}"),
    };
    let details = match kind {
        "TemplateProcessing" => format!(
            "text: {}; pair: {}",
            template(&value["single"]),
            template(&value["pair"])
        ),
        _ => parameters(value, &["type"]),
    };
    if !details.is_empty() {
        let _ = write!(text, " ({details})");
    }
    text
}

/// `<s> A </s>`.
fn template(pieces: &Value) -> String {
    let piece = |piece: &Value| {
        let name = &piece["SpecialToken"]["id"];
        let name = name.as_str().or(piece["Sequence"]["id"].as_str());
        name.unwrap_or_default().to_owned()
    };
    let pieces = pieces.as_array().into_iter().flatten();
    pieces.map(piece).collect::<Vec<_>>().join(" ")
}

/// The fields of a step as they stand.
fn parameters(value: &Value, without: &[&str]) -> String {
    let fields = value.as_object().into_iter().flatten();
    let fields =
        fields.filter(|(name, value)| !without.contains(&name.as_str()) && !value.is_null());
    let fields = fields.map(|(name, value)| format!("{name}: {value}"));
    fields.collect::<Vec<_>>().join(", ")
}
