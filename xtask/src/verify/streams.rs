//! Decode streams: text at character boundaries, whatever the ids.

use bytepair::{DecodeStream, TokenId, Tokenizer};

use super::support::{Random, Stopwatch, encodings, ensure, name_of, parallel, text_of};
use super::{Checked, Claims};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "decode streams of random ids: joined they are the lossy text, 3 bytes are held at most (P18-P20)",
        |settings, _| {
            let encodings = encodings()?;
            let blocks = settings.choose(100, 500);
            let cases = parallel(blocks, |number| {
                let tokenizer = &encodings[number % encodings.len()];
                let awkward = awkward_ids(tokenizer);
                let mut random = Random::new(900 + number as u64);
                for _ in 0..1_000 {
                    check_ids(tokenizer, &random_ids(tokenizer, &awkward, &mut random), &mut random)?;
                }
                Ok(1_000)
            })?;
            Ok(Checked::with_note(cases, "sequences, each with a stream after a prompt too"))
        },
    );
    claims.check(
        "a decode stream of 100,000 ids has a constant cost an id (P20)",
        |_, corpora| {
            let mut slowest = (0.0, String::new());
            let mut cases = 0;
            for tokenizer in encodings()? {
                let text: String = corpora.iter().map(|corpus| &corpus.text[..]).collect();
                let (mut ids, _) = tokenizer.encode_up_to(&text, 100_000).map_err(text_of)?;
                ids.extend(std::iter::repeat_n(
                    0,
                    100_000_usize.saturating_sub(ids.len()),
                ));
                let start = Stopwatch::start();
                let mut stream = tokenizer.decode_stream();
                let mut bytes = 0;
                for &id in &ids {
                    bytes += stream.push(id).map_err(text_of)?.len();
                }
                let seconds = start.seconds();
                ensure(bytes > 0 && seconds < 1.0, || {
                    format!("{}: {seconds:.3} s", name_of(&tokenizer))
                })?;
                cases += ids.len() as u64;
                if seconds > slowest.0 {
                    slowest = (seconds, name_of(&tokenizer).to_owned());
                }
            }
            let note = format!(
                "ids; slowest 100,000 in {:.1} ms ({}), the target is 100 ms",
                slowest.0 * 1e3,
                slowest.1
            );
            Ok(Checked::with_note(cases, note))
        },
    );
}

/// Ids of tokens that are not whole characters.
fn awkward_ids(tokenizer: &Tokenizer) -> Vec<TokenId> {
    let tokens = tokenizer.vocabulary().iter();
    let awkward = tokens.filter(|(_, bytes)| std::str::from_utf8(bytes).is_err());
    awkward.map(|(id, _)| id).collect()
}

fn random_ids(tokenizer: &Tokenizer, awkward: &[TokenId], random: &mut Random) -> Vec<TokenId> {
    let length = random.below(20);
    let most = tokenizer.max_id().unwrap_or(0) as usize + 1;
    let mut ids = Vec::with_capacity(length);
    while ids.len() < length {
        let id = match random.below(5) {
            0 => random.below(most) as TokenId,
            1 => random.below(256) as TokenId,
            _ => awkward[random.below(awkward.len())],
        };
        if tokenizer.token_bytes(id).is_some() {
            ids.push(id);
        }
    }
    ids
}

fn check_ids(tokenizer: &Tokenizer, ids: &[TokenId], random: &mut Random) -> Result<(), String> {
    let place = || format!("{}, {ids:?}", name_of(tokenizer));
    let whole = tokenizer.decode_lossy(ids).map_err(text_of)?;
    let bytes = tokenizer.decode_bytes(ids).map_err(text_of)?;
    ensure(whole == String::from_utf8_lossy(&bytes), || {
        format!("{}: decode_lossy", place())
    })?;
    let mut joined = String::new();
    push_all(tokenizer.decode_stream(), ids, &mut joined)
        .map_err(|error| format!("{}: {error}", place()))?;
    ensure(joined == whole, || {
        format!("{}: {joined:?}, expected {whole:?}", place())
    })?;

    // After a prompt: what the prompt alone makes certain was shown, the rest is shown once.
    let (prompt, rest) = ids.split_at(random.below(ids.len() + 1));
    let mut shown = certain(&tokenizer.decode_bytes(prompt).map_err(text_of)?);
    let stream = tokenizer.decode_stream_after(prompt).map_err(text_of)?;
    push_all(stream, rest, &mut shown).map_err(|error| format!("{}: {error}", place()))?;
    ensure(shown == whole, || {
        format!(
            "{} after {}: {shown:?}, expected {whole:?}",
            place(),
            prompt.len()
        )
    })?;

    // An unknown id is an error, and changes nothing.
    let mut stream = tokenizer.decode_stream();
    let mut joined = String::new();
    for &id in ids {
        let error = stream.push(u32::MAX).err();
        ensure(
            error.is_some_and(|error| error.id() == Some(u32::MAX)),
            || format!("{}: no error", place()),
        )?;
        joined.push_str(stream.push(id).map_err(text_of)?);
    }
    joined.push_str(&stream.finish());
    ensure(joined == whole, || {
        format!("{}: after errors {joined:?}", place())
    })
}

/// Pushes ids and appends the text; at most three bytes may be held back at any time.
fn push_all(mut stream: DecodeStream, ids: &[TokenId], text: &mut String) -> Result<(), String> {
    for &id in ids {
        text.push_str(stream.push(id).map_err(text_of)?);
        ensure(stream.held_bytes() <= 3, || {
            format!("{} bytes are held", stream.held_bytes())
        })?;
    }
    text.push_str(&stream.finish());
    Ok(())
}

/// The lossy text of bytes, without a character that has begun and not ended.
fn certain(bytes: &[u8]) -> String {
    let mut end = bytes.len();
    for back in 1..=bytes.len().min(3) {
        let tail = &bytes[bytes.len() - back..];
        let begun = std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none());
        if begun {
            end = bytes.len() - back;
        }
    }
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
