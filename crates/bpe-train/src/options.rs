//! What a caller may choose.

/// What to train, and how.
///
/// ```
/// use bpe_train::{Ties, TrainOptions};
///
/// let options = TrainOptions::new(32_000).min_frequency(2).ties(Ties::HuggingFace);
/// ```
#[derive(Debug, Clone)]
pub struct TrainOptions {
    pub(crate) vocabulary_size: usize,
    pub(crate) alphabet: Alphabet,
    pub(crate) min_frequency: u64,
    pub(crate) longest_token: usize,
    pub(crate) ties: Ties,
    pub(crate) algorithm: Algorithm,
    pub(crate) first_merges: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) seed_tokens: Vec<Vec<u8>>,
    pub(crate) memory_limit: usize,
}

impl TrainOptions {
    /// Options for a vocabulary of `vocabulary_size` tokens: the alphabet, and one for each merge.
    /// Special tokens do not count.
    pub fn new(vocabulary_size: usize) -> Self {
        Self {
            vocabulary_size,
            alphabet: Alphabet::default(),
            min_frequency: 1,
            longest_token: usize::MAX,
            ties: Ties::default(),
            algorithm: Algorithm::default(),
            first_merges: Vec::new(),
            seed_tokens: Vec::new(),
            memory_limit: usize::MAX,
        }
    }

    /// What words consist of before the first merge: bytes where not called.
    pub fn alphabet(mut self, alphabet: Alphabet) -> Self {
        self.alphabet = alphabet;
        self
    }

    /// Stops before the first merge of a pair that occurs less than `count` times. 0 means 1, which is
    /// where it starts.
    pub fn min_frequency(mut self, count: u64) -> Self {
        self.min_frequency = count.max(1);
        self
    }

    /// Learns no token longer than this number of bytes. No limit where not called.
    pub fn longest_token(mut self, bytes: usize) -> Self {
        self.longest_token = bytes;
        self
    }

    /// Which of the most frequent pairs is merged first.
    pub fn ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    /// How it is computed; the result is the same.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Applies these merges first, in this order, and learns from there: the merges of an earlier
    /// training or of any dictionary, which is then gone on with. They count in the size of the
    /// vocabulary.
    pub fn first_merges<B: Into<Vec<u8>>>(
        mut self,
        merges: impl IntoIterator<Item = (B, B)>,
    ) -> Self {
        self.first_merges = merges
            .into_iter()
            .map(|(left, right)| (left.into(), right.into()))
            .collect();
        self
    }

    /// Makes these byte strings tokens before anything is learned. The merges that make them, and
    /// the tokens on the way, count in the size of the vocabulary; they follow
    /// [`TrainOptions::first_merges`]. One that no word holds is a token all the same.
    ///
    /// ```
    /// use bpe_train::{TrainOptions, WordCounts, train};
    ///
    /// let options = TrainOptions::new(300).seed_tokens(["abc", "ab", "abcd"]);
    /// let training = train(&WordCounts::new(), &options)?;
    /// let learned: Vec<&[u8]> = training.merges().map(|merge| merge.token).collect();
    /// assert_eq!(learned, [&b"ab"[..], b"abc", b"abcd"]);
    /// # Ok::<(), bpe_train::TrainError>(())
    /// ```
    pub fn seed_tokens<B: Into<Vec<u8>>>(mut self, tokens: impl IntoIterator<Item = B>) -> Self {
        self.seed_tokens = tokens.into_iter().map(Into::into).collect();
        self
    }

    /// Refuses words whose training would take more memory than this, by an estimate of 50 bytes for
    /// each byte of the distinct words. No limit where not called.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }
}

/// What words consist of before the first merge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Alphabet {
    /// The 256 bytes: every text can be encoded, and a character may be several tokens.
    #[default]
    Bytes,
    /// Characters: as many of the most frequent ones of the words as make up that share of all their
    /// characters (1.0: all of them), and those of the merges and tokens to begin with. What is none of
    /// them, and bytes that are not UTF-8, are part of no merge: 256 tokens for single bytes stand for
    /// them, which count in the size of the vocabulary. SentencePiece calls this `character_coverage`
    /// and `byte_fallback`.
    Characters {
        /// From 0.0 to 1.0.
        coverage: f64,
    },
}

/// Which of several pairs of the same count is merged first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The pair whose left token is the smallest byte string; of those, whose right one is.
    #[default]
    Lexicographic,
    /// The pair whose left token is the oldest; of those, whose right one is. The alphabet is older
    /// than merges. Among themselves characters are in the order of their numbers, and bytes in the
    /// order of the characters that stand for them in GPT-2's byte-level alphabet (`!` to `~` first).
    /// This is the order of ids of the trainer in Hugging Face's `tokenizers`, and gives its list of
    /// merges.
    HuggingFace,
}

/// How the merges are found. All give the same result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// 003 "Naive": all pairs are searched for the most frequent one, and all words for that pair.
    /// O(words + pairs) a merge.
    Naive,
    /// 003 with a max-heap of pairs, out of date entries sorted out when they come up.
    /// O(words + log pairs) a merge.
    Heap,
    /// 003 with an inverted index from pairs to words. O(pairs + bytes of the words that hold the
    /// pair) a merge.
    InvertedIndex,
    /// 003 with both. O(log pairs + bytes of the words that hold the pair) a merge.
    InvertedIndexAndHeap,
    /// Places of pairs instead of words, in flat memory: each merge looks at the places where its pair
    /// stood, and no place is looked at for a pair more than once. O(n log n) time for n bytes of
    /// distinct words, whatever the words are.
    #[default]
    Positions,
}

impl Algorithm {
    /// All of them, the slowest first.
    pub const ALL: [Self; 5] = [
        Self::Naive,
        Self::Heap,
        Self::InvertedIndex,
        Self::InvertedIndexAndHeap,
        Self::Positions,
    ];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Heap => "heap",
            Self::InvertedIndex => "inverted_index",
            Self::InvertedIndexAndHeap => "inverted_index_and_heap",
            Self::Positions => "positions",
        }
    }
}
