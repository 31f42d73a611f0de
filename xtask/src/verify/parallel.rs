//! Several threads give what one gives.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bpe_core::encoder::Algorithm;
use bpe_core::reference::Reference;
use bpe_core::{BytePairs, CanonicalForm, Dictionary, ReadLimits, Vocabulary};
use bpe_incremental::held_bytes_bound;
use bpe_lexers::SpecialMatcher;
use bpe_parallel::{
    Cut, PieceReport, Seams, SpanSeams, Synchronised, Team, Tokenize, Tokens, Wanted, Workers,
    merge_in_parts,
};
use bytepair::tokenizer_json::read_dictionary;
use bytepair::{Pattern, Specials, TokenId, Tokenizer, TokenizerBuilder};

use super::support::{Corpus, Random, ensure, equal_ids, name_of, parallel, text_of, vocabularies};
use super::{Checked, Claims, Outcome, Settings, models};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "parallel: two parts with every overlap, and three, join at one shared token, both semantics (fact 5)",
        |settings, _| exhaustive(settings),
    );
    claims.check(
        "parallel: four parts at random join at shared tokens, both semantics",
        |settings, _| random_parts(settings),
    );
    claims.check(
        "parallel: parts of a long pre-token are merged twice at most, all short texts and texts made to hurt",
        |settings, _| merged_twice(settings),
    );
    claims.check(
        "parallel: words made to hurt have the ids of one thread and are merged twice at most, real vocabularies",
        |settings, _| long_words(settings),
    );
    claims.check(
        "parallel: trap characters and giant words have the ids of one thread (P21)",
        |settings, _| traps(settings),
    );
    claims.check(
        "parallel: corpora in parts of random lengths have the ids, offsets and counts of one thread",
        |settings, corpora| corpora_in_parts(settings, corpora, &vocabularies()?),
    );
    claims.check(
        "parallel: batches keep their order and errors name their document (P25)",
        |_, corpora| batches(corpora),
    );
    claims.check_data(
        "parallel: corpora in parts have the ids of one thread with other people's vocabularies",
        |settings, corpora, data| corpora_in_parts(settings, corpora, &other_models(data)?),
    );
}

/// All tokenizations of short strings over the first letters, by a literal semantics.
struct Table {
    letters: usize,
    /// Of each length, of each string in the order of its letters as digits.
    tokens: Vec<Vec<Vec<TokenId>>>,
    pairs: BytePairs,
    longest: usize,
}

impl Table {
    fn new(dictionary: &Dictionary, standard: bool, letters: usize, longest: usize) -> Self {
        let reference = Reference::new(dictionary);
        let tokens = (0..=longest).map(|length| {
            let strings = 0..letters.pow(length as u32);
            let tokens = strings.map(|number| {
                let text = string(number, length, letters);
                of(&reference, standard, &text).unwrap_or_default()
            });
            tokens.collect()
        });
        let vocabulary = dictionary.vocabulary();
        Self {
            letters,
            tokens: tokens.collect(),
            pairs: BytePairs::new(vocabulary),
            longest: vocabulary.longest_token(),
        }
    }

    fn of(&self, text: &[u8]) -> &[TokenId] {
        let digits = text.iter().map(|byte| usize::from(byte - b'a'));
        let number = digits.fold(0, |number, digit| number * self.letters + digit);
        &self.tokens[text.len()][number]
    }

    fn spans(&self) -> SpanSeams {
        SpanSeams {
            pairs: Some(self.pairs.clone()),
            joins: true,
            longest_token: self.longest,
        }
    }
}

fn string(number: usize, length: usize, letters: usize) -> Vec<u8> {
    let digit = |place: usize| number / letters.pow((length - 1 - place) as u32) % letters;
    (0..length).map(|place| b'a' + digit(place) as u8).collect()
}

/// The tokens of a text by one of the two literal semantics.
fn of(reference: &Reference<'_>, standard: bool, text: &[u8]) -> Option<Vec<TokenId>> {
    match standard {
        true => reference.standard(text),
        false => reference.sentencepiece(text),
    }
}

/// A dictionary whose spans are merged by a function.
struct Merges<'d, M> {
    dictionary: &'d Dictionary,
    influence: Option<usize>,
    /// Appends the tokens of a span.
    merge: M,
}

impl<M> Tokenize for Merges<'_, M>
where
    M: Fn(&[u8], &mut Vec<TokenId>) -> Result<(), String> + Sync,
{
    type Error = String;

    fn encode(&self, text: &[u8], _: Wanted, tokens: &mut Tokens) -> Result<(), String> {
        self.merge(text, &mut tokens.ids)
    }

    fn encode_pieces(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        _: Wanted,
        tokens: &mut Tokens,
    ) -> Result<(), String> {
        let mut start = start;
        for &end in ends {
            self.merge(&text[start..end], &mut tokens.ids)?;
            start = end;
        }
        Ok(())
    }

    fn merge(&self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), String> {
        (self.merge)(part, ids)
    }

    fn influence(&self) -> Option<usize> {
        self.influence
    }

    fn token_len(&self, id: TokenId) -> Option<usize> {
        let bytes = self.dictionary.vocabulary().token_bytes(id);
        bytes.map(<[u8]>::len)
    }

    fn ends_of(&self, _: &[u8], _: &[TokenId], _: &mut Vec<usize>) {}

    fn moved(error: String, _: usize) -> String {
        error
    }
}

fn influence(dictionary: &Dictionary) -> Option<usize> {
    held_bytes_bound(&CanonicalForm::new(dictionary))
}

/// A dictionary over the first letters. Rules may use what later rules make.
fn dictionary(random: &mut Random, letters: usize) -> Result<Dictionary, String> {
    let mut tokens: Vec<Vec<u8>> = (0..letters).map(|at| vec![b'a' + at as u8]).collect();
    let mut merges = Vec::new();
    for _ in 0..3 + random.below(10) {
        let (left, right) = (random.below(tokens.len()), random.below(tokens.len()));
        let product = [&tokens[left][..], &tokens[right]].concat();
        if product.len() <= 7 && !tokens.contains(&product) {
            tokens.push(product);
            merges.push((left as TokenId, right as TokenId));
        }
    }
    // Half of the dictionaries are in the order in which tokens were made: proper.
    if random.below(2) == 0 {
        for index in (1..merges.len()).rev() {
            merges.swap(index, random.below(index + 1));
        }
    }
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).map_err(text_of)?;
    Dictionary::from_merges(vocabulary, merges).map_err(text_of)
}

fn exhaustive(settings: &Settings) -> Outcome {
    let dictionaries = settings.choose(20, 200);
    // Letters, longest string in two parts, longest in three.
    let sizes = settings.choose([(2, 9, 7), (3, 5, 4)], [(2, 12, 9), (3, 7, 6)]);
    let cases = parallel(2 * dictionaries, |job| {
        let (standard, seed) = (job % 2 == 1, job / 2);
        let mut cases = 0;
        for (letters, two, three) in sizes {
            let mut random = Random::new(seed as u64);
            let dictionary = dictionary(&mut random, letters)?;
            let table = Table::new(&dictionary, standard, letters, two);
            let spans = table.spans();
            let merges = Merges {
                dictionary: &dictionary,
                influence: influence(&dictionary),
                merge: |part: &[u8], ids: &mut Vec<TokenId>| {
                    ids.extend_from_slice(table.of(part));
                    Ok(())
                },
            };
            let joined = |text: &[u8], cuts: &[Cut]| -> Result<u64, String> {
                let (ids, _) = merge_in_parts(&merges, &spans, text, cuts, Team::ALONE)?;
                equal_ids(&ids, table.of(text), || {
                    format!("{} cut at {cuts:?}", String::from_utf8_lossy(text))
                })?;
                Ok(1)
            };
            for length in 2..=two {
                for number in 0..letters.pow(length as u32) {
                    let text = string(number, length, letters);
                    for place in 1..length {
                        for overlap in 1..=length - place {
                            let first = Cut { place, overlap };
                            cases += joined(&text, &[first])?;
                            if length > three {
                                continue;
                            }
                            for second in place + 1..length {
                                for overlap in 1..=length - second {
                                    let place = second;
                                    let cuts = [first, Cut { place, overlap }];
                                    cases += joined(&text, &cuts)?;
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(cases)
    })?;
    Ok(Checked::with_note(
        cases,
        format!("{dictionaries} dictionaries"),
    ))
}

fn random_parts(settings: &Settings) -> Outcome {
    let jobs = settings.choose(40, 1000);
    let mut reports = PieceReport::default();
    let found = Mutex::new(&mut reports);
    let cases = parallel(jobs, |job| {
        let mut random = Random::new(job as u64 + 77);
        let letters = 2 + job % 2;
        let dictionary = dictionary(&mut random, letters)?;
        let reference = Reference::new(&dictionary);
        let standard = job % 4 >= 2;
        let literal = Merges {
            dictionary: &dictionary,
            influence: influence(&dictionary),
            merge: |part: &[u8], ids: &mut Vec<TokenId>| {
                ids.extend(of(&reference, standard, part).ok_or("an atom is missing")?);
                Ok(())
            },
        };
        let spans = SpanSeams {
            pairs: None,
            joins: true,
            longest_token: dictionary.vocabulary().longest_token(),
        };
        for _ in 0..1000 {
            let length = 8 + random.below(30);
            // Half of the texts are nearly periodic.
            let period = 1 + random.below(4);
            let is_periodic = random.below(2) == 0;
            let mut text: Vec<u8> = Vec::new();
            for at in 0..length {
                let repeats = is_periodic && at >= period && random.below(12) > 0;
                text.push(match repeats {
                    true => text[at - period],
                    false => b'a' + random.below(letters) as u8,
                });
            }
            let mut places: Vec<usize> = (0..3).map(|_| 1 + random.below(length - 1)).collect();
            places.sort_unstable();
            places.dedup();
            let cuts: Vec<Cut> = places
                .into_iter()
                .map(|place| Cut {
                    place,
                    overlap: 1 + random.below(12),
                })
                .collect();
            let mut expected = Vec::new();
            literal.merge(&text, &mut expected)?;
            let (ids, report) = merge_in_parts(&literal, &spans, &text, &cuts, Team::ALONE)?;
            equal_ids(&ids, &expected, || {
                format!("{} cut at {cuts:?}", String::from_utf8_lossy(&text))
            })?;
            if let Ok(mut found) = found.lock() {
                found.joined_cuts += report.joined_cuts;
                found.extensions += report.extensions;
                found.runs += usize::from(report.is_whole);
            }
        }
        Ok(1000)
    })?;
    let PieceReport {
        joined_cuts,
        extensions,
        runs,
        ..
    } = reports;
    let note = format!(
        "{joined_cuts} cuts, {extensions} where the left part went on, {runs} merged as a whole"
    );
    Ok(Checked::with_note(cases, note))
}

/// A text over the first letters that repeats itself, but for some letters.
fn nearly_periodic(random: &mut Random, letters: usize, length: usize) -> Vec<u8> {
    let longest = [4, 20, 300][random.below(3)];
    let period = 1 + random.below(longest);
    let one_in = [2, 12, 1000, usize::MAX][random.below(4)];
    let mut text: Vec<u8> = Vec::with_capacity(length);
    for at in 0..length {
        let repeats = at >= period && random.below(one_in) > 0;
        text.push(match repeats {
            true => text[at - period],
            false => b'a' + random.below(letters) as u8,
        });
    }
    text
}

/// Small dictionaries whose influence is known. How much is merged is counted where it is done.
fn merged_twice(settings: &Settings) -> Outcome {
    let dictionaries = settings.choose(20, 200);
    let (longest, texts) = settings.choose((8, 10), (11, 60));
    let found = Mutex::new((PieceReport::default(), 0.0_f64));
    let cases = parallel(dictionaries, |job| {
        let mut random = Random::new(job as u64 + 5);
        let letters = 2 + job % 2;
        let (dictionary, influence) = loop {
            let dictionary = dictionary(&mut random, letters)?;
            let canonical = CanonicalForm::new(&dictionary);
            if let Some(influence) = held_bytes_bound(&canonical) {
                break (dictionary, influence);
            }
        };
        let canonical = Arc::new(CanonicalForm::new(&dictionary));
        let encoder = || {
            Algorithm::PriorityMerge
                .encoder(&canonical)
                .map_err(text_of)
        };
        let of_one = |text: &[u8]| {
            let mut ids = Vec::new();
            encoder()?.encode_span(text, &mut ids).map_err(text_of)?;
            Ok::<_, String>(ids)
        };
        let bytes = AtomicUsize::new(0);
        let merges = Merges {
            dictionary: &dictionary,
            influence: Some(influence),
            merge: |part: &[u8], ids: &mut Vec<TokenId>| {
                bytes.fetch_add(part.len(), Ordering::Relaxed);
                encoder()?.encode_span(part, ids).map_err(text_of)
            },
        };
        let vocabulary = dictionary.vocabulary();
        let spans = SpanSeams {
            pairs: Some(BytePairs::new(vocabulary)),
            joins: true,
            longest_token: vocabulary.longest_token(),
        };
        let seams = Seams::new(&[], &[], spans);
        let (none, workers) = (SpecialMatcher::none(), Workers::new(1));
        let mut cases = 0;
        let mut check = |text: &[u8], part: usize| {
            bytes.store(0, Ordering::Relaxed);
            let strategy = Synchronised::new().part_bytes(part);
            let (tokens, report) =
                strategy.encode(&merges, &seams, &none, text, Wanted::Ids, &workers)?;
            let merged = bytes.load(Ordering::Relaxed);
            let place = || format!("{} in parts of {part}", String::from_utf8_lossy(text));
            equal_ids(&tokens.ids, &of_one(text)?, place)?;
            ensure(merged <= 2 * text.len(), || {
                format!("{merged} bytes for {}: {}", text.len(), place())
            })?;
            if let Ok(mut found) = found.lock() {
                found.0.joined_cuts += report.pieces.joined_cuts;
                found.0.extensions += report.pieces.extensions;
                found.0.is_whole |= report.pieces.is_whole;
                found.1 = found.1.max(merged as f64 / text.len() as f64);
            }
            cases += 1;
            Ok::<_, String>(())
        };
        let longest = longest - 3 * (letters - 2);
        for length in 2..=longest {
            for number in 0..letters.pow(length as u32) {
                let text = string(number, length, letters);
                (1..length).try_for_each(|part| check(&text, part))?;
            }
        }
        for _ in 0..texts {
            let length = 300 + random.below(6000);
            let text = nearly_periodic(&mut random, letters, length);
            [16, 80, 300, 1000]
                .into_iter()
                .try_for_each(|part| check(&text, part))?;
        }
        Ok(cases)
    })?;
    let (pieces, most) = found.into_inner().map_err(text_of)?;
    ensure(pieces.extensions > 0, || "all parts joined".to_owned())?;
    ensure(!pieces.is_whole, || "one was merged as a whole".to_owned())?;
    let PieceReport {
        joined_cuts,
        extensions,
        ..
    } = pieces;
    Ok(Checked::with_note(
        cases,
        format!(
            "{dictionaries} dictionaries, {joined_cuts} cuts, {extensions} where the left part went on, {most:.2} times at most"
        ),
    ))
}

/// Words of letters that are no words: random, and nearly periodic.
fn long_words(settings: &Settings) -> Outcome {
    let (rounds, bytes) = settings.choose((2, 100_000), (12, 400_000));
    let vocabularies = vocabularies()?;
    let found = Mutex::new((PieceReport::default(), 0.0_f64));
    let cases = parallel(vocabularies.len(), |job| {
        let tokenizer = &vocabularies[job];
        let parallel = tokenizer.parallel().threads(2);
        let mut random = Random::new(job as u64 + 3);
        for _ in 0..rounds {
            let length = bytes / 2 + random.below(bytes);
            let text = nearly_periodic(&mut random, 26, length);
            let expected = tokenizer.encode_bytes(&text).map_err(text_of)?;
            for part in [None, Some(3000)] {
                let parallel = match part {
                    Some(part) => parallel.clone().part_bytes(part),
                    None => parallel.clone(),
                };
                let (ids, report) = parallel.encode_measured(&text).map_err(text_of)?;
                let place = || {
                    format!(
                        "{}, a word of {length}, parts of {part:?}",
                        name_of(tokenizer)
                    )
                };
                equal_ids(&ids, &expected, place)?;
                let pieces = report.pieces;
                ensure(pieces.merged_bytes <= 2 * length, || {
                    format!("{} merged: {}", pieces.merged_bytes, place())
                })?;
                if let Ok(mut found) = found.lock() {
                    found.0.joined_cuts += pieces.joined_cuts;
                    found.0.extensions += pieces.extensions;
                    found.0.runs += pieces.runs;
                    found.1 = found.1.max(pieces.merged_bytes as f64 / length as f64);
                }
            }
        }
        Ok(2 * rounds as u64)
    })?;
    let (pieces, most) = found.into_inner().map_err(text_of)?;
    let PieceReport {
        joined_cuts,
        extensions,
        runs,
        ..
    } = pieces;
    Ok(Checked::with_note(
        cases,
        format!(
            "words; {joined_cuts} cuts, {extensions} where the left part went on, {runs} stretches filled in, {most:.2} times at most"
        ),
    ))
}

const TRAPS: [&str; 30] = [
    "word",
    " Two",
    " ",
    "   ",
    "\n",
    "\r\n",
    "\t\t",
    "\n  \n",
    "12",
    "3456",
    "'s",
    "'LL",
    "!",
    "//\n",
    "<|endoftext|>",
    "<|endo",
    "|>",
    "\u{e9}",
    "\u{4e2d}\u{6587}",
    "\u{6f22}AV",
    "e\u{301}",
    "\u{ff12}\u{ff14}",
    "\u{1f600}",
    "\u{200d}",
    "\u{3042}",
    "\u{e01}\u{e34}",
    "\u{a0}",
    "\u{2028}",
    ".the",
    "informa\u{e7}\u{e3}o",
];

fn traps(settings: &Settings) -> Outcome {
    let rounds = settings.choose(300, 10_000);
    let vocabularies = vocabularies()?;
    let jobs = vocabularies.len() * 2;
    let cases = parallel(jobs, |job| {
        let plain = &vocabularies[job / 2];
        let tokenizer = match job % 2 {
            0 => plain.clone(),
            _ => plain.with_specials(Specials::AllowAll).map_err(text_of)?,
        };
        let mut random = Random::new(job as u64);
        let teams: Vec<_> = [1, 2, 3, 8, 64]
            .map(|threads| tokenizer.parallel().threads(threads))
            .into();
        let mut cases = 0;
        for round in 0..rounds {
            let mut text = Vec::new();
            while text.len() < 3000 {
                let times = match random.below(30) {
                    0 => 200 + random.below(3000),
                    _ => 1,
                };
                text.extend(random.pick(&TRAPS).repeat(times).into_bytes());
                if random.below(9) == 0 {
                    let count = random.below(4);
                    text.extend(random.bytes(count));
                }
            }
            let expected = tokenizer.encode_bytes(&text).map_err(text_of)?;
            let part = [64, 300, 1 << 10, 1 << 14, 1 << 20][random.below(5)];
            let parallel = &teams[round % teams.len()];
            let threads = parallel.thread_count();
            let found = parallel
                .clone()
                .part_bytes(part)
                .encode(&text)
                .map_err(text_of)?;
            equal_ids(&found, &expected, || {
                let text = String::from_utf8_lossy(&text);
                format!(
                    "{}, {threads} threads, parts of {part}: {text:?}",
                    name_of(&tokenizer)
                )
            })?;
            cases += 1;
        }
        Ok(cases)
    })?;
    Ok(Checked::with_note(cases, "texts"))
}

fn corpora_in_parts(settings: &Settings, corpora: &[Corpus], tokenizers: &[Tokenizer]) -> Outcome {
    let rounds = settings.choose(1, 6);
    let mut random = Random::new(5);
    let mut cases = 0;
    for tokenizer in tokenizers {
        let parallel = tokenizer.parallel().threads(2);
        for Corpus { name, text } in corpora {
            let replaced;
            let text = match tokenizer.patterns() {
                // A vocabulary without patterns has its own sign for blanks.
                [] => {
                    replaced = text.replace(' ', "\u{2581}");
                    &replaced
                }
                _ => text,
            };
            let expected = tokenizer.encode_with_offsets(text).map_err(text_of)?;
            for _ in 0..rounds {
                let bits = 10 + random.below(8);
                let part = 500 + random.below(1 << bits);
                let parallel = parallel.clone().part_bytes(part);
                let place = || format!("{}, {name} in parts of {part}", name_of(tokenizer));
                let ids = parallel.encode(text).map_err(text_of)?;
                equal_ids(&ids, &expected.ids, place)?;
                let count = parallel.count(text).map_err(text_of)?;
                ensure(count == ids.len(), place)?;
                let encoding = parallel.encode_with_offsets(text).map_err(text_of)?;
                ensure(encoding == expected, place)?;
                cases += ids.len() as u64;
            }
            let letter = ["a", "e", " ", "\n", "0", "\u{4e2d}"][random.below(6)];
            let same = letter.repeat(50_000 + random.below(9));
            let expected = tokenizer.encode(&same).map_err(text_of)?;
            let found = parallel
                .clone()
                .part_bytes(9000)
                .encode(&same)
                .map_err(text_of)?;
            equal_ids(&found, &expected, || {
                format!("{}, {letter:?} repeated", name_of(tokenizer))
            })?;
        }
    }
    Ok(Checked::with_note(
        cases,
        format!("tokens, {} vocabularies", tokenizers.len()),
    ))
}

fn batches(corpora: &[Corpus]) -> Outcome {
    let strict = Tokenizer::o200k_base()
        .with_specials(Specials::Forbid)
        .map_err(text_of)?;
    let mut random = Random::new(9);
    let mut documents: Vec<&str> = Vec::new();
    for Corpus { text, .. } in corpora {
        let mut rest = text.as_str();
        while !rest.is_empty() && documents.len() < 3000 {
            let bits = random.below(17);
            let length = random.below(1 << bits);
            let (first, behind) = rest.split_at(rest.floor_char_boundary(length.max(4)));
            documents.push(first);
            rest = behind;
        }
    }
    let at = random.below(documents.len());
    documents[at] = "text <|endoftext|> text";
    let first = documents
        .iter()
        .position(|text| strict.encode(text).is_err());
    let mut cases = 0;
    for threads in [1, 2, 5] {
        let parallel = strict.parallel().threads(threads);
        let each = parallel.encode_each(&documents);
        for (index, (found, text)) in each.iter().zip(&documents).enumerate() {
            match (found, strict.encode(text)) {
                (Ok(found), Ok(expected)) => {
                    equal_ids(found, &expected, || format!("document {index}"))?;
                }
                (Err(error), Err(_)) => ensure(error.document() == Some(index), || {
                    format!("document {index} is called {:?}", error.document())
                })?,
                _ => return Err(format!("document {index} fails in one of the two ways")),
            }
            cases += 1;
        }
        let error = parallel.encode_batch(&documents).err();
        let document = error.and_then(|error| error.document());
        ensure(first.is_some() && document == first, || {
            format!("{document:?} is called at fault, not {first:?}")
        })?;
    }
    Ok(Checked::with_note(cases, "documents"))
}

/// The vocabularies of the data folder: as their files say, or where a part of a file is not supported
/// the dictionary with its pattern.
pub(crate) fn other_models(data: &Path) -> Result<Vec<Tokenizer>, String> {
    let models: [(&str, Vec<Pattern>); 5] = [
        ("llama3_1", vec![Pattern::cl100k()]),
        ("qwen3", Pattern::by_name("qwen3").into_iter().collect()),
        ("deepseek_v3", Pattern::deepseek_v3().into()),
        ("gptoss", vec![Pattern::o200k()]),
        ("llama2", Vec::new()),
    ];
    let mut tokenizers = Vec::new();
    for (name, patterns) in models {
        let file = models::file(name, data)?;
        let dictionary = read_dictionary(&file, &ReadLimits::default()).map_err(text_of)?;
        let builder = TokenizerBuilder::new(&dictionary).name(name);
        let builder = patterns
            .into_iter()
            .fold(builder, TokenizerBuilder::pattern);
        tokenizers.push(builder.build().map_err(text_of)?);
    }
    Ok(tokenizers)
}
