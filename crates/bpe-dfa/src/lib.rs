//! Automata over the tokens of byte pair encoding.

#![forbid(unsafe_code)]

pub mod explicit;
