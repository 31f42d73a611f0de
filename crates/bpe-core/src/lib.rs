//! Vocabularies, merge rules and span encoders.
