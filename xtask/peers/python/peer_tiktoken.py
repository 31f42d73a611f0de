"""tiktoken of OpenAI, with its own patterns and our file of the same ranks."""

import tiktoken
import tiktoken.load
import tiktoken_ext.openai_public

PACKAGE = "tiktoken"


def prepare(text):
    return text.decode()


class Peer:
    def __init__(self, encoding, ranks, json):
        # In place of the download.
        def load(*_, **__):
            return tiktoken.load.load_tiktoken_bpe(ranks)

        tiktoken_ext.openai_public.load_tiktoken_bpe = load
        definition = getattr(tiktoken_ext.openai_public, encoding)()
        self.encoding = tiktoken.Encoding(**definition)

    def ids(self, text):
        return self.encoding.encode_to_numpy(text, disallowed_special=())

    def run(self, texts):
        return [self.ids(text) for text in texts]

    def run_batch(self, texts):
        return self.encoding.encode_ordinary_batch(texts)
