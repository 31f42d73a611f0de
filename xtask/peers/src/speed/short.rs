//! Short texts: documents of 4.8 KB and messages of 100 bytes, on one thread, and a batch of documents on
//! two.

use super::Error;
use super::files::Texts;
use super::race::Track;
use super::report::Report;
use super::side::{wall, work};
use crate::corpora::Corpus;

const DOCUMENT: usize = 4_800;
const MESSAGE: usize = 100;

/// The second half of a text in pieces, each by a call of its own, after the first half: half warm.
pub(super) fn run(track: &Track<'_>, corpora: &[Corpus], report: &mut Report) -> Result<(), Error> {
    let limit = track.arguments.limit();
    for corpus in corpora {
        let (first, second) = halves(corpus);
        let first = Texts::new("first", first, usize::MAX)?;
        let (documents, messages) = second.split_at(second.floor_char_boundary(second.len() / 2));
        let documents = Texts::new("documents", documents, DOCUMENT)?;
        let messages = Texts::new("messages", messages, MESSAGE)?;
        let race = track.race(
            &[&documents, &messages],
            vec!["4,800 bytes".to_owned(), "100 bytes".to_owned()],
            vec![documents.bytes(), messages.bytes()],
            |side| {
                side.load(track.source)?;
                side.texts(&first)?;
                side.time(&first, false, limit)?;
                let mut seconds = Vec::new();
                for texts in [&documents, &messages] {
                    seconds.push(work(&side.time(texts, false, limit)?));
                }
                Ok(seconds)
            },
        )?;
        report.race(
            "half warm, short texts",
            &track.source.encoding,
            &corpus.name,
            1,
            &race,
        );
    }
    Ok(())
}

/// The documents in one call: on one thread each by a call of its own, then on all threads as a batch.
/// The time is that on the wall.
pub(super) fn threads(
    track: &Track<'_>,
    corpora: &[Corpus],
    report: &mut Report,
) -> Result<(), Error> {
    let limit = track.arguments.limit();
    for corpus in corpora {
        let (first, second) = halves(corpus);
        let warm = Texts::new("first", first, DOCUMENT)?;
        let documents = Texts::new("documents", second, DOCUMENT)?;
        let race = track.race(
            &[&documents],
            vec!["batch of 4,800 bytes".to_owned()],
            vec![documents.bytes()],
            |side| {
                side.load(track.source)?;
                side.texts(&warm)?;
                side.time(&warm, true, limit)?;
                Ok(vec![wall(&side.time(&documents, true, limit)?)])
            },
        )?;
        report.race(
            "half warm, batch",
            &track.source.encoding,
            &corpus.name,
            2,
            &race,
        );
    }
    Ok(())
}

fn halves(corpus: &Corpus) -> (&str, &str) {
    let text = &*corpus.text;
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
