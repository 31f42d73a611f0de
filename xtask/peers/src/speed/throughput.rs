//! Cold, half warm and warm: one text on one thread.

use super::Error;
use super::files::Texts;
use super::race::Track;
use super::report::Report;
use super::side::work;
use crate::corpora::Corpus;

/// The first half of a text by a fresh instance whose tables are loaded; then the second half, new text
/// of the same kind; then that half again.
pub(super) fn run(track: &Track<'_>, corpora: &[Corpus], report: &mut Report) -> Result<(), Error> {
    for corpus in corpora {
        let text = &*corpus.text;
        let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
        let first = Texts::new("first", first, usize::MAX)?;
        let second = Texts::new("second", second, usize::MAX)?;
        let limit = track.arguments.limit();
        let race = track.race(
            &[&first, &second],
            vec!["cold".to_owned(), "half warm".to_owned(), "warm".to_owned()],
            vec![first.bytes(), second.bytes(), second.bytes()],
            |side| {
                side.load(track.source)?;
                let mut seconds = Vec::new();
                for texts in [&first, &second, &second] {
                    seconds.push(work(&side.time(texts, false, limit)?));
                }
                Ok(seconds)
            },
        )?;
        report.race("one text", &track.source.encoding, &corpus.name, 1, &race);
    }
    Ok(())
}
