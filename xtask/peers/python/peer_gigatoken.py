"""gigatoken: class masks and a cache, native code of nightly Rust.

The batch call is timed for one text too: `encode` copies the ids once more.
"""

import gigatoken
from gigatoken.gigatoken_rs import BytesSource

PACKAGE = "gigatoken"


def prepare(text):
    return text


class Peer:
    def __init__(self, encoding, ranks, json):
        # The name of the file says which pattern to use.
        self.backend = gigatoken.Tokenizer.from_tiktoken(ranks).backend

    def ids(self, text):
        return self.run([text])[0].to_numpy()

    def run(self, texts):
        return self.backend.encode_batch(BytesSource(texts), parallel=False)

    def run_batch(self, texts):
        return self.backend.encode_batch(BytesSource(texts), parallel=True)
