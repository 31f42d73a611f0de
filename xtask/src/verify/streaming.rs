//! Streams: the tokens of the whole text, however it is cut, in bounded memory.

use bytepair::{TokenId, Tokenizer};

use super::memory::resident;
use super::support::{
    Corpus, Random, Stopwatch, ensure, equal_ids, grouped, name_of, parallel, text_of, vocabularies,
};
use super::{Checked, Claims, Outcome, Settings};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "a text cut in two at every byte streams as the whole is encoded",
        |settings, corpora| {
            let length = settings.choose(1_500, 20_000);
            each(corpora, |tokenizer, corpus| {
                let text = &corpus.text.as_bytes()[..corpus.text.len().min(length)];
                let expected = tokenizer.encode_bytes(text).map_err(text_of)?;
                for cut in 0..=text.len() {
                    let (left, right) = text.split_at(cut);
                    same(tokenizer, [left, right], &expected, || {
                        format!("{} cut at {cut}", corpus.name)
                    })?;
                }
                Ok(text.len() as u64 + 1)
            })
        },
    );
    claims.check(
        "corpora stream byte by byte, in pieces of 4 KB and in random pieces as the whole is encoded",
        |settings, corpora| {
            let length = settings.choose(100_000, usize::MAX);
            each(corpora, |tokenizer, corpus| {
                let text = &corpus.text.as_bytes()[..corpus.text.len().min(length)];
                let expected = tokenizer.encode_bytes(text).map_err(text_of)?;
                let place = || corpus.name.clone();
                same(tokenizer, text.chunks(1), &expected, place)?;
                same(tokenizer, text.chunks(4096), &expected, place)?;
                let mut random = Random::new(text.len() as u64);
                let mut pieces = Vec::new();
                let mut rest = text;
                while !rest.is_empty() {
                    let most = [3, 30, 3_000][random.below(3)];
                    let (piece, later) = rest.split_at(rest.len().min(1 + random.below(most)));
                    pieces.push(piece);
                    rest = later;
                }
                let count = pieces.len();
                same(tokenizer, pieces, &expected, place)?;
                Ok((text.len() + text.len().div_ceil(4096) + count) as u64)
            })
        },
    );
    let claim = "long spans and undecided texts stream in under 10 MB of memory";
    match resident("VmRSS") {
        Some(_) => claims.check_alone(claim, bounded),
        None => claims.skip(claim, "no /proc/self/status"),
    }
    claims.check(
        "a stream of English in pieces of 4 KB reaches 60 % of the speed of encoding at once",
        |_, corpora| {
            let english = corpora
                .iter()
                .find(|corpus| corpus.name.contains("english"));
            let text = english.ok_or("no English corpus")?.text.as_bytes();
            let text = &text[..text.len().min(4_000_000)];
            let tokenizer = Tokenizer::o200k_base();
            let mut stream = tokenizer.stream().map_err(text_of)?;
            let mut ids = Vec::new();
            let (mut at_once, mut streamed) = (f64::MAX, f64::MAX);
            for _ in 0..10 {
                ids.clear();
                let watch = Stopwatch::start();
                tokenizer.encode_into(text, &mut ids).map_err(text_of)?;
                at_once = at_once.min(watch.seconds());
                ids.clear();
                let watch = Stopwatch::start();
                for piece in text.chunks(4096) {
                    stream.push(piece, &mut ids).map_err(text_of)?;
                }
                stream.finish(&mut ids).map_err(text_of)?;
                streamed = streamed.min(watch.seconds());
            }
            let share = at_once / streamed;
            let note = format!("{:.0} %", share * 100.0);
            ensure(share >= 0.6, || note.clone())?;
            Ok(Checked::with_note(10, note))
        },
    );
}

/// Checks each vocabulary on each corpus.
fn each(
    corpora: &[Corpus],
    check: impl Fn(&Tokenizer, &Corpus) -> Result<u64, String> + Sync,
) -> Outcome {
    let vocabularies = vocabularies()?;
    let cases = parallel(vocabularies.len() * corpora.len(), |job| {
        let tokenizer = &vocabularies[job % vocabularies.len()];
        check(tokenizer, &corpora[job / vocabularies.len()])
    })?;
    Ok(Checked::with_note(cases, "pieces"))
}

fn same<'t>(
    tokenizer: &Tokenizer,
    pieces: impl IntoIterator<Item = &'t [u8]>,
    expected: &[TokenId],
    place: impl Fn() -> String,
) -> Result<(), String> {
    let mut stream = tokenizer.stream().map_err(text_of)?;
    let mut ids = Vec::with_capacity(expected.len());
    for piece in pieces {
        stream.push(piece, &mut ids).map_err(text_of)?;
    }
    stream.finish(&mut ids).map_err(text_of)?;
    equal_ids(&ids, expected, || {
        format!("{}, {}", name_of(tokenizer), place())
    })
}

/// Streams texts that are never there whole, and measures the memory besides the tables.
fn bounded(settings: &Settings) -> Outcome {
    const MOST: usize = 10 << 20;
    let bytes = settings.choose(4_000_000, 100_000_000);
    let texts = [["\n", " "], ["\u{6F22}", "A"], ["", "a"], ["", " "]];
    let mut pieces = 0;
    let mut largest = 0;
    for tokenizer in vocabularies()? {
        // The tables are there before.
        let mut ids = Vec::with_capacity(100_000);
        let mut warm = tokenizer.stream().map_err(text_of)?;
        warm.push("\u{6F22}ABC \n   ", &mut ids).map_err(text_of)?;
        warm.finish(&mut ids).map_err(text_of)?;
        for [first, repeated] in texts {
            let piece = repeated.repeat(4096);
            let mut stream = tokenizer.stream().map_err(text_of)?;
            let before = resident("VmRSS").ok_or("no VmRSS")?;
            let mut covered = 0;
            let mut push = |piece: &str, covered: &mut usize| -> Result<(), String> {
                ids.clear();
                stream.push(piece, &mut ids).map_err(text_of)?;
                let tokens = ids.iter().filter_map(|&id| tokenizer.token_bytes(id));
                *covered += tokens.map(<[u8]>::len).sum::<usize>();
                Ok(())
            };
            push(first, &mut covered)?;
            let count = bytes / piece.len();
            for _ in 0..count {
                push(&piece, &mut covered)?;
                pieces += 1;
            }
            let grown = resident("VmRSS").ok_or("no VmRSS")?.saturating_sub(before);
            largest = largest.max(grown);
            let place = format!("{}, {first:?} and {repeated:?}", name_of(&tokenizer));
            ensure(grown < MOST, || {
                format!("{place}: {} bytes more", grouped(grown as u64))
            })?;
            let pushed = first.len() + count * piece.len();
            ensure(pushed - covered < 10_000, || {
                format!("{place}: {} bytes held back", pushed - covered)
            })?;
            ids.clear();
            stream.finish(&mut ids).map_err(text_of)?;
            let tokens = ids.iter().filter_map(|&id| tokenizer.token_bytes(id));
            let rest: usize = tokens.map(<[u8]>::len).sum();
            ensure(covered + rest == pushed, || {
                format!("{place}: bytes are lost")
            })?;
        }
    }
    Ok(Checked::with_note(
        pieces,
        format!(
            "pieces of 4 KB, {} MB a text, {} KB more at most",
            bytes / 1_000_000,
            largest / 1024
        ),
    ))
}
