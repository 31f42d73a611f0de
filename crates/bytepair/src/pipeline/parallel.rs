//! Several threads for a pipeline: one long text, and many texts.

use std::fmt;
use std::sync::Arc;

use bpe_core::TokenId;
use bpe_parallel::{Divide, OnError, Team, Tokens, Wanted, Workers};

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::parallel::{Batch, Parallel, differences, is_short, separate};
use crate::pipeline::parts::Texts;
use crate::pipeline::{InputError, InputOptions, ModelInput, Pipeline};

impl Pipeline {
    /// The tokens of one long text, found on as many threads as the machine runs at once: those of
    /// [`Pipeline::encode`], always. O(bytes), divided by the threads. [`PipelineParallel`] says how, and
    /// when it is done by one thread.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn encode_parallel(&self, text: impl AsRef<str>) -> Result<Vec<TokenId>, EncodeError> {
        self.parallel().encode(text)
    }

    /// The tokens of each text, in the order of the texts, without those that a post-processor sets around
    /// it. O(bytes), divided by the threads. The work is divided by bytes: short texts are done together, a long one
    /// by several threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`], for the first text at fault, with its index.
    pub fn encode_batch<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        self.parallel().encode_batch(texts)
    }

    /// As [`Pipeline::encode_batch`], with `threads` threads, 0 counting as 1. They are started for this call unless
    /// the pipeline has as many: [`Pipeline::parallel`] keeps them for others.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode_batch`].
    pub fn encode_batch_with<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
        threads: usize,
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        self.parallel().threads(threads).encode_batch(texts)
    }

    /// The number of tokens of each text, without those that a post-processor sets around it. O(bytes), divided by
    /// the threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode_batch`].
    pub fn count_batch<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Result<Vec<usize>, EncodeError> {
        self.parallel().count_batch(texts)
    }

    /// The same pipeline with several threads, and the calls for them.
    pub fn parallel(&self) -> PipelineParallel {
        let workers = &self.parts.later.workers;
        PipelineParallel {
            pipeline: self.clone(),
            workers: Arc::clone(workers.get_or_init(|| Arc::new(Workers::available()))),
            part_bytes: None,
            adds_special: false,
        }
    }
}

/// A [`Pipeline`] with several threads. Cheap to make and to clone; clones share the threads, which start with
/// the first work and wait for more. Called inside a rayon pool, the work is shared among the threads of that pool;
/// in a forked process threads are started anew.
///
/// What comes out is always what one thread gives. Added tokens are found over the whole text first. What stands between
/// them is cut only where every step is known to be local, so that nothing has to be joined:
///
/// | step | cut between two characters |
/// |---|---|
/// | NFC, NFD, NFKC, NFKD | that are of class 0 and stay as they are, and do not compose with what stands before them; and with the second of which nothing composes |
/// | `Lowercase`, `Nmt`, `ByteLevel`, `Prepend` | anywhere; what is set before a text is set before its first part alone |
/// | `StripAccents`, `BertNormalizer` | that stay in the text, and for `BertNormalizer` as for NFD |
/// | `Strip` | that are no blanks |
/// | `Replace` | that cannot be in one match, where it is known what stands there then |
/// | pre-tokenizers that test characters (`BertPreTokenizer`, `Whitespace`, `Punctuation`, `Digits`, `Metaspace`, ...) | where they cut, or leave out a character |
/// | pre-tokenizers with a pattern | where every text with these two is cut there ([`Cuts`](bpe_lexers::Cuts)) |
/// | BPE without a pre-tokenizer | that no token has side by side |
///
/// Where there is no such place near, parts are longer. By one thread, without any guess, are done:
///
/// | what | why |
/// |---|---|
/// | added tokens with `single_word`, `lstrip` or `rstrip` that are found in normalized text | what stands beside them may be in another part. Those found in the text as it is are found before it is cut |
/// | the map of characters of a `.model` file, and its `remove_extra_whitespaces` | a match may be of any length, and a blank goes because of another one far away |
/// | `Replace` with a pattern that looks around | a match may hang on any text |
/// | `FixedLength` | it counts from the start |
/// | a text that no pre-tokenizer cuts, where the model is WordPiece, has affixes, fuses unknown characters or looks up whole pieces | one part may be another token than a part of the whole |
/// | a pre-tokenizer with a pattern that cannot be [analysed](bpe_lexers::Analysis) | nothing is known of it |
///
/// ```
/// use bytepair::{Pipeline, ReadLimits};
///
/// let file = r#"{
///     "normalizer": { "type": "Lowercase" },
///     "pre_tokenizer": { "type": "Whitespace" },
///     "model": {
///         "type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "@",
///         "max_input_chars_per_word": 100, "vocab": { "?": 0, "one": 1, "two": 2, "@s": 3 }
///     }
/// }"#;
/// let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
/// let parallel = pipeline.parallel().threads(2);
/// let batch = parallel.encode_batch_flat(&["One twos", "two"])?;
/// assert_eq!(batch.ids, [1, 2, 3, 2]);
/// assert_eq!(batch.document_ends, [3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PipelineParallel {
    pipeline: Pipeline,
    workers: Arc<Workers>,
    part_bytes: Option<usize>,
    adds_special: bool,
}

impl PipelineParallel {
    /// The same with `threads` threads, 0 counting as 1, which are shared by clones of the value that
    /// this returns.
    pub fn threads(mut self, threads: usize) -> Self {
        if threads.max(1) != self.workers.threads() {
            self.workers = Arc::new(Workers::new(threads));
        }
        self
    }

    /// The number of threads.
    pub fn thread_count(&self) -> usize {
        self.workers.threads()
    }

    /// The same with texts cut into parts of about `bytes`, however short they are. By default the
    /// length suits the text and the number of threads.
    pub fn part_bytes(mut self, bytes: usize) -> Self {
        self.part_bytes = Some(bytes.max(1));
        self
    }

    /// The same, with the tokens that the post-processor sets around each text, as `[CLS]` before it; or without,
    /// which is the default.
    pub fn add_special_tokens(mut self, add: bool) -> Self {
        self.adds_special = add;
        self
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The tokens of one text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn encode(&self, text: impl AsRef<str>) -> Result<Vec<TokenId>, EncodeError> {
        let text = text.as_ref();
        let ids = match (self.is_short(text.len()), self.direct(text)) {
            (true, _) => self.pipeline.encode(text)?,
            (false, Some(direct)) => direct.encode(text)?,
            (false, None) => self.one(text, Wanted::Ids)?.ids,
        };
        Ok(match self.adds_special {
            true => self.pipeline.with_added(ids),
            false => ids,
        })
    }

    /// The tokens of one text, each with the bytes of it that it stands for: those of
    /// [`Pipeline::encode_with_offsets`]. O(bytes), divided by the threads. Tokens that the post-processor sets
    /// around a text are not among them; [`PipelineParallel::model_inputs`] has all.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn encode_with_offsets(&self, text: impl AsRef<str>) -> Result<Encoding, EncodeError> {
        let text = text.as_ref();
        if self.is_short(text.len()) {
            return self.pipeline.encode_with_offsets(text);
        }
        let Tokens {
            ids, starts, ends, ..
        } = self.one(text, Wanted::Ends)?;
        let ranges = starts.into_iter().zip(ends);
        Ok(Encoding {
            ids,
            byte_ranges: ranges.map(|(start, end)| start..end).collect(),
        })
    }

    /// The number of tokens of one text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn count(&self, text: impl AsRef<str>) -> Result<usize, EncodeError> {
        let text = text.as_ref();
        if self.adds_special {
            return Ok(self.encode(text)?.len());
        }
        match (self.is_short(text.len()), self.direct(text)) {
            (true, _) => self.pipeline.count(text),
            (false, Some(direct)) => direct.count(text),
            (false, None) => Ok(self.one(text, Wanted::Count)?.count),
        }
    }

    /// The tokens of each text, in the order of the texts. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`], for the first text at fault, with its index.
    pub fn encode_batch<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        let batch = self.batch(texts)?;
        Ok(self.finished(batch))
    }

    /// The tokens of all texts in one vector, with the places where texts end. O(bytes), divided by the
    /// threads.
    ///
    /// # Errors
    ///
    /// As [`PipelineParallel::encode_batch`].
    pub fn encode_batch_flat<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Result<Batch, EncodeError> {
        if !self.adds_special {
            return self.batch(texts);
        }
        let mut batch = Batch::default();
        for ids in self.encode_batch(texts)? {
            batch.ids.extend(ids);
            batch.document_ends.push(batch.ids.len());
        }
        Ok(batch)
    }

    /// The tokens of each text, or why it has none: an error of one does not lose the others. O(bytes),
    /// divided by the threads.
    pub fn encode_each<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Vec<Result<Vec<TokenId>, EncodeError>> {
        let (batch, errors) = self.documents(texts, Wanted::Ids, OnError::Keep);
        let mut results: Vec<_> = self.finished(batch.into()).into_iter().map(Ok).collect();
        for (index, error) in errors {
            if let Some(result) = results.get_mut(index) {
                *result = Err(error.in_document(index));
            }
        }
        results
    }

    /// The number of tokens of each text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`PipelineParallel::encode_batch`].
    pub fn count_batch<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
    ) -> Result<Vec<usize>, EncodeError> {
        if self.adds_special {
            return Ok(differences(self.encode_batch_flat(texts)?.document_ends));
        }
        let (batch, errors) = self.documents(texts, Wanted::Count, OnError::Stop);
        match errors.into_iter().next() {
            Some((index, error)) => Err(error.in_document(index)),
            None => Ok(differences(batch.document_ends)),
        }
    }

    /// What a model is given for each text, as by [`Pipeline::model_input`], in the order of the texts. Texts are not
    /// cut. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::model_input`], for the first text at fault, with its index.
    pub fn model_inputs<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
        options: &InputOptions,
    ) -> Result<Vec<ModelInput>, (usize, InputError)> {
        let inputs = self.workers.run(|team| {
            team.map(texts, |text| {
                self.pipeline.model_input(text.as_ref(), None, options)
            })
        });
        let inputs = inputs.into_iter().enumerate();
        inputs
            .map(|(index, input)| input.map_err(|error| (index, error)))
            .collect()
    }

    /// What the inner tokenizer has for several threads, where it does all that `text` needs and knows how to
    /// be joined: it cuts inside of pieces too.
    fn direct(&self, text: &str) -> Option<Parallel> {
        let tokenizer = self.pipeline.direct_for(text)?;
        let is_known = tokenizer.patterns().len() == tokenizer.inner.lexers.len();
        is_known.then(|| {
            let parallel = Parallel::new(tokenizer.clone(), &self.workers);
            match self.part_bytes {
                Some(bytes) => parallel.part_bytes(bytes),
                None => parallel,
            }
        })
    }

    fn is_short(&self, bytes: usize) -> bool {
        self.part_bytes.is_none() && is_short(bytes, &self.workers)
    }

    fn one(&self, text: &str, wanted: Wanted) -> Result<Tokens, EncodeError> {
        let (batch, errors) = self.documents(&[text], wanted, OnError::Stop);
        match errors.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(batch.tokens),
        }
    }

    fn batch<S: AsRef<str> + Sync>(&self, texts: &[S]) -> Result<Batch, EncodeError> {
        let (batch, errors) = self.documents(texts, Wanted::Ids, OnError::Stop);
        match errors.into_iter().next() {
            Some((index, error)) => Err(error.in_document(index)),
            None => Ok(batch.into()),
        }
    }

    fn documents<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
        wanted: Wanted,
        on_error: OnError,
    ) -> (bpe_parallel::Batch, Vec<(usize, EncodeError)>) {
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let pipeline = &self.pipeline;
        let divided = Texts { pipeline, wanted };
        let run = |team: Team<'_>| divided.documents(texts, self.part_bytes, on_error, team);
        let (batch, errors, _) = match self.is_short(bytes) {
            true => run(Team::ALONE),
            false => self.workers.run(run),
        };
        (batch, errors)
    }

    /// A vector for each text, with the tokens around it if they are asked for.
    fn finished(&self, batch: Batch) -> Vec<Vec<TokenId>> {
        let texts = separate(batch, &self.workers);
        match self.adds_special {
            false => texts,
            true => {
                let texts = texts.into_iter();
                texts.map(|ids| self.pipeline.with_added(ids)).collect()
            }
        }
    }
}

impl fmt::Debug for PipelineParallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineParallel")
            .field("pipeline", &self.pipeline)
            .field("threads", &self.workers.threads())
            .finish_non_exhaustive()
    }
}
