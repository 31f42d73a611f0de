"""Answers for `peers models --python`: ids of texts by other people's libraries.

Run as `mistral.py tekken FILE` or `mistral.py sentencepiece FILE`. Each line of the input is a text as
a JSON string; each line of the output is the list of its ids, or null where the library refuses it.
"""

import json
import sys


def encoder(kind, path):
    if kind == "sentencepiece":
        import sentencepiece

        return sentencepiece.SentencePieceProcessor(model_file=path).encode
    import logging

    logging.disable(logging.CRITICAL)
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(path)
    return lambda text: tokenizer.encode(text, bos=False, eos=False)


def main():
    kind, path = sys.argv[1:]
    encode = encoder(kind, path)
    for line in sys.stdin:
        try:
            ids = encode(json.loads(line))
        except Exception:
            ids = None
        print(json.dumps(ids), flush=True)


main()
