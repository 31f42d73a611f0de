//! Eager output of bpe-incremental: nothing that a continuation could change, nothing later than by
//! 000 App. G, and how much is held.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, CanonicalForm, Dictionary, TokenId};
use bpe_incremental::{EagerEncoder, LastTokenEngine, held_bytes_bound};
use bpe_lexers::Engine;
use bytepair::Tokenizer;

use super::core::{dictionary_of, merge_lists, words};
use super::support::{
    Corpus, Random, ensure, name_of, parallel, pattern_of, spanner, spans, text_of, vocabularies,
};
use super::{Checked, Claims, Outcome, Settings};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "eager output is in every continuation up to 4 letters, and never after 000 App. G",
        |settings, _| small_dictionaries(settings),
    );
    claims.check(
        "eager output is in random continuations, r50k, p50k, cl100k, o200k",
        random_continuations,
    );
    claims.check(
        "eager output holds no more than 000 App. G and the bound from the rules, whole corpora",
        windows,
    );
    claims.check(
        "eager output of a long stream takes no more memory than of a short one",
        long_stream,
    );
    claims.check(
        "one shared token synchronises (theory, Lemma 5), improper dictionaries too",
        |settings, _| {
            let lists = merge_lists(0..=3);
            let cases = parallel(settings.choose(20_000, 400_000), |number| {
                shared_token(&lists[number % lists.len()], number)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
}

/// The tokens of all texts over a and b up to a length.
struct AllTexts {
    tokens: HashMap<Vec<u8>, Vec<TokenId>>,
}

impl AllTexts {
    fn new(dictionary: &Dictionary, longest: usize) -> Result<Self, String> {
        let reference = Reference::new(dictionary);
        let tokens = words(longest).into_iter().map(|text| {
            let tokens = reference.standard(&text).ok_or("a letter is no token")?;
            Ok((text, tokens))
        });
        let tokens = tokens.collect::<Result<_, String>>()?;
        Ok(Self { tokens })
    }

    fn of(&self, text: &[u8]) -> Result<&[TokenId], String> {
        let tokens = self.tokens.get(text);
        tokens.map(Vec::as_slice).ok_or("too long".to_owned())
    }

    /// The number of tokens that all texts with up to `more` letters after `text` begin with.
    fn common(&self, text: &[u8], more: usize) -> Result<usize, String> {
        let tokens = self.of(text)?;
        let mut common = tokens.len();
        for continuation in words(more) {
            let longer = self.of(&[text, &continuation].concat())?;
            let equal = tokens.iter().zip(longer).take_while(|(a, b)| a == b);
            common = common.min(equal.count());
        }
        Ok(common)
    }
}

/// The algorithm of 000 App. G on an explicit prefix tree, step by step as it is written there.
struct TwoPointers<'v> {
    /// All that canonical tokens begin with, whole tokens among it.
    prefixes: &'v HashSet<&'v [u8]>,
    /// Of each prefix of the text the place where its last token begins.
    parents: Vec<usize>,
    /// Of each node of the subgraph the number of its children in it.
    children: HashMap<usize, BTreeSet<usize>>,
    left: usize,
    root: usize,
    depth: usize,
    emitted: usize,
}

impl<'v> TwoPointers<'v> {
    fn new(prefixes: &'v HashSet<&'v [u8]>) -> Self {
        Self {
            prefixes,
            parents: vec![0],
            children: HashMap::from([(0, BTreeSet::new())]),
            left: 0,
            root: 0,
            depth: 0,
            emitted: 0,
        }
    }

    /// `text` has grown by a byte and its last token begins at `parent`. Returns the number of nodes.
    fn push(&mut self, text: &[u8], parent: usize) -> usize {
        let len = text.len();
        self.depth += 1;
        while !self.prefixes.contains(&text[len - self.depth..]) {
            self.depth -= 1;
        }
        // 1. The right pointer adds the new node, the left one gives up what has expired.
        self.parents.push(parent);
        self.children.insert(len, BTreeSet::new());
        self.children.entry(parent).or_default().insert(len);
        while self.left < len - self.depth {
            let mut node = self.left;
            self.left += 1;
            // 2. What is on no way from the root to a candidate leaves the subgraph.
            while node != self.root
                && node < self.left
                && self.children.get(&node).is_some_and(BTreeSet::is_empty)
            {
                self.children.remove(&node);
                let parent = self.parents[node];
                self.children.entry(parent).or_default().remove(&node);
                node = parent;
            }
        }
        // 3. One child of the root, and the root no candidate: its token is stable.
        while self.root < self.left
            && let Some(below) = self.children.get(&self.root)
            && let (1, Some(&child)) = (below.len(), below.first())
        {
            self.children.remove(&self.root);
            self.root = child;
            self.emitted += 1;
        }
        self.children.len()
    }
}

/// Everything that canonical tokens begin with.
fn prefixes(canonical: &CanonicalForm) -> HashSet<&[u8]> {
    let is_canonical = |id| canonical.rule(id).is_some();
    let tokens = canonical.vocabulary().iter();
    tokens
        .filter(|(id, bytes)| bytes.len() == 1 || is_canonical(*id))
        .flat_map(|(_, bytes)| (0..=bytes.len()).map(|len| &bytes[..len]))
        .collect()
}

fn small_dictionaries(settings: &Settings) -> Outcome {
    let mut lists = merge_lists(0..=2);
    let larger = merge_lists(3..=3);
    let step = settings.choose(8, 1);
    lists.extend(larger.into_iter().step_by(step));
    let longest = 7;
    let held = std::sync::Mutex::new([0_u64; 3]);
    let most = std::sync::Mutex::new([0_usize; 3]);
    let cases = parallel(lists.len(), |number| {
        let dictionary = dictionary_of(&lists[number], number)?;
        let canonical = Arc::new(CanonicalForm::new(&dictionary));
        if !dictionary.is_proper() {
            return Ok(0);
        }
        let longest_token = dictionary.vocabulary().longest_token();
        let more = longest_token.max(4);
        let texts = AllTexts::new(&dictionary, longest + more)?;
        let engine = LastTokenEngine::new(&canonical).map_err(text_of)?;
        let bound = held_bytes_bound(&canonical).ok_or("no bound")?;
        let prefixes = prefixes(&canonical);
        let mut cases = 0;
        for text in words(longest).iter().filter(|text| text.len() == longest) {
            let mut encoder = EagerEncoder::new(&engine);
            let mut paper = TwoPointers::new(&prefixes);
            let mut given = Vec::new();
            for len in 1..=longest {
                let text = &text[..len];
                encoder.push(text[len - 1], &mut given).map_err(text_of)?;
                let tokens = texts.of(text)?;
                let last = tokens.last().ok_or("no token")?;
                let last = dictionary.vocabulary().token_bytes(*last);
                paper.push(text, len - last.map_or(0, <[u8]>::len));
                let possible = texts.common(text, more)?;
                let counts = [possible, given.len(), paper.emitted];
                let is_right = tokens.starts_with(&given)
                    && counts.is_sorted_by(|a, b| a >= b)
                    && encoder.pending_bytes() <= bound;
                ensure(is_right, || {
                    format!(
                        "{text:?}: {counts:?}, {given:?} with {:?}",
                        dictionary.rules()
                    )
                })?;
                let bytes = |count: usize| -> usize {
                    let bytes = tokens[count..].iter();
                    let bytes = bytes.filter_map(|id| dictionary.vocabulary().token_bytes(*id));
                    bytes.map(<[u8]>::len).sum()
                };
                let counts = counts.map(bytes);
                let mut held = held.lock().map_err(text_of)?;
                let mut most = most.lock().map_err(text_of)?;
                for way in 0..3 {
                    held[way] += counts[way] as u64;
                    most[way] = most[way].max(counts[way]);
                }
                cases += 1;
            }
        }
        Ok(cases)
    })?;
    let held = held.into_inner().map_err(text_of)?;
    let most = most.into_inner().map_err(text_of)?;
    let mean = held.map(|bytes| format!("{:.3}", bytes as f64 / cases as f64));
    Ok(Checked::with_note(
        cases,
        format!("bytes held, at least possible / ours / App. G: mean {mean:?}, most {most:?}"),
    ))
}

fn random_continuations(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let tokenizers = vocabularies()?;
    let engines = tokenizers
        .iter()
        .map(|tokenizer| LastTokenEngine::new(tokenizer.canonical()).map_err(text_of))
        .collect::<Result<Vec<_>, _>>()?;
    let rounds = settings.choose(60, 20_000);
    let cases = parallel(rounds, |number| {
        let mut random = Random::new(90_000 + number as u64);
        let which = random.below(engines.len());
        let (tokenizer, engine) = (&tokenizers[which], &engines[which]);
        let text = corpora[random.below(corpora.len())].text.as_bytes();
        let mut piece = |most: usize| {
            let start = random.below(text.len());
            &text[start..text.len().min(start + 1 + random.below(most))]
        };
        let (snippet, others) = (piece(1500), [0; 4].map(|_| piece(40)));
        let encoder = Algorithm::PriorityMerge.encoder(tokenizer.canonical());
        let mut whole = encoder.map_err(text_of)?;
        let mut encoder = EagerEncoder::new(engine);
        let (mut given, mut expected) = (Vec::new(), Vec::new());
        let mut cases = 0;
        for (at, &byte) in snippet.iter().enumerate() {
            encoder.push(byte, &mut given).map_err(text_of)?;
            if !random.below(40).is_multiple_of(20) {
                continue;
            }
            let mut tokens = tokenizer.vocabulary().iter();
            let token = tokens.nth(random.below(200_000));
            let token = token.map_or(&b""[..], |(_, bytes)| bytes);
            for other in others.iter().chain([&token]) {
                let text = [&snippet[..=at], other].concat();
                expected.clear();
                whole.encode_span(&text, &mut expected).map_err(text_of)?;
                let mut fork = encoder.clone();
                let mut forked = given.clone();
                fork.feed(other, &mut forked).map_err(text_of)?;
                fork.finish(&mut forked);
                ensure(expected.starts_with(&given) && forked == expected, || {
                    format!("{}: {text:?}", name_of(tokenizer))
                })?;
                cases += 1;
            }
        }
        Ok(cases)
    })?;
    Ok(Checked::with_note(cases, ""))
}

fn windows(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let tokenizers = vocabularies()?;
    let jobs: Vec<(&Tokenizer, &Corpus)> = tokenizers
        .iter()
        .flat_map(|tokenizer| corpora.iter().map(move |corpus| (tokenizer, corpus)))
        .collect();
    let limit = settings.choose(100_000, usize::MAX);
    let lines = std::sync::Mutex::new(vec![String::new(); jobs.len()]);
    let cases = parallel(jobs.len(), |number| {
        let (tokenizer, corpus) = jobs[number];
        let canonical = tokenizer.canonical();
        let bound = held_bytes_bound(canonical).ok_or("no bound")?;
        let engine = LastTokenEngine::new(canonical).map_err(text_of)?;
        let prefixes = prefixes(canonical);
        let text = corpus.text.as_bytes();
        let text = &text[..text.len().min(limit)];
        let mut whole = largest(&engine, &prefixes, bound, [text])?;
        let mut spanner = spanner(pattern_of(tokenizer)?, Engine::Auto)?;
        let end = corpus.text.floor_char_boundary(text.len());
        let pieces = spans(&mut spanner, &text[..end])?;
        let pieces = pieces.into_iter().map(|range| &text[range]);
        let cut = largest(&engine, &prefixes, bound, pieces)?;
        whole.cases += cut.cases;
        let line = format!(
            "{} {}: whole {whole}, cut {cut}, bound {bound}",
            name_of(tokenizer),
            corpus.name
        );
        lines.lock().map_err(text_of)?[number] = line;
        Ok(whole.cases)
    })?;
    let lines = lines.into_inner().map_err(text_of)?;
    let note = "tokens and bytes held, nodes of App. G (000 Table 7, English / Chinese / code: p50k \
                26 35 96, r50k 21 34 96, cl100k 32 129 212, o200k 31 129 208)";
    let note = format!("{note}\n      {}", lines.join("\n      "));
    Ok(Checked::with_note(cases, note))
}

/// The most that was held.
#[derive(Default)]
struct Largest {
    tokens: usize,
    bytes: usize,
    nodes: usize,
    cases: u64,
}

impl std::fmt::Display for Largest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} tokens {} bytes {} nodes",
            self.tokens, self.bytes, self.nodes
        )
    }
}

fn largest<'t>(
    engine: &LastTokenEngine,
    prefixes: &HashSet<&[u8]>,
    bound: usize,
    texts: impl IntoIterator<Item = &'t [u8]>,
) -> Result<Largest, String> {
    let mut largest = Largest::default();
    let mut encoder = EagerEncoder::new(engine);
    for text in texts {
        let mut paper = TwoPointers::new(prefixes);
        let mut history = engine.history();
        let mut given = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            encoder.push(byte, &mut given).map_err(text_of)?;
            history.push(byte).map_err(text_of)?;
            let last = history.last_token(at + 1).ok_or("no token")?;
            let nodes = paper.push(&text[..=at], last.start);
            let pending = encoder.pending();
            let is_right = given.len() >= paper.emitted && pending.bytes <= bound;
            ensure(is_right, || {
                format!("at byte {at}: {} of {} tokens", given.len(), paper.emitted)
            })?;
            largest.tokens = largest.tokens.max(pending.tokens);
            largest.bytes = largest.bytes.max(pending.bytes);
            largest.nodes = largest.nodes.max(nodes);
            largest.cases += 1;
        }
        encoder.finish(&mut given);
        ensure(given == history.tokens(text.len()), || {
            "other tokens".to_owned()
        })?;
    }
    Ok(largest)
}

fn long_stream(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let tokenizer = Tokenizer::o200k_base();
    let engine = LastTokenEngine::new(tokenizer.canonical()).map_err(text_of)?;
    let total = settings.choose(8_000_000, 100_000_000);
    let mut notes = Vec::new();
    for piece in [1, 100, 65_536] {
        let mut encoder = EagerEncoder::new(&engine);
        let mut given = Vec::new();
        let mut most = 0;
        let mut random = Random::new(piece as u64);
        while encoder.byte_count() < total {
            let text = corpora[random.below(corpora.len())].text.as_bytes();
            for piece in text.chunks(piece) {
                encoder.feed(piece, &mut given).map_err(text_of)?;
                most = most.max(encoder.memory());
                given.clear();
            }
        }
        ensure(most <= 100_000, || {
            format!(
                "{most} bytes for {} in pieces of {piece}",
                encoder.byte_count()
            )
        })?;
        notes.push(format!("{most} bytes in pieces of {piece}"));
    }
    Ok(Checked::with_note(
        3,
        format!("{total} bytes: {}", notes.join(", ")),
    ))
}

fn shared_token(list: &[(Vec<u8>, Vec<u8>)], number: usize) -> Result<u64, String> {
    let dictionary = dictionary_of(list, number)?;
    let reference = Reference::new(&dictionary);
    let mut random = Random::new(50_000 + number as u64);
    let text: Vec<u8> = (0..24).map(|_| b'a' + random.below(2) as u8).collect();
    let start = random.below(16);
    let end = start + 1 + random.below(24 - start);
    let placed = |start: usize, end: usize, standard: bool| {
        let tokens = match standard {
            true => reference.standard(&text[start..end]),
            false => reference.sentencepiece(&text[start..end]),
        };
        let mut at = start;
        let mut placed = Vec::new();
        for id in tokens.ok_or("a letter is no token")? {
            let len = dictionary
                .vocabulary()
                .token_bytes(id)
                .map_or(0, <[u8]>::len);
            placed.push((at, at + len, id));
            at += len;
        }
        Ok::<_, String>(placed)
    };
    let mut cases = 0;
    for standard in [false, true] {
        let (left, right) = (placed(0, end, standard)?, placed(start, 24, standard)?);
        let whole = placed(0, 24, standard)?;
        for shared in left.iter().filter(|token| right.contains(token)) {
            let before = left.iter().filter(|token| token.1 <= shared.1);
            let after = right.iter().filter(|token| token.0 >= shared.1);
            let joined: Vec<_> = before.chain(after).copied().collect();
            ensure(joined == whole, || {
                format!(
                    "{text:?} ..{end} and {start}.. share {shared:?} with {:?}",
                    dictionary.rules()
                )
            })?;
            cases += 1;
        }
    }
    Ok(cases)
}
