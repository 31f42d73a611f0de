//! The worst inputs: the first pass of a fresh instance over what breaks one tokenizer or another.

use super::files::Texts;
use super::race::Track;
use super::report::Report;
use super::side::work;
use super::{Error, collide};
use crate::random::Random;

const LEN: usize = 1 << 20;

/// Every input by a fresh instance. A peer that is cut at one input goes on with the next.
pub(super) fn run(track: &Track<'_>, report: &mut Report) -> Result<(), Error> {
    let limit = track.arguments.limit();
    for (input, text) in inputs(LEN.min(track.arguments.bytes)) {
        let texts = Texts::new("worst", &text, usize::MAX)?;
        let race = track.race(
            &[&texts],
            vec!["first pass".to_owned()],
            vec![texts.bytes()],
            |side| {
                side.load(track.source)?;
                Ok(vec![work(&side.time(&texts, false, limit)?)])
            },
        )?;
        report.race("worst inputs", &track.source.encoding, input, 1, &race);
    }
    Ok(())
}

/// Texts of some `len` bytes, those of SPEED and of our own `bench worst`, but for the Chinese one.
fn inputs(len: usize) -> Vec<(&'static str, String)> {
    let mut random = Random::new(1);
    let mut from = |alphabet: &[u8]| -> String {
        let letters = (0..len).map(|_| char::from(alphabet[random.below(alphabet.len())]));
        letters.collect()
    };
    let letters = b"abcdefghijklmnopqrstuvwxyz";
    let base64 = from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/");
    let word = from(letters);
    let many = from(letters);
    let words: Vec<&str> = (0..len / 15).map(|word| &many[word * 15..][..15]).collect();
    vec![
        ("a, repeated", "a".repeat(len)),
        ("spaces", " ".repeat(len)),
        ("spaces, then a letter", " ".repeat(len) + "a"),
        ("newlines", "\n".repeat(len)),
        ("punctuation", "!".repeat(len)),
        ("base64, one line", base64),
        ("random letters, one word", word),
        ("random words of 15 letters", words.join(" ")),
        ("words of one CRC32C", collide::crc32c(len)),
    ]
}
