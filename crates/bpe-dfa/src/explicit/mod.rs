//! The automata of Berglund, Martens and van der Merwe (seed 002), built state by state.
