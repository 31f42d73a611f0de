//! Examples 1 to 9 and Figures 1 to 6 of 002: what they say, as tests.
//!
//! Figures 1, 2 and 4 are read from what the text says of their runs.

use bpe_core::MergeRule;
use bpe_core::reference::Reference;
use bpe_dfa::explicit::{ExplicitDfa, Limits, State, StringDfa, Transducer, TransducerEdge};

use super::oracle::{Fixture, Literal, accepted, words};

fn limits() -> Limits {
    Limits::default()
}

/// The rules in the order of their priorities.
fn rules(fixture: &Fixture) -> Vec<MergeRule> {
    fixture.dictionary.rules().to_vec()
}

/// The automata A_0, A_1, ... over all texts.
fn universal_steps(fixture: &Fixture) -> Vec<ExplicitDfa> {
    let mut dfa =
        ExplicitDfa::base(&StringDfa::universal(), &fixture.form, &limits()).expect("small");
    let mut steps = vec![dfa.clone()];
    for rule in rules(fixture) {
        dfa.apply_merge(&rule, &limits())
            .expect("context-invariant");
        steps.push(dfa.clone());
    }
    steps
}

#[test]
fn example_1_all_ways_give_the_same_tokens() {
    let fixture = Fixture::new("abc", &["a a", "a b", "b c", "ab c", "bc ab"]);
    let expected = fixture.ids("aa aa a c bc abc");
    let text = b"aaaaacbcabc";
    assert_eq!(fixture.reference(text), expected);
    let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
    assert!(dfa.accepts(expected.iter().copied()));
    let transducer = Transducer::new(&dfa, &limits()).expect("small");
    assert_eq!(transducer.outputs(text), [expected.clone()].into());
    let tokenizer = transducer.determinize(&limits()).expect("twinned");
    assert_eq!(tokenizer.apply(text), Some(expected));
    // The two halves of bc ab are there in the end: the rule was kept from applying by a better one.
    assert!(!dfa.accepts(fixture.ids("aa aa a c bcab c")));
}

#[test]
fn figure_1_is_deterministic_but_has_two_tokenizations_of_abc() {
    let fixture = Fixture::new("abc", &["b c"]);
    let figure = fixture.automaton(
        5,
        &[3, 4],
        &[(0, "a", 1), (1, "b", 2), (2, "c", 3), (1, "bc", 4)],
    );
    assert!(figure.accepts(fixture.ids("a b c")) && figure.accepts(fixture.ids("a bc")));
    let found = figure
        .context_ambiguity(&limits())
        .expect("small")
        .expect("one");
    let mut found = [found.first, found.second];
    found.sort_by_key(Vec::len);
    assert_eq!(found, [fixture.ids("bc"), fixture.ids("b c")]);
    let found = figure
        .accepted_ambiguity(&limits())
        .expect("small")
        .expect("one");
    let mut found = [found.first, found.second];
    found.sort_by_key(Vec::len);
    assert_eq!(found, [fixture.ids("a bc"), fixture.ids("a b c")]);
}

#[test]
fn figure_2_has_unique_tokenizations_and_is_not_context_invariant() {
    let fixture = Fixture::new("a", &["a a"]);
    let figure = fixture.automaton(2, &[1], &[(0, "a", 0), (0, "aa", 1)]);
    for tokens in ["aa", "a aa", "a a aa"] {
        assert!(figure.accepts(fixture.ids(tokens)));
    }
    assert_eq!(figure.accepted_ambiguity(&limits()), Ok(None));
    // The runs that the paper names, and a shorter pair.
    assert_eq!(figure.walk(0, fixture.ids("a aa")), Some(1));
    assert_eq!(figure.walk(0, fixture.ids("a a a")), Some(0));
    let found = figure
        .context_ambiguity(&limits())
        .expect("small")
        .expect("one");
    let mut found = [found.first, found.second];
    found.sort_by_key(Vec::len);
    assert_eq!(found, [fixture.ids("aa"), fixture.ids("a a")]);
}

#[test]
fn example_2_and_figure_3_two_merges_into_the_universal_automaton() {
    let fixture = Fixture::new("ab", &["a a", "b a"]);
    let steps = universal_steps(&fixture);
    let expected = [
        fixture.automaton(1, &[0], &[(0, "a", 0), (0, "b", 0)]),
        // After an a neither a nor aa: "the transition is not copied".
        fixture.automaton(
            2,
            &[0, 1],
            &[(0, "a", 1), (0, "aa", 0), (0, "b", 0), (1, "b", 0)],
        ),
        // The loop on b has become a step to the fresh state and a loop there (Remark 3), and ba is copied.
        fixture.automaton(
            3,
            &[0, 1, 2],
            &[
                (0, "a", 1),
                (0, "aa", 0),
                (0, "b", 2),
                (0, "ba", 1),
                (1, "b", 2),
                (1, "ba", 1),
                (2, "aa", 0),
                (2, "b", 2),
                (2, "ba", 1),
            ],
        ),
    ];
    assert_eq!(steps, expected);
    // Remark 2: nothing useless appears where all states accept.
    for step in &steps {
        assert_eq!(step.trim(), *step);
        assert_eq!(step.minimize().state_count(), step.state_count());
    }
}

#[test]
fn example_3_a_merge_into_figure_1_is_refused_since_it_would_not_be_deterministic() {
    let fixture = Fixture::new("abc", &["b c"]);
    let mut figure = fixture.automaton(
        5,
        &[3, 4],
        &[(0, "a", 1), (1, "b", 2), (2, "c", 3), (1, "bc", 4)],
    );
    let mut literal = Literal::of(&figure);
    literal.apply(fixture.id("b"), fixture.id("c"), fixture.id("bc"));
    assert!(!literal.is_deterministic());
    // The text abc is still read, by Lemma 1.
    assert!(
        !literal
            .walk(&fixture.ids("a bc"))
            .is_disjoint(&literal.accepting)
    );
    let unchanged = figure.clone();
    let error = figure
        .apply_merge(&rules(&fixture)[0], &limits())
        .expect_err("not context-invariant");
    let found = error.ambiguity().expect("two sequences");
    assert_eq!(
        (found.first, found.second),
        (fixture.ids("b c"), fixture.ids("bc"))
    );
    assert_eq!(figure, unchanged);
}

#[test]
fn example_4_a_merge_into_figure_2_would_lose_a_text() {
    let fixture = Fixture::new("a", &["a a"]);
    let mut figure = fixture.automaton(2, &[1], &[(0, "a", 0), (0, "aa", 1)]);
    let mut literal = Literal::of(&figure);
    literal.apply(fixture.id("a"), fixture.id("a"), fixture.id("aa"));
    assert!(!literal.is_deterministic());
    assert!(figure.accepts(fixture.ids("a aa")));
    for tokens in ["a aa", "aa a", "a a a"] {
        assert!(
            literal
                .walk(&fixture.ids(tokens))
                .is_disjoint(&literal.accepting)
        );
    }
    let error = figure
        .apply_merge(&rules(&fixture)[0], &limits())
        .expect_err("not context-invariant");
    assert!(
        error.to_string().contains("not context-invariant"),
        "{error}"
    );
}

#[test]
fn example_5_and_figure_4_an_improper_dictionary_fits_neither_semantics() {
    let fixture = Fixture::new("ab", &["ab a", "a b"]);
    let steps = universal_steps(&fixture);
    assert_eq!(
        steps[1], steps[0],
        "there is no run on ab a before a b is merged"
    );
    let figure = fixture.automaton(
        2,
        &[0, 1],
        &[
            (0, "a", 1),
            (0, "ab", 0),
            (0, "b", 0),
            (1, "a", 1),
            (1, "ab", 0),
        ],
    );
    assert_eq!(steps[2], figure);
    let text = b"ababababa";
    let reference = Reference::new(&fixture.dictionary);
    let once_in_order = reference.standard(text).expect("letters");
    assert_eq!(once_in_order, fixture.ids("ab ab ab ab a"));
    assert!(figure.accepts(once_in_order));
    let sentencepiece = reference.sentencepiece(text).expect("letters");
    assert_eq!(sentencepiece, fixture.ids("aba b aba b a"));
    assert!(!figure.accepts(sentencepiece));
    assert!(!figure.accepts(fixture.ids("ab ab ab aba")));
    // So the whole construction refuses it.
    let error = ExplicitDfa::universal(&fixture.form, &limits()).expect_err("improper");
    assert!(error.to_string().contains("improper"), "{error}");
}

#[test]
fn figure_5_the_family_that_meets_the_bound_of_theorem_2() {
    let mut merges = Vec::new();
    for power in 0..10 {
        let side = "a".repeat(1 << power);
        merges.push(format!("{side} {side}"));
    }
    let fixture = Fixture::new("a", &merges);
    let steps = universal_steps(&fixture);
    for (k, step) in steps.iter().enumerate() {
        assert_eq!(step.state_count(), k + 1);
        assert_eq!(step.trim().state_count(), k + 1);
        assert_eq!(step.minimize().state_count(), k + 1);
        assert_eq!(step.locality_degree(1, &limits()), Ok(1));
        // The longest token is on a loop at the start alone.
        let longest = fixture.id(&"a".repeat(1 << k));
        let with: Vec<_> = step
            .transitions()
            .filter(|&(_, token, _)| token == longest)
            .collect();
        assert_eq!(with, [(0, longest, 0)]);
    }
    type Drawn<'t> = (usize, &'t [(State, &'t str, State)]);
    let drawn: [Drawn<'_>; 4] = [
        (1, &[(0, "a", 0)]),
        (2, &[(0, "a", 1), (0, "aa", 0)]),
        (3, &[(0, "a", 1), (0, "aa", 2), (0, "aaaa", 0), (2, "a", 1)]),
        (
            4,
            &[
                (0, "a", 1),
                (0, "aa", 2),
                (0, "aaaa", 3),
                (0, "aaaaaaaa", 0),
                (2, "a", 1),
                (3, "a", 1),
                (3, "aa", 2),
            ],
        ),
    ];
    for (step, (states, transitions)) in steps.iter().zip(drawn) {
        let all: Vec<State> = (0..states as State).collect();
        assert_eq!(*step, fixture.automaton(states, &all, transitions));
    }
}

#[test]
fn example_6_and_figure_6_from_two_steps_on_a_to_none() {
    let fixture = Fixture::new("ab", &["a a"]);
    let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
    let (a, b, aa) = (fixture.id("a"), fixture.id("b"), fixture.id("aa"));
    let transducer = Transducer::new(&dfa, &limits()).expect("small");
    // (a): s1 is state 2.
    let edge = |byte, output, to| TransducerEdge { byte, output, to };
    let sorted = |state| {
        let mut edges = transducer.edges_from(state).to_vec();
        edges.sort_unstable();
        edges
    };
    assert_eq!(transducer.state_count(), 3);
    assert_eq!(
        sorted(0),
        [
            edge(b'a', None, 2),
            edge(b'a', Some(a), 1),
            edge(b'b', Some(b), 0)
        ]
    );
    assert_eq!(sorted(1), [edge(b'b', Some(b), 0)]);
    assert_eq!(sorted(2), [edge(b'a', Some(aa), 0)]);
    let finals = [0, 1, 2].map(|state| transducer.final_output(state));
    assert_eq!(finals, [Some(&[][..]), Some(&[]), None]);
    assert!(!transducer.is_input_deterministic());
    // (b)
    let tokenizer = transducer
        .determinize(&limits())
        .expect("twinned")
        .minimize();
    assert_eq!(tokenizer.state_count(), 2);
    assert_eq!(tokenizer.step(0, b'a'), Some((&[][..], 1)));
    assert_eq!(tokenizer.step(0, b'b'), Some((&[b][..], 0)));
    assert_eq!(tokenizer.step(1, b'a'), Some((&[aa][..], 0)));
    assert_eq!(tokenizer.step(1, b'b'), Some((&[a, b][..], 0)));
    assert_eq!(tokenizer.finish(0), Some(&[][..]));
    assert_eq!(tokenizer.finish(1), Some(&[a][..]));
}

#[test]
fn example_7_a_common_beginning_of_texts_is_not_one_of_tokenizations() {
    let fixture = Fixture::new("ab", &["a b", "ab a"]);
    assert_eq!(fixture.reference(b"abab"), fixture.ids("ab ab"));
    assert_eq!(fixture.reference(b"ababa"), fixture.ids("ab aba"));
    assert_eq!(fixture.reference(b"ababb"), fixture.ids("ab ab b"));
    // So after abab a transducer can have written ab at most.
    let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
    let transducer = Transducer::new(&dfa, &limits()).expect("small");
    let tokenizer = transducer
        .determinize(&limits())
        .expect("twinned")
        .earliest();
    let mut written = tokenizer.initial_output().to_vec();
    let mut state = tokenizer.start();
    for &byte in b"abab" {
        let (tokens, next) = tokenizer.step(state, byte).expect("a step");
        written.extend(tokens);
        state = next;
    }
    assert_eq!(written, fixture.ids("ab"));
    assert_eq!(tokenizer.finish(state), Some(&fixture.ids("ab")[..]));
}

#[test]
fn lemma_7_texts_that_are_near_have_tokenizations_that_are_near() {
    for merges in [
        &["a b", "ab a"][..],
        &["a a", "aa a", "b aa", "a b"],
        &["a b", "b ab", "ab b"],
    ] {
        let fixture = Fixture::new("ab", merges);
        let longest = fixture.vocabulary().longest_token();
        let distance = |x: &[u8], y: &[u8]| {
            let common = x.iter().zip(y).take_while(|(a, b)| a == b).count();
            x.len() + y.len() - 2 * common
        };
        let texts = words("ab", 7);
        for x in &texts {
            for y in &texts {
                let (u, v) = (fixture.reference(x), fixture.reference(y));
                let common = u.iter().zip(&v).take_while(|(a, b)| a == b).count();
                let far = u.len() + v.len() - 2 * common;
                assert!(far <= 2 * merges.len() * longest + distance(x, y));
            }
        }
    }
}

#[test]
fn example_8_merging_from_the_right_has_no_subsequential_transducer() {
    // Runs that know whether the number of a is even or odd: aa aa ..., or a aa aa ...
    let fixture = Fixture::new("a", &["a a"]);
    let (a, aa) = (fixture.id("a"), fixture.id("aa"));
    let edge = |output, to| TransducerEdge {
        byte: b'a',
        output,
        to,
    };
    let end = || Some(Vec::new());
    let edges = [
        (0, edge(None, 1)),
        (1, edge(Some(aa), 2)),
        (2, edge(None, 1)),
        (0, edge(Some(a), 3)),
        (3, edge(None, 4)),
        (4, edge(Some(aa), 3)),
    ];
    let finals = vec![end(), None, end(), end(), None];
    let transducer = Transducer::from_edges(fixture.vocabulary(), 0, finals, edges).expect("valid");
    for length in 0..12_usize {
        let mut expected = vec![a; length % 2];
        expected.extend(vec![aa; length / 2]);
        assert_eq!(transducer.outputs(&b"a".repeat(length)), [expected].into());
    }
    let error = transducer.determinize(&limits()).expect_err("not twinned");
    let (prefix, cycle) = error.untwinned().expect("two texts");
    assert!(!prefix.is_empty() && !cycle.is_empty() && cycle.len() % 2 == 0);
    // From the left there is one: Figure 6.
    let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
    assert_eq!(
        Transducer::new(&dfa, &limits())
            .expect("small")
            .check_twinning(&limits()),
        Ok(())
    );
}

#[test]
fn example_9_no_sequential_transducer_can_write_the_last_a() {
    let fixture = Fixture::new("ab", &["a a"]);
    let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
    let transducer = Transducer::new(&dfa, &limits()).expect("small");
    let tokenizer = transducer
        .determinize(&limits())
        .expect("twinned")
        .minimize();
    assert!(!tokenizer.is_sequential());
    // Without merges there is one; and where the text's end is marked.
    let plain = Fixture::new("ab", &[] as &[&str]);
    let base = ExplicitDfa::universal(&plain.form, &limits()).expect("small");
    let transducer = Transducer::new(&base, &limits()).expect("small");
    assert!(
        transducer
            .determinize(&limits())
            .expect("twinned")
            .minimize()
            .is_sequential()
    );
    let marked = StringDfa::from_regex("a*b", &limits()).expect("a pattern");
    assert!(
        tokenizer
            .compose(&marked, &limits())
            .expect("small")
            .minimize()
            .is_sequential()
    );
}

#[test]
fn observation_2_one_token_decides_the_state_of_every_universal_automaton() {
    for merges in [
        &["a b", "ab a"][..],
        &["a a", "aa a", "b aa", "a b"],
        &["b a", "a b", "ba ba"],
    ] {
        let fixture = Fixture::new("ab", merges);
        let dfa = ExplicitDfa::universal(&fixture.form, &limits()).expect("small");
        assert_eq!(dfa.locality(&limits()), Ok(Some(1)));
        // So a window of two decides: a sequence is one iff its neighbours can follow each other.
        let tokens: Vec<_> = dfa.tokens().collect();
        let follows = |x, y| {
            dfa.ends(x)
                .iter()
                .any(|&state| dfa.next(state, y).is_some())
        };
        let valid = accepted(&dfa, 8);
        for &x in &tokens {
            for &y in &tokens {
                for &z in &tokens {
                    let lengths = [x, y, z]
                        .map(|t| fixture.vocabulary().token_bytes(t).map_or(0, <[u8]>::len));
                    if lengths.iter().sum::<usize>() <= 8 {
                        assert_eq!(
                            follows(x, y) && follows(y, z),
                            valid.contains(&vec![x, y, z])
                        );
                    }
                }
            }
        }
    }
}
