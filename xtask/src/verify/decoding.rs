//! Round trips, offsets, counting and truncation.

use bytepair::Tokenizer;

use super::support::{
    Corpus, Random, encodings, ensure, equal_ids, name_of, parallel, quoted, text_of, vocabularies,
};
use super::{Checked, Claims};

/// Characters of one to four bytes, U+FFFD among them.
const CHARACTERS: &[&str] = &[
    "a",
    "Z",
    " ",
    "\n",
    "0",
    "'s",
    "é",
    "ß",
    "ā",
    "ن",
    "漢",
    "字",
    "กี่",
    "\u{FFFD}",
    "€",
    "😀",
    "𐂂",
    "🧑\u{200D}🚀",
    "\u{301}",
    "한",
];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "corpora come back from every encoding; offsets cover, counts and batches agree (P13, P34, P36)",
        |_, corpora| {
            let encodings = encodings()?;
            let cases = parallel(encodings.len() * corpora.len(), |job| {
                let tokenizer = &encodings[job % encodings.len()];
                let Corpus { name, text } = &corpora[job / encodings.len()];
                check_text(tokenizer, text).map_err(|error| format!("{name}: {error}"))?;
                check_documents(tokenizer, text).map_err(|error| format!("{name}: {error}"))
            })?;
            Ok(Checked::with_note(cases, "documents"))
        },
    );
    claims.check(
        "100,000 random byte strings come back from every encoding (P13, P15)",
        |_, _| {
            let encodings = encodings()?;
            let cases = parallel(encodings.len() * 100, |job| {
                random_bytes(&encodings[job % encodings.len()], job / encodings.len())
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check(
        "random mixes of characters of 1 to 4 bytes: truncate, count_up_to, encode_up_to, offsets (P34-P36)",
        |settings, _| {
            let encodings = encodings()?;
            let texts = settings.choose(1_000, 20_000);
            let cases = parallel(encodings.len() * 10, |job| {
                let tokenizer = &encodings[job % encodings.len()];
                let mut random = Random::new(77 + job as u64);
                let mut cases = 0;
                for _ in 0..texts / 10 {
                    let text = random.text(CHARACTERS, 16);
                    check_text(tokenizer, &text)?;
                    cases += check_limits(tokenizer, &text)?;
                }
                Ok(cases)
            })?;
            Ok(Checked::with_note(cases, "limits"))
        },
    );
    claims.check(
        "ids of no token are typed errors that name id and index, ids above holes decode (P10)",
        |_, _| {
            let encodings = encodings()?;
            let cases = parallel(encodings.len(), |number| unknown_ids(&encodings[number]))?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check(
        "every token decodes to its bytes and its bytes are found",
        |_, _| {
            let vocabularies = vocabularies()?;
            let cases = parallel(vocabularies.len(), |number| {
                let tokenizer = &vocabularies[number];
                for (id, bytes) in tokenizer.vocabulary().iter() {
                    let found = tokenizer.encode_bytes(bytes).map_err(text_of)?;
                    let joined = tokenizer.decode_bytes(&found).map_err(text_of)?;
                    ensure(
                        joined == bytes && tokenizer.token_id(bytes) == Some(id),
                        || format!("{}, token {id}", name_of(tokenizer)),
                    )?;
                }
                Ok(tokenizer.vocabulary().len() as u64)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
}

/// Round trip, offsets and counts of one text.
fn check_text(tokenizer: &Tokenizer, text: &str) -> Result<u64, String> {
    let place = || format!("{}, {}", name_of(tokenizer), quoted(text));
    let ids = tokenizer.encode(text).map_err(text_of)?;
    ensure(tokenizer.decode(&ids).as_deref() == Ok(text), || {
        format!("{}: decode", place())
    })?;
    let lossy = tokenizer.decode_lossy(&ids);
    ensure(lossy.as_deref() == Ok(text), || {
        format!("{}: decode_lossy", place())
    })?;
    let encoding = tokenizer.encode_with_offsets(text).map_err(text_of)?;
    equal_ids(&encoding.ids, &ids, place)?;
    let mut covered = 0;
    for (range, &id) in encoding.byte_ranges.iter().zip(&ids) {
        let bytes = text.as_bytes().get(range.clone());
        ensure(
            range.start == covered && bytes == tokenizer.token_bytes(id),
            || format!("{}: token {id} at {range:?}", place()),
        )?;
        covered = range.end;
    }
    ensure(
        covered == text.len() && encoding.byte_ranges.len() == ids.len(),
        || format!("{}: offsets end at {covered}", place()),
    )?;
    check_character_ranges(text, &encoding).map_err(|error| format!("{}: {error}", place()))?;
    let count = tokenizer.count(text).map_err(text_of)?;
    ensure(count == ids.len(), || {
        format!("{}: count {count} of {}", place(), ids.len())
    })?;
    let mut worker = tokenizer.worker();
    ensure(worker.count(text).map_err(text_of)? == count, || {
        format!("{}: worker", place())
    })?;
    Ok(1)
}

/// Character and UTF-16 ranges, from the definition: the characters that a token touches.
fn check_character_ranges(text: &str, encoding: &bytepair::Encoding) -> Result<(), String> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut units = vec![0];
    for character in text.chars() {
        units.push(units[units.len() - 1] + character.len_utf16());
    }
    let characters = encoding.char_ranges(text);
    let utf16 = encoding.utf16_ranges(text);
    ensure(
        characters.len() == encoding.ids.len() && utf16.len() == encoding.ids.len(),
        || "not a range a token".to_owned(),
    )?;
    for (index, range) in encoding.byte_ranges.iter().enumerate() {
        let first = starts.partition_point(|at| *at <= range.start) - 1;
        let last = starts.partition_point(|at| *at < range.end);
        ensure(characters[index] == (first..last), || {
            format!(
                "token {index} at {range:?}: characters {:?}, expected {first}..{last}",
                characters[index]
            )
        })?;
        let expected = units[first]..units[last];
        ensure(utf16[index] == expected, || {
            format!(
                "token {index} at {range:?}: UTF-16 {:?}, expected {expected:?}",
                utf16[index]
            )
        })?;
    }
    Ok(())
}

/// The lines of a text as a batch.
fn check_documents(tokenizer: &Tokenizer, text: &str) -> Result<u64, String> {
    let documents: Vec<&str> = text.split_inclusive('\n').collect();
    let batch = tokenizer
        .encode_batch_with(&documents, 2)
        .map_err(text_of)?;
    let mut worker = tokenizer.worker();
    let mut ids = Vec::new();
    ensure(batch.len() == documents.len(), || {
        "a document is lost".to_owned()
    })?;
    for (document, tokens) in documents.iter().zip(&batch) {
        ids.clear();
        worker.encode_into(document, &mut ids).map_err(text_of)?;
        equal_ids(tokens, &ids, || {
            format!("{}, {}", name_of(tokenizer), quoted(document))
        })?;
        let back = tokenizer.decode(tokens);
        ensure(back.as_deref() == Ok(document), || {
            format!("{}, {}", name_of(tokenizer), quoted(document))
        })?;
    }
    Ok(documents.len() as u64)
}

fn random_bytes(tokenizer: &Tokenizer, number: usize) -> Result<u64, String> {
    let mut random = Random::new(5 + number as u64);
    let mut ids = Vec::new();
    for _ in 0..1_000 {
        let length = random.below(64);
        let mut bytes = random.bytes(length);
        // Whole characters, and cut ones, among them.
        for _ in 0..random.below(4) {
            let place = random.below(bytes.len());
            let character = random.pick(CHARACTERS).as_bytes();
            let cut = random.below(character.len() + 1);
            bytes.splice(place..place, character[..cut].iter().copied());
        }
        ids.clear();
        tokenizer.encode_into(&bytes, &mut ids).map_err(text_of)?;
        let back = tokenizer.decode_bytes(&ids);
        ensure(back.as_ref() == Ok(&bytes), || {
            format!("{}, {bytes:?}: {back:?}", name_of(tokenizer))
        })?;
        let count = tokenizer.count(&bytes).map_err(text_of)?;
        ensure(count == ids.len(), || {
            format!("{}, {bytes:?}: count {count}", name_of(tokenizer))
        })?;
        let lossy = tokenizer.decode_lossy(&ids).map_err(text_of)?;
        ensure(lossy == String::from_utf8_lossy(&bytes), || {
            format!("{}, {bytes:?}: {lossy:?}", name_of(tokenizer))
        })?;
        let ranges = tokenizer
            .encode_with_offsets(&bytes)
            .map_err(text_of)?
            .byte_ranges;
        let mut covered = 0;
        for range in ranges {
            ensure(range.start == covered, || {
                format!("{}, {bytes:?}: {range:?}", name_of(tokenizer))
            })?;
            covered = range.end;
        }
        ensure(covered == bytes.len(), || {
            format!("{}, {bytes:?}: offsets", name_of(tokenizer))
        })?;
    }
    Ok(1_000)
}

/// Everything that takes a limit, with every limit.
fn check_limits(tokenizer: &Tokenizer, text: &str) -> Result<u64, String> {
    let ids = tokenizer.encode(text).map_err(text_of)?;
    for limit in 0..=ids.len() + 1 {
        let place = || format!("{}, {text:?} to {limit} tokens", name_of(tokenizer));
        let shorter = tokenizer.truncate(text, limit).map_err(text_of)?;
        let count = tokenizer.count(shorter).map_err(text_of)?;
        ensure(text.starts_with(shorter) && count <= limit, || {
            format!("{}: {shorter:?} of {count} tokens", place())
        })?;
        let whole = ids.len() <= limit;
        ensure(!whole || shorter == text, || {
            format!("{}: {shorter:?}", place())
        })?;
        let counted = tokenizer.count_up_to(text, limit).map_err(text_of)?;
        ensure(counted == whole.then_some(ids.len()), || {
            format!("{}: count_up_to {counted:?}", place())
        })?;
        let first = &ids[..limit.min(ids.len())];
        let covered = tokenizer.decode_bytes(first).map_err(text_of)?.len();
        let (tokens, bytes) = tokenizer.encode_up_to_bytes(text, limit).map_err(text_of)?;
        ensure(tokens == first && bytes == covered, || {
            format!("{}: encode_up_to_bytes {bytes}", place())
        })?;
        let (tokens, bytes) = tokenizer.encode_up_to(text, limit).map_err(text_of)?;
        let decoded = tokenizer.decode_bytes(&tokens).map_err(text_of)?;
        let is_most = (tokens.len() + 1..=first.len()).all(|longer| {
            let bytes = tokenizer
                .decode_bytes(&ids[..longer])
                .map_or(0, |bytes| bytes.len());
            !text.is_char_boundary(bytes)
        });
        ensure(
            ids.starts_with(&tokens)
                && text.is_char_boundary(bytes)
                && decoded == text.as_bytes()[..bytes]
                && is_most,
            || format!("{}: encode_up_to gives {bytes} bytes", place()),
        )?;
    }
    Ok(ids.len() as u64 + 2)
}

fn unknown_ids(tokenizer: &Tokenizer) -> Result<u64, String> {
    let most = tokenizer.max_id().ok_or("no token")?;
    let special: Vec<(&str, u32)> = tokenizer.special_tokens().collect();
    let mut cases = 0;
    for id in (0..=most + 3).chain([u32::MAX - 1, u32::MAX, 1 << 31]) {
        let known = tokenizer.token_bytes(id).is_some();
        let is_special = special.iter().any(|(_, other)| *other == id);
        let ordinary = tokenizer.vocabulary().token_bytes(id).is_some();
        ensure(known == (ordinary || is_special), || {
            format!("{}, id {id}", name_of(tokenizer))
        })?;
        match tokenizer.decode_bytes(&[0, id]) {
            Ok(_) if known => {}
            Err(error) if !known && error.id() == Some(id) && error.index() == Some(1) => {
                ensure(!error.to_string().is_empty(), || {
                    "an empty message".to_owned()
                })?;
                cases += 1;
            }
            other => return Err(format!("{}, id {id}: {other:?}", name_of(tokenizer))),
        }
    }
    for (text, id) in special {
        ensure(tokenizer.decode(&[id]).as_deref() == Ok(text), || {
            format!("{}, {text}", name_of(tokenizer))
        })?;
        cases += 1;
    }
    Ok(cases)
}
