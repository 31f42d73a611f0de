//! The explicit construction against the reference tokenizer, against literal transcriptions of what
//! the paper defines, and on the paper's own examples and figures.

mod agreement;
mod definitions;
mod languages;
mod limits;
mod oracle;
mod paper;
mod transducers;
