#!/usr/bin/env bash
# A tour of the command, which must be on the PATH. Run from the root of the repository:
#   PATH="$PWD/target/release:$PATH" bash crates/bytepair-cli/examples/tour.sh
set -euo pipefail

text="Hello, world"
echo "ids of '$text':"
printf '%s' "$text" | bytepair encode

echo "and back:"
printf '%s' "$text" | bytepair encode | bytepair decode
echo

echo "tokens of the README under two encodings:"
bytepair count README.md
bytepair count --encoding cl100k_base README.md

echo "a special token is text unless asked for:"
printf 'a<|endoftext|>b' | bytepair encode
printf 'a<|endoftext|>b' | bytepair encode --special

echo "are these the ids that the tokenizer makes, and from which index on not?"
bytepair encode README.md | bytepair validate && echo "all are"
printf '%s' "$text" | bytepair encode --encoding cl100k_base | bytepair validate --reason || true

echo "facts of a vocabulary:"
bytepair vocab --encoding p50k_base
