//! What the public types promise to threads and to `catch_unwind`.

use std::panic::{RefUnwindSafe, UnwindSafe};

use bpe_lexers::{
    Engine, Family, Label, LexError, Lexer, Pattern, PatternError, Span, Spanner, SpecialError,
    SpecialMatcher, TranscribedLexer,
};

fn is_shareable<T: Send + Sync + UnwindSafe + RefUnwindSafe + ?Sized>() {}

#[test]
fn public_types_can_be_shared_and_survive_a_caught_panic() {
    is_shareable::<Pattern>();
    is_shareable::<Family>();
    is_shareable::<Engine>();
    is_shareable::<dyn Lexer>();
    is_shareable::<TranscribedLexer>();
    is_shareable::<SpecialMatcher>();
    is_shareable::<Spanner>();
    is_shareable::<Span>();
    is_shareable::<Label>();
    is_shareable::<LexError>();
    is_shareable::<PatternError>();
    is_shareable::<SpecialError>();
    #[cfg(feature = "automata")]
    is_shareable::<bpe_lexers::AutomataLexer>();
    #[cfg(feature = "reference")]
    {
        is_shareable::<bpe_lexers::ReferenceLexer>();
        is_shareable::<bpe_lexers::StepLimit>();
    }
}

#[test]
fn errors_are_errors_that_can_cross_threads() {
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<LexError>();
    is_error::<PatternError>();
    is_error::<SpecialError>();
}
