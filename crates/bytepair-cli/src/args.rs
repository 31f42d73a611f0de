//! The options, and the help.

use std::path::PathBuf;

use bytepair::TokenId;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::help;

/// Byte pair encoding: text to tokens and back.
///
/// Text comes from the files, or from standard input where there are none or where a file is
/// called `-`. It may be any bytes.
#[derive(Debug, Parser)]
#[command(name = "bytepair", version, after_help = help::GENERAL)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the tokens of a text: ids with blanks between them, one line a file
    Encode(EncodeArgs),
    /// Print the text of ids: exactly the bytes that were encoded
    Decode(DecodeArgs),
    /// Count tokens
    Count(CountArgs),
    /// Show the pieces of a text with their ids: in colours, or one a line where piped
    Show(ShowArgs),
    /// Tell facts of a vocabulary, or look tokens up
    Vocab(VocabArgs),
    /// Compare the tokens of two encodings on a text, and show where they differ
    Compare(CompareArgs),
    /// Tell which merge rules of a vocabulary can fire, and whether their order can be made proper
    Dict(DictArgs),
    /// Tell in plain words what a tokenizer does, what runs it here, and what is odd about it
    Inspect(InspectArgs),
    /// Check that ids are what the tokenizer makes of their text: print the first index that is not
    Validate(ValidateArgs),
    /// Tell whether two tokenizers write every text in the same tokens, or a text on which they differ
    Equivalent(EquivalentArgs),
    /// Find where a regular expression matches in the text of ids
    Search(SearchArgs),
    /// Tell how the texts of a regular expression are written in tokens, as an automaton
    Dfa(DfaArgs),
    /// Learn a vocabulary from texts
    Train(TrainArgs),
    /// Print a script that completes commands and options in a shell
    Completions(CompletionsArgs),
}

/// Which tokenizer.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Tokenizer")]
pub(crate) struct TokenizerArgs {
    /// An embedded encoding [default: o200k_base]
    #[arg(short, long, value_name = "NAME", value_parser = EncodingName, conflicts_with_all = ["model", "tokenizer"])]
    pub(crate) encoding: Option<String>,

    /// The encoding of a model: gpt-4o, gpt-4, o3, ...
    #[arg(short, long, value_name = "NAME", conflicts_with = "tokenizer")]
    pub(crate) model: Option<String>,

    /// A vocabulary: tokenizer.json, a .tiktoken file with --pattern, vocab.json with --merges, or
    /// a folder that holds the first or the last under these names
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) tokenizer: Option<PathBuf>,

    /// merges.txt, where --tokenizer is vocab.json
    #[arg(long, value_name = "FILE", requires = "tokenizer", value_hint = ValueHint::FilePath)]
    pub(crate) merges: Option<PathBuf>,

    /// The pattern of a file that does not say it: gpt2, cl100k, llama3, o200k, qwen3, ..., or a regular
    /// expression
    #[arg(long, value_name = "PATTERN", requires = "tokenizer")]
    pub(crate) pattern: Option<String>,

    /// A further special token; can be given several times
    #[arg(long, value_name = "TEXT=ID", value_parser = special_token)]
    pub(crate) special_token: Vec<(String, TokenId)>,
}

/// What the text of special tokens means.
#[derive(Debug, Default, Args)]
pub(crate) struct SpecialArgs {
    /// The text of a special token becomes that token; without it, it is text like any other
    #[arg(long, conflicts_with = "forbid_special")]
    pub(crate) special: bool,

    /// The text of a special token is an error
    #[arg(long)]
    pub(crate) forbid_special: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// Files; standard input where there are none, or for `-`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadsArgs {
    /// Number of threads [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl ThreadsArgs {
    pub(crate) fn number(&self) -> usize {
        match self.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Input of which each line is a document.
#[derive(Debug, Args)]
pub(crate) struct LinesArgs {
    /// The input is JSON Lines: each line is an object, whose text FIELD is a document
    #[arg(long, value_name = "FIELD")]
    pub(crate) jsonl: Option<String>,

    /// Go on behind a line that is no such object or has no tokens: it counts as an empty document,
    /// and a message at the end says how many there were
    #[arg(long, requires = "jsonl")]
    pub(crate) skip_errors: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::ENCODE)]
pub(crate) struct EncodeArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    #[command(flatten)]
    pub(crate) specials: SpecialArgs,

    /// Add the tokens that a tokenizer.json sets around each text, as `<s>` before it
    #[arg(long)]
    pub(crate) add_special: bool,

    #[command(flatten)]
    pub(crate) lines: LinesArgs,

    /// Write the ids to FILE, which appears complete or not at all: as its ending says, .npy, .u16 or
    /// .u32 (little-endian numbers), else as text; and to FILE.ends the number of tokens up to the end
    /// of each document, in little-endian numbers of 64 bits
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["json", "offsets", "stream"])]
    pub(crate) out: Option<PathBuf>,

    /// One JSON object a file and line: {"file", "tokens", "offsets"}, with "error" where it fails
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,

    /// Where the tokens stand, in bytes. Without --json one token a line: id, start, end, piece,
    /// with tabs between them
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) offsets: bool,

    /// Print ids as soon as no text that follows can change them, while the input is being read
    #[arg(long, conflicts_with_all = ["json", "offsets", "jsonl", "add_special"])]
    pub(crate) stream: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::DECODE)]
pub(crate) struct DecodeArgs {
    /// Files of ids; standard input where there are none, or for `-`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// U+FFFD for bytes that are not UTF-8
    #[arg(long)]
    pub(crate) lossy: bool,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::COUNT)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    #[command(flatten)]
    pub(crate) specials: SpecialArgs,

    /// Add the tokens that a tokenizer.json sets around each text, as `<s>` before it
    #[arg(long)]
    pub(crate) add_special: bool,

    #[command(flatten)]
    pub(crate) lines: LinesArgs,

    /// One JSON object a file and line: {"file", "bytes", "tokens"}
    #[arg(long, conflicts_with = "limit")]
    pub(crate) json: bool,

    /// Stop counting a file beyond N tokens, print `more than N`, and exit with status 1
    #[arg(long, value_name = "N", conflicts_with = "jsonl")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::SHOW)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    #[command(flatten)]
    pub(crate) specials: SpecialArgs,

    /// Whether to use colours; `auto` does in a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
#[command(after_help = help::VOCAB)]
pub(crate) struct VocabArgs {
    /// Look up the token with this id; can be given several times
    #[arg(long, value_name = "ID")]
    pub(crate) id: Vec<TokenId>,

    /// Look up the token with this text; can be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) token: Vec<String>,

    /// JSON: one object with the facts, or one a line for each look-up
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::COMPARE)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// The encoding to compare with: its name, a tokenizer.json, or a folder
    #[arg(long, value_name = "NAME")]
    pub(crate) with: String,

    /// How many of the places that differ to print
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) places: usize,

    #[command(flatten)]
    pub(crate) specials: SpecialArgs,

    /// One JSON object a file and line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::DICT)]
pub(crate) struct DictArgs {
    /// tokenizer.json, a .tiktoken file, vocab.json with --merges, or a folder that holds the first or
    /// the last under these names
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,

    /// merges.txt, where FILE is vocab.json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) merges: Option<PathBuf>,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::INSPECT)]
pub(crate) struct InspectArgs {
    /// tokenizer.json, or a folder that holds one; a SentencePiece .model file; Mistral's tekken.json
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::VALIDATE)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// Ids are 32 bits each, the lowest byte first, not words of digits
    #[arg(long)]
    pub(crate) binary: bool,

    /// Say what is wrong, not the index alone
    #[arg(long)]
    pub(crate) reason: bool,

    #[command(flatten)]
    pub(crate) specials: SpecialArgs,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::EQUIVALENT)]
pub(crate) struct EquivalentArgs {
    /// An embedded encoding, a tokenizer.json, or a folder
    #[arg(value_name = "NAME")]
    pub(crate) first: String,

    /// The other
    #[arg(value_name = "NAME")]
    pub(crate) second: String,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::SEARCH)]
pub(crate) struct SearchArgs {
    /// The regular expression
    #[arg(value_name = "REGEX")]
    pub(crate) regex: String,

    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// Ids are 32 bits each, the lowest byte first, not words of digits
    #[arg(long)]
    pub(crate) binary: bool,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::DFA)]
pub(crate) struct DfaArgs {
    /// The regular expression, which a text matches from its beginning to its end
    #[arg(value_name = "REGEX")]
    pub(crate) regex: String,

    /// Draw the automaton, for Graphviz
    #[arg(long)]
    pub(crate) dot: bool,

    /// Stop with an error beyond N states
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) states: usize,

    #[command(flatten)]
    pub(crate) tokenizer: TokenizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::TRAIN)]
pub(crate) struct TrainArgs {
    /// Files, packed with gzip or zstd or not; standard input where there are none, or for `-`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// The files are JSON Lines: each line is an object, whose text FIELD is a document
    #[arg(long, value_name = "FIELD")]
    pub(crate) jsonl: Option<String>,

    /// Number of tokens: 256 bytes, merges and special tokens
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    pub(crate) vocab_size: u32,

    /// Where words end: gpt2, cl100k, llama3, o200k, qwen3, ..., or a regular
    /// expression [default: o200k, or what the tokenizer.json of --continue-from says]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,

    /// A special token: text that is no word; can be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) special_token: Vec<String>,

    /// Whether special tokens have the first ids or the last ones
    #[arg(long, value_name = "PLACE", default_value = "last")]
    pub(crate) special_ids: SpecialIds,

    /// A text that is a token whatever the words are, by merges before all others; can be given
    /// several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) seed_token: Vec<String>,

    /// Start from this vocabulary, whose ids stay: a tokenizer.json, a .tiktoken file, or a folder with
    /// vocab.json and merges.txt
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) continue_from: Option<PathBuf>,

    /// What words consist of before the first merge. Of characters, each that is no token is encoded as
    /// bytes, for which there are 256 more tokens
    #[arg(long, value_name = "KIND", default_value = "bytes")]
    pub(crate) alphabet: AlphabetArg,

    /// The share of all characters of the text that the alphabet has, from 0.0 to 1.0: the most
    /// frequent ones
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    pub(crate) coverage: f64,

    /// Which of several pairs that are equally frequent is merged first
    #[arg(long, value_name = "RULE", default_value = "lexicographic")]
    pub(crate) ties: TiesArg,

    /// Merge no pair that occurs less often
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) min_frequency: u64,

    /// Learn no token of more bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) longest_token: Option<usize>,

    /// Leave every Nth MiB of the text out, and report bytes per token on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) hold_out: Option<u64>,

    /// Add the word counts of this file, which --save-counts wrote; can be given several times. Texts
    /// are then read only where files are given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) counts: Vec<PathBuf>,

    /// Write all word counts to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_counts: Option<PathBuf>,

    /// Memory for word counts, as in 256M or 4G: what is beyond it waits on disk. Training in more
    /// memory than this is refused
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory_limit: Option<usize>,

    /// Save how far it is in this folder, and go on from there where an earlier run of the same command
    /// was broken off. What it has saved is removed when the command is done
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Seconds between two checkpoints; more where these would take over 1 % of the time, so that there
    /// is none in the first 20 seconds. At 0 one follows the other
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60.0,
        requires = "checkpoint"
    )]
    pub(crate) checkpoint_interval: f64,

    /// Say every second on standard error how far it is, even where it is no terminal
    #[arg(long)]
    pub(crate) progress: bool,

    /// Where the vocabulary goes: a file that ends in .json (tokenizer.json) or .tiktoken, or a folder
    /// for vocab.json and merges.txt
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

/// What words consist of before the first merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlphabetArg {
    /// The 256 bytes
    Bytes,
    /// The characters of the text; written as a tokenizer.json only
    Characters,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a number from 0.0 to 1.0".to_owned())
}

/// Which ids special tokens have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpecialIds {
    /// 0, 1, ...
    First,
    /// Those after all other tokens
    Last,
}

/// A number of bytes, with K, M or G for powers of 1024.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((end, 'k' | 'K')) => (&text[..end], 1 << 10),
        Some((end, 'm' | 'M')) => (&text[..end], 1 << 20),
        Some((end, 'g' | 'G')) => (&text[..end], 1 << 30),
        _ => (text, 1),
    };
    let number = digits.parse::<usize>().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "a number of bytes, as in 500000, 256M or 4G".to_owned())
}

/// See `bpe_train::Ties`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TiesArg {
    /// The pair whose bytes come first in the alphabet
    Lexicographic,
    /// The pair of the oldest tokens, as in Hugging Face's tokenizers
    Huggingface,
}

#[derive(Debug, Args)]
#[command(after_help = help::COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Names of encodings, for help and completion. A name that is none of them is not a wrong use of
/// the command but a vocabulary that is not there, as with `--model` and `--tokenizer`, and has
/// their exit status: so it is taken here and refused when the vocabulary is loaded.
#[derive(Debug, Clone, Copy)]
struct EncodingName;

impl TypedValueParser for EncodingName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(bytepair::ENCODINGS.iter().map(PossibleValue::new)))
    }
}

/// `TEXT=ID`; the text may hold `=` itself.
fn special_token(argument: &str) -> Result<(String, TokenId), String> {
    let (text, id) = argument
        .rsplit_once('=')
        .ok_or("a special token is TEXT=ID")?;
    let id = id.parse().map_err(|_| format!("{id:?} is no token id"))?;
    Ok((text.to_owned(), id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_text_of_a_special_token_may_hold_the_separator() {
        assert_eq!(special_token("<a=b>=7"), Ok(("<a=b>".to_owned(), 7)));
        assert!(special_token("<a>").is_err());
        assert!(special_token("<a>=-1").is_err());
    }
}
