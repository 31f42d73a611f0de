//! The last-token engine: the tokens of every prefix are those of the reference.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bpe_core::reference::Reference;
use bpe_core::{
    Algorithm, Atoms, BytePairs, CanonicalForm, Dictionary, ReadLimits, SpanEncoder, Vocabulary,
};
use bpe_incremental::descent::Descent;
use bpe_incremental::{History, IncrementalEncoder, LastTokenEngine};
use bytepair::tokenizer_json::read_dictionary;

use super::support::{
    Corpus, ensure, equal_ids, grouped, name_of, parallel, text_of, vocabularies,
};
use super::{Checked, Claims, Outcome, Settings, models};

/// Dictionaries of the data folder. The first is improper as listed.
const MODELS: [&str; 4] = ["llama3_1", "qwen3", "deepseek_v3", "llama2"];

/// Bytes after the last place that no token crosses, up to which a prefix is merged directly.
const LONGEST_TAIL: usize = 1024;

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "last token: every prefix equals the reference, all proper lists of merges over two letters",
        |settings, _| {
            let longest = settings.choose(9, 12);
            let most = settings.choose(3, 4);
            let mut cases = 0;
            for count in 0..=most {
                cases += check_lists(&lists(count), 0, longest)?;
            }
            let note = format!("up to {most} merges, texts up to {longest} letters");
            Ok(Checked::with_note(cases, note))
        },
    );
    let claim = "last token: every prefix equals the reference, all proper lists of 5 merges";
    match claims.settings.full {
        true => claims.check(claim, |_, _| {
            let cases = check_lists(&lists(4), 1, 9)?;
            Ok(Checked::with_note(cases, "texts up to 9 letters"))
        }),
        false => claims.skip(claim, "takes long (--full)"),
    }
    claims.check(
        "last token: every prefix of the corpora equals direct merging, embedded vocabularies",
        |settings, corpora| {
            let vocabularies = vocabularies()?;
            let mut sum = Prefixes::default();
            for vocabulary in &vocabularies {
                let name = name_of(vocabulary);
                sum.add(check_corpora(
                    name,
                    vocabulary.canonical(),
                    settings,
                    corpora,
                )?);
            }
            Ok(sum.checked())
        },
    );
    for model in MODELS {
        claims.check_data(
            &format!("last token: every prefix of the corpora equals direct merging, {model}"),
            |settings, corpora, data| of_model(model, settings, corpora, data),
        );
    }
}

type Merge = (usize, usize);

/// The tokens of a list of merges, by index: the letters, then the products that are new.
struct List {
    tokens: Vec<Vec<u8>>,
    merges: Vec<Merge>,
}

impl List {
    fn letters() -> Self {
        Self {
            tokens: vec![b"a".to_vec(), b"b".to_vec()],
            merges: Vec::new(),
        }
    }

    /// The lists with one merge more: any two tokens that are there. A proper list has no other
    /// sides than letters and what earlier merges make.
    fn longer(&self) -> Vec<Self> {
        let count = self.tokens.len();
        let pairs = (0..count).flat_map(|left| (0..count).map(move |right| (left, right)));
        pairs
            .filter(|merge| !self.merges.contains(merge))
            .map(|merge| {
                let mut tokens = self.tokens.clone();
                let product = [&tokens[merge.0][..], &tokens[merge.1]].concat();
                if !tokens.contains(&product) {
                    tokens.push(product);
                }
                let mut merges = self.merges.clone();
                merges.push(merge);
                Self { tokens, merges }
            })
            .collect()
    }

    /// With ids that run against the order of the tokens.
    fn dictionary(&self) -> Result<Dictionary, String> {
        let last = 5 * self.tokens.len() as u32;
        let id = |token: usize| last - 5 * token as u32;
        let tokens = self.tokens.iter().enumerate();
        let vocabulary = Vocabulary::new(tokens.map(|(index, token)| (id(index), token)));
        let merges: Vec<_> = self.merges.iter().map(|&(a, b)| (id(a), id(b))).collect();
        Dictionary::from_merges(vocabulary.map_err(text_of)?, merges).map_err(text_of)
    }
}

fn lists(count: usize) -> Vec<List> {
    let mut lists = vec![List::letters()];
    for _ in 0..count {
        lists = lists.iter().flat_map(List::longer).collect();
    }
    lists
}

/// Each list, with `more` (0 or 1) merges more, on all texts up to `longest` letters.
fn check_lists(lists: &[List], more: usize, longest: usize) -> Result<u64, String> {
    parallel(lists.len(), |number| {
        let list = &lists[number];
        match more {
            0 => check_list(list, longest),
            _ => list
                .longer()
                .iter()
                .map(|list| check_list(list, longest))
                .sum(),
        }
    })
}

fn check_list(list: &List, longest: usize) -> Result<u64, String> {
    let dictionary = list.dictionary()?;
    if !dictionary.is_proper() {
        return Ok(0); // A token that two merges make, one of them after it is used.
    }
    let canonical = Arc::new(CanonicalForm::new(&dictionary));
    let reference = Reference::new(&dictionary);
    let mut cases = 0;
    for engine in [
        LastTokenEngine::new(&canonical).map_err(text_of)?,
        LastTokenEngine::new_wide(&canonical).map_err(text_of)?,
    ] {
        let mut walk = Walk {
            reference: &reference,
            history: engine.history(),
            text: Vec::new(),
            cases: 0,
        };
        walk.texts(longest)
            .map_err(|error| format!("{error} with {:?}", dictionary.rules()))?;
        cases += walk.cases;
    }
    Ok(cases)
}

/// All texts over two letters, by pushing a letter and taking it away again.
struct Walk<'r> {
    reference: &'r Reference<'r>,
    history: History,
    text: Vec<u8>,
    cases: u64,
}

impl Walk<'_> {
    fn texts(&mut self, left: usize) -> Result<(), String> {
        let expected = self.reference.standard(&self.text);
        let expected = expected.ok_or("a letter is no token")?;
        equal_ids(&self.history.tokens(self.text.len()), &expected, || {
            format!("on {:?}", String::from_utf8_lossy(&self.text))
        })?;
        self.cases += 1;
        if left == 0 {
            return Ok(());
        }
        for letter in *b"ab" {
            self.text.push(letter);
            let last = self.history.push(letter).map_err(text_of)?;
            let placed = self.history.last_token(self.text.len());
            ensure(placed.map(|token| token.id) == Some(last), || {
                "push and last_token differ".to_owned()
            })?;
            self.texts(left - 1)?;
            self.text.pop();
            self.history.truncate(self.text.len());
        }
        Ok(())
    }
}

/// What was compared.
#[derive(Default)]
struct Prefixes {
    all: u64,
    merged: u64,
    descended: u64,
}

impl Prefixes {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.merged += other.merged;
        self.descended += other.descended;
    }

    fn checked(&self) -> Checked {
        let (merged, descended) = (grouped(self.merged), grouped(self.descended));
        let note = format!("{merged} with direct merging, {descended} with the descent");
        Checked::with_note(self.all, note)
    }
}

fn of_model(model: &str, settings: &Settings, corpora: &[Corpus], data: &Path) -> Outcome {
    let file = models::file(model, data)?;
    let dictionary = read_dictionary(&file, &ReadLimits::default()).map_err(text_of)?;
    let listed = Arc::new(CanonicalForm::new(&dictionary));
    let canonical = listed.properize().map_err(text_of)?;
    check_corpora(model, &canonical, settings, corpora).map(|sum| sum.checked())
}

fn check_corpora(
    name: &str,
    canonical: &Arc<CanonicalForm>,
    settings: &Settings,
    corpora: &[Corpus],
) -> Result<Prefixes, String> {
    let engine = LastTokenEngine::new(canonical).map_err(text_of)?;
    let bytes = settings.choose(10_000, 200_000);
    let sum = Mutex::new(Prefixes::default());
    parallel(corpora.len(), |number| {
        let corpus = &corpora[number];
        let text = &corpus.text[..corpus.text.floor_char_boundary(bytes)];
        let prefixes = check_text(&engine, text)
            .map_err(|error| format!("{name}, {}: {error}", corpus.name))?;
        let all = prefixes.all;
        if let Ok(mut sum) = sum.lock() {
            sum.add(prefixes);
        }
        Ok(all)
    })?;
    sum.into_inner().map_err(text_of)
}

/// Each prefix of a text. Between two bytes that no token contains every tokenization has a boundary
/// (fact 4), so direct merging of a prefix needs only what follows the last such place; where that is
/// long, only the descent is compared.
fn check_text(engine: &LastTokenEngine, text: &str) -> Result<Prefixes, String> {
    let canonical = engine.canonical();
    let over_bytes = canonical.atoms() == Atoms::Bytes;
    let pairs = BytePairs::new(canonical.vocabulary());
    let bytes = text.as_bytes();
    let mut history = engine.history();
    let descent = match over_bytes {
        true => {
            let descent = Descent::new(canonical).map_err(text_of)?;
            Some(descent.last_tokens(bytes).map_err(text_of)?)
        }
        false => None, // The descent is over bytes only.
    };
    let mut direct = Algorithm::MergeHeap.encoder(canonical).map_err(text_of)?;
    let mut expected = Vec::new();
    let mut start = 0;
    let mut prefixes = Prefixes::default();
    for end in 1..=bytes.len() {
        let last = history.push(bytes[end - 1]).map_err(text_of)?;
        let may_cut = over_bytes || text.is_char_boundary(end - 1);
        if end > 1 && may_cut && !pairs.in_a_token(bytes[end - 2], bytes[end - 1]) {
            start = end - 1;
        }
        if let Some(descent) = &descent {
            ensure(descent[end - 1] == last, || {
                format!(
                    "after byte {end} the descent gives {}, the engine {last}",
                    descent[end - 1]
                )
            })?;
        }
        prefixes.all += 1;
        prefixes.descended += u64::from(over_bytes);
        if end - start <= LONGEST_TAIL {
            expected.clear();
            direct
                .encode_span(&bytes[start..end], &mut expected)
                .map_err(text_of)?;
            let found: Vec<_> = history
                .tokens_from_end(end)
                .take_while(|token| token.end > start)
                .collect();
            let ids: Vec<_> = found.iter().rev().map(|token| token.id).collect();
            equal_ids(&ids, &expected, || format!("bytes {start}..{end}"))?;
            prefixes.merged += 1;
        }
    }
    let mut tokens = Vec::new();
    IncrementalEncoder::new(engine)
        .encode_span(bytes, &mut tokens)
        .map_err(text_of)?;
    equal_ids(&tokens, &history.tokens(bytes.len()), || {
        "the span encoder and the history differ".to_owned()
    })?;
    Ok(prefixes)
}
