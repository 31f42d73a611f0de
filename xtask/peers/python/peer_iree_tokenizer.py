"""The tokenizer of IREE: its pattern compiled to an automaton, in C."""

from iree.tokenizer import Tokenizer

PACKAGE = "iree-tokenizer"


def prepare(text):
    return text.decode()


class Peer:
    def __init__(self, encoding, ranks, json):
        self.tokenizer = Tokenizer.from_tiktoken(ranks, encoding)

    def ids(self, text):
        return self.tokenizer.encode_to_array(text)

    def run(self, texts):
        return [self.tokenizer.encode_to_array(text) for text in texts]

    def run_batch(self, texts):
        return self.tokenizer.encode_batch_to_array(texts)
