//! The seam to the tokenizers that `speed` times: one small adapter for each, in a file of its own and
//! behind a feature of its own, so that one that does not build takes no other with it.

#[cfg(feature = "bpe-openai")]
mod bpe_openai;
mod bytepair;
#[cfg(feature = "fastokens")]
mod fastokens;
#[cfg(feature = "kitoken")]
mod kitoken;
#[cfg(feature = "riptoken")]
mod riptoken;
#[cfg(feature = "splintr")]
mod splintr;
mod tiktoken_rs;
#[cfg(feature = "tokenizers-new")]
mod tokenizers_new;
mod tokenizers_old;
#[cfg(feature = "tokie")]
mod tokie;
#[cfg(feature = "toktok")]
mod toktok;
#[cfg(feature = "wordchipper")]
mod wordchipper;

use std::path::PathBuf;

use crate::Error;

/// A tokenizer with one vocabulary loaded.
pub(crate) trait Rival {
    /// The ids of `text`, in which special tokens are text.
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error>;

    /// The number of ids of all texts, each encoded by a call of its own into whatever the tokenizer
    /// gives, which is dropped. This is what is timed.
    fn run(&mut self, texts: &[&str]) -> Result<usize, Error> {
        let mut tokens = 0;
        for text in texts {
            tokens += self.encode(text)?.len();
        }
        Ok(tokens)
    }

    /// The same for all texts in one call, on as many threads as the process may use; `None` where the
    /// tokenizer has no such call.
    fn run_batch(&mut self, _texts: &[&str]) -> Result<Option<usize>, Error> {
        Ok(None)
    }
}

/// A vocabulary in the forms that tokenizers read.
pub(crate) struct Source {
    /// `o200k_base`.
    pub(crate) encoding: String,
    /// A file of ranks, as tiktoken has them, named after the encoding.
    pub(crate) ranks: PathBuf,
    /// The same as `tokenizer.json`.
    pub(crate) json: PathBuf,
}

#[cfg(feature = "riptoken")]
impl Source {
    /// The tokens and ids of the file of ranks, for those who leave reading it to the caller.
    fn tokens(&self) -> Result<Vec<(Vec<u8>, u32)>, Error> {
        let file = std::fs::read(&self.ranks)?;
        let vocabulary = bpe_core::tiktoken::read(&file, &bpe_core::ReadLimits::default())?;
        let tokens = vocabulary.iter().map(|(id, bytes)| (bytes.to_vec(), id));
        Ok(tokens.collect())
    }
}

/// How to load a tokenizer, and what to call it.
pub(crate) struct Entry {
    /// What `--peers` calls it.
    pub(crate) name: &'static str,
    /// The package whose version is shown, and how that version begins where two were built.
    package: (&'static str, &'static str),
    /// The call that is timed.
    pub(crate) call: &'static str,
    load: fn(&Source) -> Result<Box<dyn Rival>, Error>,
}

impl Entry {
    /// The version that was built: it is in the lock file and nowhere else.
    pub(crate) fn version(&self) -> &'static str {
        let lock = include_str!("../Cargo.lock");
        let (name, start) = self.package;
        let mut entries = lock.split("[[package]]\nname = \"");
        let version = entries.find_map(|entry| {
            let rest = entry.strip_prefix(name)?.strip_prefix("\"\nversion = \"")?;
            let version = rest.split('"').next()?;
            version.starts_with(start).then_some(version)
        });
        version.unwrap_or("?")
    }

    /// A new tokenizer that shares nothing with an earlier one.
    pub(crate) fn load(&self, source: &Source) -> Result<Box<dyn Rival>, Error> {
        (self.load)(source)
    }
}

/// Ours.
pub(crate) const OURS: &str = "bytepair";

/// All that were built, ours first.
pub(crate) const ALL: &[Entry] = &[
    Entry {
        name: OURS,
        package: ("bytepair", ""),
        call: "Tokenizer::encode",
        load: bytepair::load,
    },
    #[cfg(feature = "fastokens")]
    Entry {
        name: "fastokens",
        package: ("fastokens", ""),
        call: "encode_ordinary",
        load: fastokens::load,
    },
    #[cfg(feature = "tokenizers-new")]
    Entry {
        name: "tokenizers-new",
        package: ("tokenizers", "1."),
        call: "PipelineTokenizer::encode_into",
        load: tokenizers_new::load,
    },
    #[cfg(feature = "toktok")]
    Entry {
        name: "toktok",
        package: ("toktok-rs", ""),
        call: "encode",
        load: toktok::load,
    },
    #[cfg(feature = "splintr")]
    Entry {
        name: "splintr",
        package: ("splintr", ""),
        call: "encode_with(SpecialMode::Ordinary)",
        load: splintr::load,
    },
    #[cfg(feature = "tokie")]
    Entry {
        name: "tokie",
        package: ("tokie", ""),
        call: "encode_ids",
        load: tokie::load,
    },
    #[cfg(feature = "riptoken")]
    Entry {
        name: "riptoken",
        package: ("riptoken", ""),
        call: "encode_ordinary",
        load: riptoken::load,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper",
        package: ("wordchipper", ""),
        call: "try_encode, logos, default encoder",
        load: wordchipper::load,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-regex",
        package: ("wordchipper", ""),
        call: "try_encode, regex, default encoder",
        load: wordchipper::regex,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-tail-sweep",
        package: ("wordchipper", ""),
        call: "try_encode, logos, tail sweep",
        load: wordchipper::tail_sweep,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-merge-heap",
        package: ("wordchipper", ""),
        call: "try_encode, logos, merge heap",
        load: wordchipper::merge_heap,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-priority-merge",
        package: ("wordchipper", ""),
        call: "try_encode, logos, priority merge",
        load: wordchipper::priority_merge,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-buffer-sweep",
        package: ("wordchipper", ""),
        call: "try_encode, logos, buffer sweep",
        load: wordchipper::buffer_sweep,
    },
    #[cfg(feature = "wordchipper")]
    Entry {
        name: "wordchipper-backtrack",
        package: ("wordchipper", ""),
        call: "try_encode, logos, backtrack",
        load: wordchipper::backtrack,
    },
    #[cfg(feature = "bpe-openai")]
    Entry {
        name: "bpe-openai",
        package: ("bpe-openai", ""),
        call: "encode",
        load: bpe_openai::load,
    },
    Entry {
        name: "tiktoken-rs",
        package: ("tiktoken-rs", ""),
        call: "encode_ordinary",
        load: tiktoken_rs::load,
    },
    #[cfg(feature = "kitoken")]
    Entry {
        name: "kitoken",
        package: ("kitoken", ""),
        call: "encode",
        load: kitoken::load,
    },
    Entry {
        name: "tokenizers",
        package: ("tokenizers", "0."),
        call: "encode_fast",
        load: tokenizers_old::load,
    },
];
