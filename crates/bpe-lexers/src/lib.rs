//! Pre-tokenizers.
