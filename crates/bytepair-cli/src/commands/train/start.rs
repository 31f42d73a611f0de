//! What a training begins with: a pattern, and the vocabulary that is continued from.

use bpe_core::{CanonicalForm, Dictionary};
use bpe_lexers::{Engine, Lexer};
use bpe_train::Training;
use bytepair::{Pattern, TokenId};

use super::checkpoint;
use crate::args::{AlphabetArg, SpecialIds, TrainArgs};
use crate::error::CliError;
use crate::load::{self, Named};

/// What is there before anything is counted.
pub(super) struct Start {
    pub(super) pattern: Pattern,
    /// The vocabulary that is continued from.
    pub(super) old: Option<Old>,
}

pub(super) struct Old {
    dictionary: Dictionary,
    pub(super) merges: Vec<checkpoint::Merge>,
    pub(super) specials: Vec<(String, TokenId)>,
}

impl Start {
    pub(super) fn new(args: &TrainArgs) -> Result<Self, CliError> {
        let pattern = args.pattern.as_deref().map(load::pattern).transpose()?;
        let Some(path) = &args.continue_from else {
            return Ok(Self {
                pattern: pattern.unwrap_or_else(Pattern::o200k),
                old: None,
            });
        };
        if args.special_ids == SpecialIds::First {
            return Err(CliError::Usage(
                "--special-ids first does not go with --continue-from, whose ids stay".to_owned(),
            ));
        }
        if args.alphabet == AlphabetArg::Characters {
            return Err(CliError::Usage(
                "--continue-from is for an alphabet of bytes".to_owned(),
            ));
        }
        let dictionary = load::dictionary(path, None)?;
        let name = path.display();
        let is_json = path.extension().is_some_and(|end| end == "json")
            || path.join("tokenizer.json").exists();
        let (pattern, specials) = if is_json {
            let word = path.display().to_string();
            let named = Named::by_word(&word, &crate::args::SpecialArgs::default());
            let tokenizer = named.map_err(|error| match error {
                CliError::Vocabulary(text) => CliError::Vocabulary(format!(
                    "--continue-from takes bytes, a pattern and no other steps: {text}"
                )),
                other => other,
            })?;
            let tokenizer = tokenizer.tokenizer;
            let specials = tokenizer.special_tokens();
            let specials = specials.map(|(text, id)| (text.to_owned(), id)).collect();
            let pattern = match (pattern, tokenizer.patterns()) {
                (Some(pattern), _) => pattern,
                (None, [pattern]) => pattern.clone(),
                (None, patterns) => {
                    return Err(CliError::Usage(format!(
                        "{name} has {} patterns: say with --pattern where words end",
                        patterns.len()
                    )));
                }
            };
            (pattern, specials)
        } else {
            let missing = format!("{name} does not say its pattern: name it with --pattern");
            (pattern.ok_or(CliError::Usage(missing))?, Vec::new())
        };
        let canonical = CanonicalForm::new(&dictionary);
        let mut rules: Vec<_> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let bytes = |id| dictionary.vocabulary().token_bytes(id).unwrap_or_default();
        let merges = rules
            .iter()
            .map(|rule| (bytes(rule.left).to_vec(), bytes(rule.right).to_vec()));
        Ok(Self {
            pattern,
            old: Some(Old {
                merges: merges.collect(),
                specials,
                dictionary,
            }),
        })
    }

    /// The size of the alphabet and all merges, with which the vocabulary has the size asked for.
    pub(super) fn size(&self, args: &TrainArgs) -> Result<usize, CliError> {
        let mut others = args.special_token.len();
        let mut least = 256;
        if let Some(old) = &self.old {
            // Tokens of no merge, which stay, and special tokens.
            let tokens = old.dictionary.vocabulary().len();
            others += tokens.saturating_sub(256 + old.merges.len()) + old.specials.len();
            least += old.merges.len();
        }
        let size = (args.vocab_size as usize).checked_sub(others);
        size.filter(|&size| size >= least).ok_or_else(|| {
            CliError::Usage(format!(
                "--vocab-size is at least {}: bytes, merges to begin with, and special tokens",
                least + others
            ))
        })
    }

    pub(super) fn dictionary(
        &self,
        args: &TrainArgs,
        training: &Training,
    ) -> Result<Dictionary, CliError> {
        let dictionary = match &self.old {
            Some(old) => {
                let last = old.specials.iter().map(|special| special.1);
                let last = last.chain(old.dictionary.vocabulary().max_id()).max();
                let first = last.map_or(0, |last| last.saturating_add(1));
                training.extended(&old.dictionary, first)
            }
            None => training.dictionary(match args.special_ids {
                SpecialIds::First => args.special_token.len() as TokenId,
                SpecialIds::Last => 0,
            }),
        };
        dictionary.map_err(|error| CliError::Vocabulary(error.to_string()))
    }

    /// A lexer of the pattern.
    pub(super) fn lexer(&self) -> Result<Box<dyn Lexer>, CliError> {
        let lexer = self.pattern.lexer(Engine::Auto);
        lexer.map_err(|error| CliError::Usage(format!("--pattern: {error}")))
    }

    /// The texts of the special tokens, those that are continued from first.
    pub(super) fn all_specials<'a>(&'a self, args: &'a TrainArgs) -> Vec<&'a str> {
        let old = self.old.iter().flat_map(|old| &old.specials);
        let old = old.map(|special| special.0.as_str());
        old.chain(args.special_token.iter().map(String::as_str))
            .collect()
    }

    /// The special tokens with their ids.
    pub(super) fn specials(
        &self,
        args: &TrainArgs,
        dictionary: &Dictionary,
    ) -> Vec<(String, TokenId)> {
        let mut specials = self
            .old
            .as_ref()
            .map_or_else(Vec::new, |old| old.specials.clone());
        let last = specials.iter().map(|special| special.1);
        let last = last.chain(dictionary.vocabulary().max_id()).max();
        let first = match args.special_ids {
            SpecialIds::First => 0,
            SpecialIds::Last => last.map_or(0, |last| last.saturating_add(1)),
        };
        specials.extend(args.special_token.iter().cloned().zip(first..));
        specials
    }
}
