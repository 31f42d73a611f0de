//! Examples for `--help`. Lines that begin with `$` and the output below them are run by
//! `tests/help.rs`, in a folder with the files that it names.

pub(crate) const GENERAL: &str = "\
Exit status: 0 all went well; 1 the input cannot be read, encoded or decoded, or is over a limit; \
2 wrong use of the command; 3 the vocabulary cannot be loaded.

Examples:
  $ printf 'Hello, world' | bytepair encode
  13225 11 2375

  $ printf 'Hello, world' | bytepair encode | bytepair decode
  Hello, world

  $ printf 'Hello, world' | bytepair count --model gpt-4
  3";

pub(crate) const ENCODE: &str = "\
Files of any size are read in parts of 1 MiB or less where the pattern \
has no look-behind and the like; otherwise they are held in memory, and a warning says so. Output before an error stays.

Examples:
  $ printf 'Hello, world' | bytepair encode --encoding cl100k_base
  9906 11 1917

  $ printf 'Hi<|endoftext|>' | bytepair encode --special
  12194 199999

  $ printf 'Hi there\\n' | bytepair encode --offsets
  12194\t0\t2\tHi
  1354\t2\t8\t there
  198\t8\t9\t\\n

  $ printf 'Hi' | bytepair encode --json --offsets
  {\"file\":\"-\",\"tokens\":[12194],\"offsets\":[[0,2]]}

  $ printf '{\"text\":\"Hello, world\"}\\n' | bytepair encode --jsonl text
  13225 11 2375

  Files of any size into an array for numpy, with the ends of documents beside it:
  bytepair encode --jsonl text --out ids.npy one.jsonl.gz two.jsonl.zst

  A tokenizer of your own:
  bytepair encode --tokenizer tokenizer.json notes.txt
  bytepair encode --tokenizer my.tiktoken --pattern gpt2 --special-token '<s>=50257' notes.txt";

pub(crate) const DECODE: &str = "\
Ids are decimal numbers with blanks or newlines between them. The bytes of an id are written as \
soon as its line or its part of the input has been read.

Examples:
  $ echo 13225 11 2375 | bytepair decode
  Hello, world

  $ echo 9906 11 1917 | bytepair decode --encoding cl100k_base
  Hello, world

  $ bytepair encode notes.txt | bytepair decode | cmp - notes.txt";

pub(crate) const COUNT: &str = "\
Prints the number of tokens; with names of files, a tab and the name behind it, and a total where \
there are several.

Examples:
  $ printf 'Hello, world' | bytepair count
  3

  $ printf 'Hello, world' | bytepair count --limit 2
  more than 2

  $ bytepair count --json notes.txt
  {\"file\":\"notes.txt\",\"bytes\":13,\"tokens\":4}";

pub(crate) const SHOW: &str = "\
In colours: each piece on a background of its own, with its id behind it. Without: one token a \
line, the piece, `|`, and the id behind the last `|` of the line. A newline is shown as \\n, a \
backslash as \\\\, a control character as \\u{1b}, a byte that is no part of a whole character as <E9>.

Examples:
  $ printf 'naïve\\n' | bytepair show
  na|1503
  ï|9954
  ve|737
  \\n|198

  $ printf '龘' | bytepair show
  <E9><BE>|54462
  <98>|246

  bytepair show --color always notes.txt | less -R";

pub(crate) const VOCAB: &str = "\
Lengths are in bytes, of ordinary tokens.

Examples:
  $ bytepair vocab --token ' world'
  id 2375: \" world\", 6 bytes
    merged from 286 \" w\" and 1733 \"orld\"

  $ bytepair vocab --encoding cl100k_base --id 100257
  id 100257: \"<|endoftext|>\", 13 bytes, special

  bytepair vocab --model gpt-4o
  bytepair vocab --json --tokenizer tokenizer.json";

pub(crate) const COMPARE: &str = "\
A place that differs is the smallest range between two byte offsets at which both tokenizations \
have a boundary, and none in common inside. The ratio is the tokens of the second for one of the \
first.

Examples:
  $ printf 'naïve café' | bytepair compare --with gpt2
                    o200k_base          gpt2
  tokens                     4             3
  bytes per token        3.000         4.000
  ratio                               0.7500
  1 place differs
  at bytes 2 to 6
    o200k_base  \"ï\" 9954, \"ve\" 737
    gpt2        \"ïve\" 38776

  bytepair compare --encoding o200k_base --with gpt2 --json notes.txt";

pub(crate) const DICT: &str = "\
A rule is improper where a later rule makes one of its sides: then today's tokenizers, which always
take the best pair, do not merge in the order of the list. Where another order of the rules gives the
same tokens, it is used, and every encoder works; where none is found, the cycle is shown, with a text
on which the order that was tried fails.

Examples:
  bytepair dict tokenizer.json
  bytepair dict --json --merges merges.txt vocab.json";

pub(crate) const INSPECT: &str = "\
The steps come in the order in which a text meets them, with what the file says of each. Oddities are tokens \
that no text gives, rules in an order that cannot be followed, bytes without a token, and texts that do not \
come back as they were: some that often do not are tried.

Examples:
  bytepair inspect tokenizer.json
  bytepair inspect --json tokenizer.model";

pub(crate) const VALIDATE: &str = "\
Nothing is printed where all ids are those that `encode` gives for their text. Otherwise the index of \
the first that differs, from 0, with the name of the file where there are several, and status 1.

Examples:
  bytepair encode README.md | bytepair validate
  bytepair validate --encoding cl100k_base --binary ids.bin
  $ echo 1 1 13225 | bytepair validate --reason";

pub(crate) const EQUIVALENT: &str = "\
Special tokens are not compared. Pairs of tokens that no piece of the patterns can hold do not count. \
Status 0 where the two are the same, 1 where a text tells them apart, or where that is not known: the \
search for a piece has a limit.

Examples:
  bytepair equivalent gpt2 r50k_base
  bytepair equivalent o200k_base tokenizer.json";

pub(crate) const SEARCH: &str = "\
One line a match: the first token that has a part of it, the token behind the last, its first byte in the \
text, the byte behind its last, and the text of those tokens, with tabs between them. Of matches that \
start at one place the longest counts. Special tokens are no text. Status 1 where nothing is found.

Example:
  bytepair encode README.md | bytepair search 'byte.?pair'";

pub(crate) const DFA: &str = "\
The automaton is the minimal one that accepts the tokens of each text, cut into pieces by the patterns, \
and no other sequence. Special tokens are not looked at.

Examples:
  bytepair dfa 'abc|abd' --encoding r50k_base --dot | dot -Tsvg > abc.svg
  bytepair dfa '[0-9]{1,6}' --encoding r50k_base";

pub(crate) const TRAIN: &str = "\
The pair of neighbouring tokens that occurs most often becomes a token, again and again. What is
learned does not depend on the order of the files or the number of threads. Words that were counted on
several machines can be added up: each writes --save-counts, and one reads them all with --counts.

Examples:
  bytepair train --vocab-size 32000 --out tokenizer.json corpus.txt
  bytepair train --pattern gpt2 --ties huggingface --special-token '<|end|>' --out gpt2/ *.txt
  bytepair train --save-counts part1.counts --out part1.tiktoken part1.txt
  bytepair train --counts part1.counts --counts part2.counts --out all.tiktoken
  bytepair train --jsonl text --memory-limit 4G --checkpoint saved --out big.json web-*.jsonl.zst
  bytepair train --continue-from old.json --vocab-size 64000 --out new.json more.txt
  bytepair train --alphabet characters --coverage 0.9995 --out characters.json corpus.txt";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  bytepair completions bash > ~/.local/share/bash-completion/completions/bytepair
  bytepair completions zsh > ~/.zfunc/_bytepair
  bytepair completions fish > ~/.config/fish/completions/bytepair.fish";
