//! The tokenizers that shared cases name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bpe_lexers::{Engine, Spanner};
use bytepair::{Pattern, Pipeline, ReadLimits, Tokenizer};

use super::models;
use super::support::{case_file, spanner, text_of};

/// Tokenizers by the name that cases have for them, or why there is none.
pub(super) struct Tokenizers {
    data: Option<PathBuf>,
    known: HashMap<String, Result<Tokenizer, Missing>>,
    pipelines: HashMap<String, Option<Pipeline>>,
    spanners: HashMap<String, Vec<(Engine, Spanner)>>,
}

/// Why there is no tokenizer.
#[derive(Clone)]
pub(super) enum Missing {
    /// The case cannot be run, for this reason.
    Skip(String),
    /// Loading must not fail so.
    Fail(String),
}

impl Tokenizers {
    pub(super) fn new(data: Option<&Path>) -> Self {
        Self {
            data: data.map(Path::to_owned),
            known: HashMap::new(),
            pipelines: HashMap::new(),
            spanners: HashMap::new(),
        }
    }

    /// The tokenizer of a case's `encoding`, with the pattern that the case names for a
    /// `.tiktoken` file.
    pub(super) fn get(
        &mut self,
        encoding: &str,
        pattern: Option<&str>,
    ) -> Result<Tokenizer, Missing> {
        let key = format!("{encoding} {}", pattern.unwrap_or_default());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let made = self.make(encoding, pattern);
        self.known.insert(key, made.clone());
        made
    }

    /// The pipeline of a case's `encoding`, where its file is there and one that a pipeline reads.
    pub(super) fn pipeline(&mut self, encoding: &str) -> Result<Option<Pipeline>, String> {
        if let Some(known) = self.pipelines.get(encoding) {
            return Ok(known.clone());
        }
        let limits = ReadLimits::default();
        let made = match (encoding.strip_prefix("file:"), &self.data) {
            (Some(name), _) if name.ends_with(".json") => {
                Some(Pipeline::from_tokenizer_json(&case_file(name)?, &limits))
            }
            (None, Some(data)) if encoding == "mistral_v3_spm" => {
                let path = data.join("tokenizers").join(encoding);
                let file = crate::data::read(&path.join("tokenizer.model"))?;
                Some(Pipeline::from_sentencepiece_model(&file, &limits))
            }
            (None, Some(data)) => {
                let file = models::file(encoding, data)?;
                Some(Pipeline::from_tokenizer_json(&file, &limits))
            }
            _ => None,
        };
        let made = made
            .transpose()
            .map_err(|error| format!("{encoding}: {error}"))?;
        self.pipelines.insert(encoding.to_owned(), made.clone());
        Ok(made)
    }

    /// A spanner on each engine for a pattern.
    pub(super) fn spanners(
        &mut self,
        pattern: &Pattern,
    ) -> Result<&mut [(Engine, Spanner)], String> {
        let spanners = self
            .spanners
            .entry(pattern.as_str().to_owned())
            .or_default();
        if spanners.is_empty() {
            for engine in [Engine::Automata, Engine::Reference, Engine::Transcription] {
                spanners.push((engine, spanner(pattern, engine)?));
            }
        }
        Ok(spanners)
    }

    fn make(&self, encoding: &str, pattern: Option<&str>) -> Result<Tokenizer, Missing> {
        if let Some(name) = encoding.strip_prefix("file:") {
            return load(name, pattern.unwrap_or("gpt2"));
        }
        if crate::embed::NAMES.contains(&encoding) {
            return Tokenizer::from_name(encoding)
                .map_err(|error| Missing::Fail(error.to_string()));
        }
        let Some(data) = &self.data else {
            return Err(Missing::Skip("the model is in the data folder".to_owned()));
        };
        if encoding == "mistral_v3_spm" {
            return Err(Missing::Skip("a file for a pipeline".to_owned()));
        }
        let file = models::file(encoding, data).map_err(Missing::Fail)?;
        loaded(
            Tokenizer::from_tokenizer_json(&file, &ReadLimits::default()),
            encoding,
        )
    }
}

/// The tokenizer of a file under bench-data/cases.
pub(super) fn load(name: &str, pattern: &str) -> Result<Tokenizer, Missing> {
    let file = case_file(name).map_err(Missing::Fail)?;
    let limits = ReadLimits::default();
    if name.ends_with(".json") {
        return loaded(Tokenizer::from_tokenizer_json(&file, &limits), name);
    }
    let pattern =
        Pattern::by_name(pattern).ok_or_else(|| Missing::Fail(format!("no pattern {pattern}")))?;
    let specials: [(&str, u32); 0] = [];
    let tokenizer = Tokenizer::from_tiktoken(&file, pattern, specials, &limits);
    tokenizer.map_err(text_of).map_err(Missing::Fail)
}

fn loaded(
    result: Result<Tokenizer, bytepair::LoadError>,
    name: &str,
) -> Result<Tokenizer, Missing> {
    result.map_err(|error| match error.is_unsupported() {
        true => Missing::Skip(format!("{name}: {error}")),
        false => Missing::Fail(format!("{name}: {error}")),
    })
}
