//! The explicit automata and transducers of 002, against the reference tokenizer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, CanonicalForm, Dictionary, MergeRule, TokenId, TokenOrigin, Vocabulary};
use bpe_dfa::PairRelation;
use bpe_dfa::explicit::{
    ExplicitDfa, Limits, State, StringDfa, SubsequentialTransducer, Transducer,
};
use bytepair::Tokenizer;

use super::core::{Merge, dictionary_of, merge_lists, words};
use super::support::{Corpus, Random, ensure, equal_ids, grouped, parallel, text_of};
use super::{Checked, Claims, Outcome, Settings};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "explicit automata accept the reference tokenizations and no others, all proper lists of up to 3 merges over two letters (002 Thm. 1, 2)",
        |settings, _| all_lists(settings),
    );
    claims.check(
        "explicit automata accept the reference tokenizations and no others, random dictionaries and regular expressions (002 Thm. 1, 2)",
        |settings, _| random_lists(settings),
    );
    claims.check(
        "the family that meets the bound of 002 Theorem 2 has exactly that many states",
        |settings, _| family(settings.choose(15, 19)),
    );
    claims.check(
        "a merge adds no locality and stays within Theorem 3 (002 Lemmas 2, 4, 5, Cor. 2)",
        |settings, _| locality(settings.choose(300, 10_000)),
    );
    claims.check(
        "the explicit automaton of the first rules of r50k accepts the encoder's tokens, and is the pair relation",
        first_rules,
    );
    claims.check(
        "subsequential transducers are the encoder, all proper lists of up to 3 merges over two letters, and random ones (002 Thm. 4)",
        |settings, _| transducers(settings),
    );
    claims.check(
        "the states of a minimal subsequential transducer are its pending texts",
        |settings, _| pending_texts(settings.choose(400, 10_000)),
    );
}

/// Languages over a and b, with more texts than their words of a length, and some without a text.
const PATTERNS: [&str; 10] = [
    "[ab]*",
    "a*",
    "(?:ab)*",
    "[ab]*aa[ab]*",
    "(?:a|ba)*b?",
    "a{3,7}|b",
    "[ab]{0,7}b",
    "(?:aab|b)*a?",
    "(?:a|b|ab)*bab",
    "[a&&b]",
];

fn limits() -> Limits {
    Limits::default()
}

/// The proper ones of all lists, as dictionaries.
fn proper_lists() -> Result<Vec<(Vec<Merge>, Dictionary)>, String> {
    let mut lists = Vec::new();
    for (number, list) in merge_lists(0..=3).into_iter().enumerate() {
        let dictionary = dictionary_of(&list, number)?;
        if dictionary.is_proper() {
            lists.push((list, dictionary));
        }
    }
    Ok(lists)
}

fn all_lists(settings: &Settings) -> Outcome {
    let longest = settings.choose(8, 10);
    let texts = words(longest);
    let languages = PATTERNS.iter().map(|pattern| language(pattern, &texts));
    let languages = languages.collect::<Result<Vec<_>, _>>()?;
    let lists = proper_lists()?;
    let cases = parallel(lists.len(), |number| {
        let dictionary = &lists[number].1;
        let tokens = tokenize(dictionary, &texts)?;
        let mut cases = 0;
        for language in &languages {
            cases += check_language(dictionary, language, &tokens, longest)?;
        }
        Ok(cases)
    })?;
    let note = format!(
        "{} dictionaries times {} languages, texts up to {longest} letters",
        lists.len(),
        PATTERNS.len()
    );
    Ok(Checked::with_note(cases, note))
}

/// An automaton of texts, and which texts it accepts.
struct Language {
    pattern: String,
    dfa: StringDfa,
    accepted: Vec<bool>,
}

fn language(pattern: &str, texts: &[Vec<u8>]) -> Result<Language, String> {
    let dfa = StringDfa::from_regex(pattern, &limits()).map_err(text_of)?;
    // Another engine says what the texts are.
    let oracle = fancy_regex::Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(text_of)?;
    let mut accepted = Vec::with_capacity(texts.len());
    for text in texts {
        let text = std::str::from_utf8(text).map_err(text_of)?;
        let expected = oracle.is_match(text).map_err(text_of)?;
        ensure(dfa.accepts(text.as_bytes()) == expected, || {
            format!("the automaton of {pattern} is wrong on {text:?}")
        })?;
        accepted.push(expected);
    }
    let pattern = pattern.to_owned();
    Ok(Language {
        pattern,
        dfa,
        accepted,
    })
}

fn tokenize(dictionary: &Dictionary, texts: &[Vec<u8>]) -> Result<Vec<Vec<TokenId>>, String> {
    let reference = Reference::new(dictionary);
    let tokens = texts.iter().map(|text| reference.standard(text));
    tokens
        .collect::<Option<_>>()
        .ok_or_else(|| "a letter is no token".to_owned())
}

/// Both directions: the accepted sequences of up to so many letters are exactly the tokenizations of the
/// language's texts. And the bound of Theorem 2.
fn check_language(
    dictionary: &Dictionary,
    language: &Language,
    tokens: &[Vec<TokenId>],
    longest: usize,
) -> Result<u64, String> {
    let with = || format!("{} with {:?}", language.pattern, dictionary.rules());
    let form = CanonicalForm::new(dictionary);
    let dfa = ExplicitDfa::new(&language.dfa, &form, &limits()).map_err(text_of)?;
    let mut expected: Vec<&Vec<TokenId>> = tokens
        .iter()
        .zip(&language.accepted)
        .filter(|(_, accepted)| **accepted)
        .map(|(tokens, _)| tokens)
        .collect();
    expected.sort_unstable();
    let mut found = accepted(&dfa, longest);
    found.sort_unstable();
    ensure(found.iter().eq(expected.iter().copied()), || {
        format!(
            "{} accepted, {} expected: {}",
            found.len(),
            expected.len(),
            with()
        )
    })?;
    let base = ExplicitDfa::base(&language.dfa, &form, &limits()).map_err(text_of)?;
    let degree = base.locality_degree(1, &limits()).map_err(text_of)?;
    ensure(
        dfa.state_count() <= base.state_count() + form.rule_count() * degree,
        || format!("{} states: {}", dfa.state_count(), with()),
    )?;
    let minimal = dfa.minimize();
    ensure(
        minimal.state_count() <= dfa.state_count()
            && minimal
                .difference(&dfa, &limits())
                .map_err(text_of)?
                .is_none(),
        || format!("minimisation changes {}", with()),
    )?;
    Ok(found.len() as u64 + tokens.len() as u64)
}

/// All accepted sequences of up to so many bytes.
fn accepted(dfa: &ExplicitDfa, longest: usize) -> Vec<Vec<TokenId>> {
    let mut found = Vec::new();
    let mut open = vec![(dfa.start(), Vec::new(), 0)];
    while let Some((state, sequence, length)) = open.pop() {
        for (token, to) in dfa.transitions_from(state) {
            let bytes = dfa.vocabulary().token_bytes(token).map_or(0, <[u8]>::len);
            if length + bytes <= longest {
                let mut longer: Vec<TokenId> = sequence.clone();
                longer.push(token);
                open.push((to, longer, length + bytes));
            }
        }
        if dfa.is_accepting(state) {
            found.push(sequence);
        }
    }
    found
}

fn random_lists(settings: &Settings) -> Outcome {
    const LONGEST: usize = 10;
    let (dictionaries, patterns) = settings.choose((150, 4), (3_000, 10));
    let texts = words(LONGEST);
    let empty = AtomicUsize::new(0);
    let cases = parallel(dictionaries, |number| {
        let mut random = Random::new(number as u64);
        let dictionary = random_dictionary(&mut random, 9)?;
        let tokens = tokenize(&dictionary, &texts)?;
        let mut cases = 0;
        for _ in 0..patterns {
            let language = language(&random_pattern(&mut random, 3), &texts)?;
            empty.fetch_add(usize::from(language.dfa.is_empty()), Ordering::Relaxed);
            cases += check_language(&dictionary, &language, &tokens, LONGEST)?;
        }
        Ok(cases)
    })?;
    let note = format!(
        "{dictionaries} dictionaries, {patterns} languages each ({} empty in all), texts up to {LONGEST} letters",
        empty.into_inner()
    );
    Ok(Checked::with_note(cases, note))
}

/// A proper dictionary over a and b: sides are tokens that are there already.
fn random_dictionary(random: &mut Random, most: usize) -> Result<Dictionary, String> {
    let mut tokens = vec![b"a".to_vec(), b"b".to_vec()];
    let mut merges: Vec<Merge> = Vec::new();
    for _ in 0..random.below(most + 1) {
        let left = tokens[random.below(tokens.len())].clone();
        let right = tokens[random.below(tokens.len())].clone();
        let product = [&left[..], &right].concat();
        if product.len() <= 8 && !tokens.contains(&product) {
            tokens.push(product);
            merges.push((left, right));
        }
    }
    dictionary_of(&merges, random.below(1 << 20))
}

/// A regular expression over a and b.
fn random_pattern(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return (*random.pick(&["a", "b", "[ab]", "ab", "a?", "[a&&b]"])).to_owned();
    }
    let one = random_pattern(random, depth - 1);
    match random.below(6) {
        0 => format!("(?:{one}|{})", random_pattern(random, depth - 1)),
        1 => format!("(?:{one})*"),
        2 => format!("(?:{one})?"),
        3 => format!("(?:{one}){{1,3}}"),
        _ => format!("{one}{}", random_pattern(random, depth - 1)),
    }
}

/// a a, aa aa, aaaa aaaa, ...: k rules and k + 1 states.
fn family(most: usize) -> Outcome {
    let lengths = (0..=most).map(|power| 1_usize << power);
    let tokens = (0..).zip(lengths.map(|length| "a".repeat(length)));
    let vocabulary = Vocabulary::new(tokens).map_err(text_of)?;
    let pairs = (0..most as TokenId).map(|id| (id, id));
    let dictionary = Dictionary::from_merges(vocabulary, pairs).map_err(text_of)?;
    let form = CanonicalForm::new(&dictionary);
    let limits = limits();
    let universal = StringDfa::universal();
    let mut dfa = ExplicitDfa::base(&universal, &form, &limits).map_err(text_of)?;
    for (number, rule) in dictionary.rules().iter().enumerate() {
        dfa.apply_merge(rule, &limits).map_err(text_of)?;
        for states in [
            dfa.state_count(),
            dfa.trim().state_count(),
            dfa.minimize().state_count(),
        ] {
            ensure(states == number + 2, || {
                format!("{states} states after {} rules", number + 1)
            })?;
        }
    }
    Ok(Checked::with_note(
        most as u64,
        format!("the longest token has {} bytes", 1_u64 << most),
    ))
}

fn locality(dictionaries: usize) -> Outcome {
    let merges = AtomicUsize::new(0);
    let cases = parallel(dictionaries, |number| {
        let mut random = Random::new(number as u64);
        let dictionary = random_dictionary(&mut random, 9)?;
        let form = CanonicalForm::new(&dictionary);
        let limits = limits();
        let pattern = random_pattern(&mut random, 3);
        let texts = StringDfa::from_regex(&pattern, &limits).map_err(text_of)?;
        let mut dfa = ExplicitDfa::base(&texts, &form, &limits).map_err(text_of)?;
        let with = || format!("{pattern} with {:?}", dictionary.rules());
        let degrees = |dfa: &ExplicitDfa| {
            let degree = |k| dfa.locality_degree(k, &limits).map_err(text_of);
            Ok::<_, String>([degree(1)?, degree(2)?, degree(3)?])
        };
        let mut before = degrees(&dfa)?;
        for rule in dictionary.rules() {
            let (states, tokens) = (dfa.state_count() as u64, dfa.tokens().len() as u64 + 1);
            let ends = dfa.ends(rule.left).len();
            let summary = dfa.apply_merge(rule, &limits).map_err(text_of)?;
            let after = degrees(&dfa)?;
            let grown = before
                .iter()
                .zip(&after)
                .any(|(before, after)| after > before);
            ensure(!grown && before[0] == after[0], || {
                format!("locality {before:?} becomes {after:?}: {}", with())
            })?;
            let fresh = summary.fresh_states;
            ensure(fresh <= ends && ends <= after[0], || {
                format!("{fresh} states more, {ends} ends: {}", with())
            })?;
            ensure(summary.cells <= 6 * states + fresh as u64 * tokens, || {
                format!("{} cells for {states} states: {}", summary.cells, with())
            })?;
            let ambiguity = dfa.context_ambiguity(&limits).map_err(text_of)?;
            ensure(ambiguity.is_none(), || format!("{ambiguity:?}: {}", with()))?;
            merges.fetch_add(1, Ordering::Relaxed);
            before = after;
        }
        Ok(dictionary.rules().len() as u64)
    })?;
    Ok(Checked::with_note(
        cases,
        format!("k from 1 to 3, {dictionaries} dictionaries"),
    ))
}

/// The first rules of r50k and the atoms as a dictionary of their own.
fn first_rules(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let count = settings.choose(700, 3_000);
    let r50k = Tokenizer::from_name("r50k_base").map_err(text_of)?;
    let whole = r50k.canonical();
    let mut rules: Vec<MergeRule> = whole.rules().collect();
    rules.sort_unstable_by_key(|rule| rule.priority);
    rules.truncate(count);
    let made: BTreeSet<TokenId> = rules.iter().map(|rule| rule.product).collect();
    let atom = |id| whole.origin(id) == Some(TokenOrigin::Atom);
    let tokens = whole.vocabulary().iter();
    let tokens = tokens.filter(|&(id, _)| atom(id) || made.contains(&id));
    let vocabulary = Vocabulary::new(tokens).map_err(text_of)?;
    let pairs = rules.iter().map(|rule| (rule.left, rule.right));
    let dictionary = Dictionary::from_merges(vocabulary, pairs).map_err(text_of)?;
    let form = std::sync::Arc::new(CanonicalForm::new(&dictionary));

    let dfa = ExplicitDfa::universal(&form, &limits()).map_err(text_of)?;
    let degree = dfa.locality_degree(1, &limits()).map_err(text_of)?;
    ensure(degree == 1, || {
        format!("the degree of locality is {degree}")
    })?;
    ensure(dfa.state_count() <= 1 + count, || {
        format!("{} states", dfa.state_count())
    })?;
    let mut encoder = Algorithm::PriorityMerge.encoder(&form).map_err(text_of)?;
    let mut tokens = Vec::new();
    let mut cases = 0;
    for corpus in corpora {
        tokens.clear();
        encoder
            .encode_span(corpus.text.as_bytes(), &mut tokens)
            .map_err(text_of)?;
        ensure(dfa.accepts(tokens.iter().copied()), || {
            format!("{}: its tokens are not accepted", corpus.name)
        })?;
        // Where the text is read one byte further, most sequences are not what is accepted: each token
        // in the two parts that make it.
        for &token in tokens.iter().take(20_000) {
            if let Some(rule) = form.rule(token) {
                ensure(!dfa.accepts([rule.left, rule.right]), || {
                    format!("the parts of token {token} are accepted")
                })?;
                cases += 1;
            }
        }
        cases += tokens.len() as u64;
    }
    // The pair relation of the same dictionary, made without any state.
    let pairs = PairRelation::new(&form).map_err(text_of)?;
    let mut transitions = 0;
    for (left, _) in form.vocabulary().iter() {
        let state = dfa.ends(left).into_iter().next();
        for (right, _) in form.vocabulary().iter() {
            let can_follow = state.is_some_and(|state| dfa.next(state, right).is_some());
            ensure(can_follow == pairs.is_valid(left, right), || {
                format!("pair {left}, {right}: {can_follow} by the automaton")
            })?;
            transitions += u64::from(can_follow);
            cases += 1;
        }
    }
    ensure(transitions == pairs.valid_pairs(), || {
        format!("{transitions} pairs, {} counted", pairs.valid_pairs())
    })?;
    let minimal = dfa.minimize().state_count();
    ensure(minimal == pairs.state_count(), || {
        format!("{minimal} states, {} by rows", pairs.state_count())
    })?;
    let note = format!(
        "{count} rules: {} states, {minimal} of them different, {} valid pairs",
        grouped(dfa.state_count() as u64),
        grouped(transitions)
    );
    Ok(Checked::with_note(cases, note))
}

fn tokenizer_of(dictionary: &Dictionary) -> Result<SubsequentialTransducer, String> {
    let form = CanonicalForm::new(dictionary);
    let dfa = ExplicitDfa::universal(&form, &limits()).map_err(text_of)?;
    let transducer = Transducer::new(&dfa, &limits()).map_err(text_of)?;
    transducer.determinize(&limits()).map_err(text_of)
}

fn transducers(settings: &Settings) -> Outcome {
    let texts = words(12);
    let lists = proper_lists()?;
    // Of the lists every so many in a quick run.
    let step = settings.choose(12, 1);
    let most_states = AtomicUsize::new(0);
    let one = |dictionary: &Dictionary| {
        let tokenizer = tokenizer_of(dictionary)?;
        most_states.fetch_max(tokenizer.state_count(), Ordering::Relaxed);
        let reference = Reference::new(dictionary);
        for text in &texts {
            let expected = reference.standard(text).ok_or("a letter is no token")?;
            let found = tokenizer.apply(text).ok_or("no output")?;
            equal_ids(&found, &expected, || {
                format!(
                    "{:?} with {:?}",
                    String::from_utf8_lossy(text),
                    dictionary.rules()
                )
            })?;
        }
        Ok(texts.len() as u64)
    };
    let chosen: Vec<&Dictionary> = lists
        .iter()
        .step_by(step)
        .map(|(_, dictionary)| dictionary)
        .collect();
    let mut cases = parallel(chosen.len(), |number| one(chosen[number]))?;
    let random = settings.choose(60, 2_000);
    cases += parallel(random, |number| {
        one(&random_dictionary(&mut Random::new(number as u64), 9)?)
    })?;
    let note = format!(
        "{} dictionaries, texts up to 12 letters, up to {} states",
        chosen.len() + random,
        most_states.into_inner()
    );
    Ok(Checked::with_note(cases, note))
}

/// Two texts lead to one state exactly if what is not yet written of them is the same text.
fn pending_texts(dictionaries: usize) -> Outcome {
    let most_pending = AtomicUsize::new(0);
    // A dictionary over whose texts more can be pending than its longest token has bytes.
    let known = [
        ("a", "b"),
        ("a", "ab"),
        ("ab", "a"),
        ("b", "ab"),
        ("aab", "b"),
    ];
    let known = known.map(|(left, right)| (left.as_bytes().to_vec(), right.as_bytes().to_vec()));
    let cases = parallel(dictionaries, |number| {
        let dictionary = match number {
            0 => dictionary_of(&known, 0)?,
            _ => random_dictionary(&mut Random::new(number as u64), 7)?,
        };
        let minimal = tokenizer_of(&dictionary)?.minimize();
        ensure(minimal.initial_output().is_empty(), || {
            "output before input".to_owned()
        })?;
        // Every state by the first text that leads to it, then every step from there.
        let mut pending: BTreeMap<State, Vec<u8>> = BTreeMap::from([(minimal.start(), Vec::new())]);
        let mut open = vec![minimal.start()];
        let mut cases = 0;
        while let Some(state) = open.pop() {
            let before = pending[&state].clone();
            for (byte, output, next) in minimal.steps_from(state) {
                let mut text = before.clone();
                text.push(byte);
                let written = minimal.vocabulary().decode_bytes(output).map_err(text_of)?;
                let rest = text.strip_prefix(&written[..]);
                let rest = rest.ok_or("what is written is not what was read")?.to_vec();
                most_pending.fetch_max(rest.len(), Ordering::Relaxed);
                match pending.get(&next) {
                    None => {
                        pending.insert(next, rest);
                        open.push(next);
                    }
                    Some(known) => ensure(*known == rest, || {
                        format!("two pending texts at one state, {:?}", dictionary.rules())
                    })?,
                }
                cases += 1;
            }
        }
        let different: BTreeSet<&Vec<u8>> = pending.values().collect();
        ensure(different.len() == minimal.state_count(), || {
            format!(
                "{} pending texts at {} states, {:?}",
                different.len(),
                minimal.state_count(),
                dictionary.rules()
            )
        })?;
        Ok(cases)
    })?;
    let note = format!(
        "{dictionaries} dictionaries, up to {} bytes pending",
        most_pending.into_inner()
    );
    Ok(Checked::with_note(cases, note))
}
