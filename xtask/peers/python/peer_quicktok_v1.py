"""quicktok: backtracking on a trie in C++, with the vocabularies in the package."""

import quicktok

PACKAGE = "quicktok-v1"


def prepare(text):
    return text.decode()


class Peer:
    def __init__(self, encoding, ranks, json):
        # The package keeps what it has loaded.
        quicktok._CACHE.clear()
        self.tokenizer = quicktok.get_encoding(encoding)

    def ids(self, text):
        return self.run([text])[0]

    def run(self, texts):
        return self.tokenizer.encode_batch(texts, threads=1)

    def run_batch(self, texts):
        return self.tokenizer.encode_batch(texts)
