//! The tokenizer that the options name.

use std::path::{Path, PathBuf};

use bpe_core::{Dictionary, gpt2, tiktoken};
use bytepair::{Pattern, ReadLimits, Specials, TokenId, Tokenizer};

use crate::args::{SpecialArgs, TokenizerArgs};
use crate::error::CliError;

/// A tokenizer and what to call it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) tokenizer: Tokenizer,
    pub(crate) name: String,
}

impl Named {
    /// The tokenizer of `args`, that treats special tokens as `specials` says.
    pub(crate) fn load(args: &TokenizerArgs, specials: &SpecialArgs) -> Result<Self, CliError> {
        load(args)?.with_specials(specials)
    }

    /// The tokenizer that one word names: an embedded encoding, or a file or folder that needs no
    /// pattern.
    pub(crate) fn by_word(word: &str, specials: &SpecialArgs) -> Result<Self, CliError> {
        let is_file = Path::new(word).exists() || word.ends_with(".json");
        let args = match is_file && !bytepair::ENCODINGS.contains(&word) {
            true => TokenizerArgs {
                tokenizer: Some(PathBuf::from(word)),
                ..TokenizerArgs::default()
            },
            false => TokenizerArgs {
                encoding: Some(word.to_owned()),
                ..TokenizerArgs::default()
            },
        };
        Self::load(&args, specials)
    }

    /// As [`Named::load`]; inside there is the error of a file that asks for more than a tokenizer does.
    pub(crate) fn load_supported(
        args: &TokenizerArgs,
        specials: &SpecialArgs,
    ) -> Result<Result<Self, CliError>, CliError> {
        match load(args) {
            Ok(named) => named.with_specials(specials).map(Ok),
            Err(Failed::Unsupported(error)) => Ok(Err(error)),
            Err(Failed::Other(error)) => Err(error),
        }
    }

    fn with_specials(mut self, args: &SpecialArgs) -> Result<Self, CliError> {
        let tokenizer = self.tokenizer.with_specials(specials_of(args));
        self.tokenizer = tokenizer.map_err(|error| CliError::Vocabulary(error.to_string()))?;
        Ok(self)
    }
}

/// How special tokens are treated.
pub(crate) fn specials_of(args: &SpecialArgs) -> Specials {
    match (args.special, args.forbid_special) {
        (true, _) => Specials::AllowAll,
        (_, true) => Specials::Forbid,
        _ => Specials::AsText,
    }
}

/// Why there is no tokenizer.
enum Failed {
    /// The file asks for more than a tokenizer does.
    Unsupported(CliError),
    Other(CliError),
}

impl From<CliError> for Failed {
    fn from(error: CliError) -> Self {
        Self::Other(error)
    }
}

impl From<Failed> for CliError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Unsupported(error) | Failed::Other(error) => error,
        }
    }
}

fn load(args: &TokenizerArgs) -> Result<Named, Failed> {
    let vocabulary = |error: bytepair::LoadError| CliError::Vocabulary(error.to_string());
    let (tokenizer, name) = match (&args.tokenizer, &args.model) {
        (Some(path), _) => (load_file(path, args)?, path.display().to_string()),
        (None, Some(model)) => {
            let tokenizer = Tokenizer::for_model(model).map_err(vocabulary)?;
            let name = tokenizer.name().unwrap_or(model).to_owned();
            (tokenizer, name)
        }
        (None, None) => {
            let name = args.encoding.as_deref().unwrap_or("o200k_base");
            (
                Tokenizer::from_name(name).map_err(vocabulary)?,
                name.to_owned(),
            )
        }
    };
    if args.special_token.is_empty() {
        return Ok(Named { tokenizer, name });
    }
    let tokens = args.special_token.iter().cloned();
    let tokenizer = tokenizer.to_builder().special_tokens(tokens).build();
    Ok(Named {
        tokenizer: tokenizer.map_err(vocabulary)?,
        name,
    })
}

/// What kind of files a path stands for.
pub(crate) enum Files {
    TokenizerJson(PathBuf),
    Gpt2 {
        vocab: PathBuf,
        merges: PathBuf,
    },
    Tiktoken(PathBuf),
    /// Mistral's `tekken.json`, by its name.
    Tekken(PathBuf),
    /// A `.model` file of SentencePiece.
    Model(PathBuf),
}

impl Files {
    pub(crate) fn of(path: &Path, merges: Option<&PathBuf>) -> Result<Self, CliError> {
        let json = path.join("tokenizer.json");
        if merges.is_none() && path.is_dir() && !json.exists() && !path.join("vocab.json").exists()
        {
            return Err(CliError::Vocabulary(format!(
                "{}: the folder holds neither tokenizer.json nor vocab.json with merges.txt",
                path.display()
            )));
        }
        if merges.is_none() && path.file_name().is_some_and(|name| name == "vocab.json") {
            return Err(CliError::Usage(
                "a vocab.json goes with a merges.txt: name that with --merges".to_owned(),
            ));
        }
        Ok(match merges {
            Some(merges) => Self::Gpt2 {
                vocab: path.to_owned(),
                merges: merges.clone(),
            },
            None if path.is_dir() && json.exists() => Self::TokenizerJson(json),
            None if path.is_dir() => Self::Gpt2 {
                vocab: path.join("vocab.json"),
                merges: path.join("merges.txt"),
            },
            None if path.extension().is_some_and(|end| end == "model") && is_pieces(path) => {
                Self::Model(path.to_owned())
            }
            None if is_tekken(path) => Self::Tekken(path.to_owned()),
            None if path.extension().is_some_and(|end| end == "json") => {
                Self::TokenizerJson(path.to_owned())
            }
            None => Self::Tiktoken(path.to_owned()),
        })
    }
}

/// Whether a file begins with a piece of SentencePiece: a field of a message, and the first field of that.
/// Files of ranks are called `.model` too.
fn is_pieces(path: &Path) -> bool {
    let mut start = [0; 3];
    let file = std::fs::File::open(path);
    let read = file.and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start[0] == b'\n' && start[2] == b'\n'
}

/// Whether a file is named as Mistral names those of its tokenizer: `tekken.json`, `tekken_240911.json`.
fn is_tekken(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("tekken") && name.ends_with(".json")
}

/// The dictionary of a file, whatever pattern and special tokens go with it.
pub(crate) fn dictionary(path: &Path, merges: Option<&PathBuf>) -> Result<Dictionary, CliError> {
    let limits = ReadLimits::default();
    let failed = |error: &dyn std::fmt::Display| {
        CliError::Vocabulary(format!("{}: {error}", path.display()))
    };
    let read = |path: &Path| {
        bytepair::read_file(path, &limits).map_err(|error| CliError::Vocabulary(error.to_string()))
    };
    match Files::of(path, merges)? {
        Files::TokenizerJson(json) => {
            bytepair::tokenizer_json::read_dictionary(&read(&json)?, &limits)
                .map_err(|error| failed(&error))
        }
        Files::Gpt2 { vocab, merges } => {
            gpt2::read(&read(&vocab)?, &read(&merges)?, &limits).map_err(|error| failed(&error))
        }
        Files::Tekken(file) => Err(CliError::Vocabulary(format!(
            "{}: a tekken.json is for other commands: it has ranks, no rules",
            file.display()
        ))),
        Files::Model(file) => Err(CliError::Vocabulary(format!(
            "{}: a .model file is for other commands: it has scores, no rules",
            file.display()
        ))),
        Files::Tiktoken(file) => {
            let vocabulary = tiktoken::read(&read(&file)?, &limits);
            let vocabulary = vocabulary.map_err(|error| failed(&error))?;
            Dictionary::from_ranks(vocabulary).map_err(|error| failed(&error))
        }
    }
}

fn load_file(path: &Path, args: &TokenizerArgs) -> Result<Tokenizer, Failed> {
    let limits = ReadLimits::default();
    let none: [(&str, TokenId); 0] = [];
    let read = |path: &Path| {
        bytepair::read_file(path, &limits).map_err(|error| CliError::Vocabulary(error.to_string()))
    };
    let pattern = args.pattern.as_deref().map(pattern).transpose()?;
    let loaded = match Files::of(path, args.merges.as_ref())? {
        Files::TokenizerJson(_) if pattern.is_some() => {
            let message = "--pattern does not go with a tokenizer.json, which says its pattern";
            return Err(CliError::Usage(message.to_owned()).into());
        }
        Files::TokenizerJson(json) => Tokenizer::from_tokenizer_json(&read(&json)?, &limits),
        Files::Tekken(_) | Files::Model(_) if pattern.is_some() => {
            let message = "--pattern does not go with a file that says how text is cut";
            return Err(CliError::Usage(message.to_owned()).into());
        }
        Files::Tekken(file) => Tokenizer::from_tekken(&read(&file)?, &limits),
        Files::Model(_) => {
            let message =
                "a .model file of SentencePiece goes with encode, decode, count and inspect";
            let message = format!("{}: {message}", path.display());
            return Err(Failed::Unsupported(CliError::Vocabulary(message)));
        }
        Files::Gpt2 { vocab, merges } => Tokenizer::from_gpt2_files(
            &read(&vocab)?,
            &read(&merges)?,
            pattern.unwrap_or(Pattern::gpt2()),
            none,
            &limits,
        ),
        Files::Tiktoken(file) => {
            let pattern = pattern.ok_or_else(|| {
                CliError::Usage(
                    "a .tiktoken file does not say its pattern: name it with --pattern \
                     (gpt2, cl100k, llama3, o200k, qwen3, ..., or a regular expression)"
                        .to_owned(),
                )
            })?;
            Tokenizer::from_tiktoken(&read(&file)?, pattern, none, &limits)
        }
    };
    loaded.map_err(|error| {
        let failed = CliError::Vocabulary(format!("{}: {error}", path.display()));
        match error.is_unsupported() {
            true => Failed::Unsupported(failed),
            false => Failed::Other(failed),
        }
    })
}

/// The pattern of this name, or the regular expression.
pub(crate) fn pattern(text: &str) -> Result<Pattern, CliError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match Pattern::by_name(text) {
        Some(pattern) => Ok(pattern),
        // No one means an expression that matches one word only.
        None if text.chars().all(is_name) => Err(CliError::Usage(format!(
            "there is no pattern named {text:?}: there are {}, or give a regular expression",
            Pattern::NAMES.join(", ")
        ))),
        None => Ok(Pattern::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_pattern_name_is_no_regular_expression() {
        assert!(matches!(pattern("cl100k_base"), Err(CliError::Usage(_))));
        assert!(matches!(pattern(""), Err(CliError::Usage(_))));
        for name in Pattern::NAMES {
            assert_eq!(pattern(name).ok(), Pattern::by_name(name));
        }
        assert_eq!(pattern(r"\w+|\W").ok(), Some(Pattern::new(r"\w+|\W")));
    }
}
