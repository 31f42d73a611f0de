//! Special tokens: text unless the caller says otherwise (P11).

use bytepair::{Specials, TokenId, Tokenizer};

use super::support::{Random, encodings, ensure, equal_ids, name_of, parallel, text_of};
use super::{Checked, Claims};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "special tokens: never from text, refused at their first place, split as a plain search does (P11)",
        |settings, _| {
            let mut tokenizers = encodings()?;
            tokenizers.push(overlapping()?);
            let texts = settings.choose(2_000, 40_000);
            let jobs = tokenizers.len() * 8;
            let cases = parallel(jobs, |job| {
                check_random(&tokenizers[job % tokenizers.len()], job as u64, texts / 8)
            })?;
            Ok(Checked::with_note(cases, "texts of fragments of special tokens"))
        },
    );
    claims.check(
        "special tokens at both ends, back to back, next to blanks, one the prefix of another",
        |_, _| placed(),
    );
}

/// Special tokens that are prefixes, suffixes and parts of one another.
fn overlapping() -> Result<Tokenizer, String> {
    let texts = [
        "<s>", "<s>>", "<", "s>", "<s><s>", ">>x", "  ", "\n<s>", "é<", "'s",
    ];
    let builder = Tokenizer::cl100k_base()
        .to_builder()
        .name("cl100k_base with overlapping tokens");
    let builder = builder.special_tokens(texts.iter().copied().zip(300_000..));
    builder.build().map_err(text_of)
}

/// The texts of special tokens with their ids, second texts of the harmony format included.
fn specials_of(tokenizer: &Tokenizer) -> Vec<(String, TokenId)> {
    let specials = tokenizer.special_tokens();
    let mut all: Vec<_> = specials.map(|(text, id)| (text.to_owned(), id)).collect();
    if tokenizer.name() == Some("o200k_harmony") {
        all.push(("<|reserved_200018|>".to_owned(), 200_018));
    }
    all
}

/// The leftmost special token, and of those that start there the longest, by trying every place.
fn search(text: &str, specials: &[(String, TokenId)]) -> Option<(usize, usize, TokenId)> {
    (0..text.len()).find_map(|at| {
        let starting = specials
            .iter()
            .filter(|(special, _)| text.as_bytes()[at..].starts_with(special.as_bytes()));
        let (special, id) = starting.max_by_key(|(special, _)| special.len())?;
        Some((at, at + special.len(), *id))
    })
}

/// Splits at the special tokens, and encodes what is between as plain text.
fn split_and_encode(
    plain: &Tokenizer,
    text: &str,
    specials: &[(String, TokenId)],
) -> Result<Vec<TokenId>, String> {
    let mut ids = Vec::new();
    let mut rest = text;
    while let Some((start, end, id)) = search(rest, specials) {
        ids.extend(plain.encode(&rest[..start]).map_err(text_of)?);
        ids.push(id);
        rest = &rest[end..];
    }
    ids.extend(plain.encode(rest).map_err(text_of)?);
    Ok(ids)
}

fn check_random(plain: &Tokenizer, seed: u64, texts: usize) -> Result<u64, String> {
    let specials = specials_of(plain);
    let all = plain.with_specials(Specials::AllowAll).map_err(text_of)?;
    let strict = plain.with_specials(Specials::Forbid).map_err(text_of)?;
    let mut random = Random::new(seed);
    let some: Vec<(String, TokenId)> = specials
        .iter()
        .filter(|_| random.below(2) == 0)
        .cloned()
        .collect();
    let names = some.iter().map(|(text, _)| text);
    let allowed = plain
        .with_specials(Specials::allow(names))
        .map_err(text_of)?;
    // Few of the 1,088 of the harmony format, so that the same meet again.
    let mut fragments = vec![
        "<|",
        "|>",
        "endof",
        "<",
        "|",
        ">",
        " ",
        "\n",
        "a",
        "é",
        "'s",
        "<s>",
        "7",
        "<|endofprompt",
        "漢",
    ];
    for (text, _) in specials.iter().take(12) {
        let cut = text.floor_char_boundary(1 + random.below(text.len()));
        fragments.extend([&text[..], &text[..cut], &text[cut..]]);
    }
    for _ in 0..texts {
        let text = random.text(&fragments, 10);
        let place = |mode: &str| format!("{}, {mode}, {text:?}", name_of(plain));
        let ids = plain.encode(&text).map_err(text_of)?;
        let special = ids.iter().find(|id| plain.is_special(**id));
        ensure(special.is_none(), || {
            format!("{}: {special:?}", place("as text"))
        })?;
        ensure(plain.decode(&ids).as_deref() == Ok(&text), || {
            place("as text")
        })?;
        let found = all.encode(&text).map_err(text_of)?;
        equal_ids(&found, &split_and_encode(plain, &text, &specials)?, || {
            place("allow all")
        })?;
        let count = all.count(&text).map_err(text_of)?;
        ensure(count == found.len(), || {
            format!("{}: count {count}", place("allow all"))
        })?;
        let back = all.decode(&found).map_err(text_of)?;
        // A second text decodes to the first.
        let expected = text.replace("<|reserved_200018|>", "<|endofprompt|>");
        ensure(back == text || back == expected, || {
            format!("{}: {back:?}", place("allow all"))
        })?;
        let found = allowed.encode(&text).map_err(text_of)?;
        equal_ids(&found, &split_and_encode(plain, &text, &some)?, || {
            place("allow some")
        })?;
        match (strict.encode(&text), search(&text, &specials)) {
            (Ok(found), None) => equal_ids(&found, &ids, || place("forbid"))?,
            (Err(error), Some((at, end, id))) => {
                let named = error.forbidden_special().map(|(_, id)| id);
                ensure(error.byte_offset() == at && named == Some(id), || {
                    format!("{}: {error}", place("forbid"))
                })?;
                let message = error.to_string();
                ensure(message.contains(&format!("{at}")), || {
                    format!("{}..{end}: {message}", place("forbid"))
                })?;
            }
            (Ok(_), Some(expected)) => {
                return Err(format!("{}: accepted {expected:?}", place("forbid")));
            }
            (Err(error), None) => return Err(format!("{}: {error}", place("forbid"))),
        }
    }
    Ok(texts as u64)
}

fn placed() -> Result<Checked, String> {
    let mut cases = 0;
    let mut tokenizers = encodings()?;
    tokenizers.push(overlapping()?);
    for plain in tokenizers {
        let specials = specials_of(&plain);
        let all = plain.with_specials(Specials::AllowAll).map_err(text_of)?;
        let around = [
            "", " ", "  ", "\n", " \n ", "a", "1234", "'t", "\u{301}", "\t", "é", ".",
        ];
        for (special, _) in specials.iter().take(20) {
            for before in around {
                for after in around {
                    let texts = [
                        format!("{before}{special}{after}"),
                        format!("{special}{before}{special}{after}"),
                        format!("{before}{special}{special}{special}{after}"),
                        format!("{before}{after}{special}"),
                    ];
                    for text in texts {
                        let found = all.encode(&text).map_err(text_of)?;
                        let expected = split_and_encode(&plain, &text, &specials)?;
                        equal_ids(&found, &expected, || {
                            format!("{}, {text:?}", name_of(&plain))
                        })?;
                        cases += 1;
                    }
                }
            }
        }
    }
    Ok(Checked::with_note(cases, ""))
}
