"""Writes pipeline_cases.json: what `tokenizers` (0.23.3) makes of small tokenizers with every step.

python pipeline_cases.py > pipeline_cases.json
"""

import json
import random

from tokenizers import Tokenizer

CHARACTERS = "ab1-. \u2581é中½Ae\u0301\t"


def characters(**fields):
    """A model over characters with a merge of every two, so that each cut shows."""
    vocab = {"<unk>": 0}
    for character in CHARACTERS:
        vocab[character] = len(vocab)
    merges = []
    for first in CHARACTERS:
        for second in CHARACTERS:
            if " " not in first + second:
                vocab[first + second] = len(vocab)
                merges.append([first, second])
    return {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges, **fields}


def alphabet():
    """The characters that stand for bytes, in the order of the bytes."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, extra = {}, 0
    for byte in range(256):
        if byte in kept:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + extra)
            extra += 1
    return [table[byte] for byte in range(256)]


def bytes_model(**fields):
    vocab = {character: index for index, character in enumerate(alphabet())}
    merges = []
    for pair in ["a b", "b a", "\u0120 a", "1 1", "a 1", "- a", "\u0120 \u0120", "\u00c3 \u00a9"]:
        vocab[pair.replace(" ", "")] = len(vocab)
        merges.append(pair)
    return {"type": "BPE", "vocab": vocab, "merges": merges, **fields}


def clip():
    """A model with a suffix at the end of a word."""
    vocab = {"<unk>": 0}
    for character in "abc1":
        vocab[character] = len(vocab)
        vocab[character + "</w>"] = len(vocab)
    merges = [["a", "b"], ["ab", "c</w>"], ["a", "b</w>"], ["1", "1"]]
    for first, second in merges:
        vocab[first + second] = len(vocab)
    return {"type": "BPE", "unk_token": "<unk>", "end_of_word_suffix": "</w>", "vocab": vocab, "merges": merges}


def prefixed():
    vocab = {"<unk>": 0}
    for character in "abc1":
        vocab[character] = len(vocab)
        vocab["##" + character] = len(vocab)
    merges = [["a", "##b"], ["ab", "##c"], ["##b", "##c"]]
    for first, second in merges:
        vocab[first + second[2:]] = len(vocab)
    return {
        "type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "continuing_subword_prefix": "##",
        "vocab": vocab, "merges": merges,
    }


def fallback():
    vocab = {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}}
    for text in ["\u2581", "a", "b", "ab", "\u2581a", "\u2581\u2581", "\u2581ab"]:
        vocab[text] = len(vocab)
    merges = ["a b", "\u2581 a", "\u2581 \u2581", "\u2581 ab"]
    return {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocab, "merges": merges}


def word_piece():
    words = ["[UNK]", "a", "ab", "##a", "##b", "##1", "1", "-", ".", "中", "e", "##e"]
    return {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 8, "vocab": {word: index for index, word in enumerate(words)},
    }


MODELS = {
    "characters": characters(),
    "fused": characters(fuse_unk=True),
    "whole": characters(ignore_merges=True),
    "bytes": bytes_model(),
    "clip": clip(),
    "prefixed": prefixed(),
    "fallback": fallback(),
    "word_piece": word_piece(),
}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def token(content, number, **flags):
    return {
        "id": 1000 + number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": False, **flags,
    }


BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def settings():
    for kind in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"]:
        yield "characters", {"type": kind}, None, []
    for left in [True, False]:
        for right in [True, False]:
            yield "characters", {"type": "Strip", "strip_left": left, "strip_right": right}, None, []
    for content in ["", "b", "-."]:
        yield "characters", {"type": "Replace", "pattern": {"String": "a"}, "content": content}, None, []
        yield "characters", {"type": "Replace", "pattern": {"Regex": "[a1]+"}, "content": content}, None, []
    yield "characters", {"type": "Prepend", "prepend": "b-"}, None, []
    for clean in [True, False]:
        for han in [True, False]:
            for accents in [True, False, None]:
                bert = {
                    "type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": han,
                    "strip_accents": accents, "lowercase": True,
                }
                yield "word_piece", bert, {"type": "BertPreTokenizer"}, []
    yield "characters", sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFKC"}), None, []
    metaspaces = [
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut}
        for scheme in ["first", "never", "always"]
        for cut in [True, False]
    ]
    blanks = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    prepend = {"type": "Prepend", "prepend": "\u2581"}
    added = [token("-b", 0), token("\u2581\u2581", 1), token("é", 2, normalized=True), token("<s>", 3, special=True)]
    for model in ["characters", "fallback", "whole"]:
        yield model, sequence("normalizers", prepend, blanks), None, added
        yield model, blanks, split({"String": " "}, "MergedWithPrevious"), added
        for step in metaspaces:
            yield model, None, step, added
    yield "fallback", {"type": "NFKC"}, metaspaces[0], []
    for behavior in BEHAVIORS:
        yield "characters", None, {"type": "Punctuation", "behavior": behavior}, []
        for invert in [True, False]:
            yield "characters", None, split({"Regex": "[ab]+|1"}, behavior, invert), []
            yield "characters", None, split({"String": "-"}, behavior, invert), []
    for individual in [True, False]:
        yield "characters", None, {"type": "Digits", "individual_digits": individual}, []
    for kind in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"]:
        yield "characters", None, {"type": kind}, []
        yield "word_piece", {"type": "Lowercase"}, {"type": kind}, []
    yield "characters", None, {"type": "CharDelimiterSplit", "delimiter": "-"}, []
    yield "characters", None, {"type": "FixedLength", "length": 3}, []
    yield "characters", None, sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}), []
    for prefix in [True, False]:
        for regex in [True, False]:
            yield "bytes", None, byte_level(prefix, regex), []
            digits = {"type": "Digits", "individual_digits": False}
            yield "bytes", None, sequence("pretokenizers", {"type": "Punctuation"}, byte_level(prefix, regex), digits, split({"Regex": "[0-9][0-9]"}, "Isolated")), []
            yield "bytes", None, sequence("pretokenizers", split({"Regex": "[^a]+|a"}, "Removed", True), byte_level(prefix, regex)), []
    yield "bytes", {"type": "NFC"}, byte_level(), [token("é", 0, normalized=True), token("\u0301", 1)]
    yield "bytes", {"type": "ByteLevel"}, split({"String": "a"}, "MergedWithNext"), [token("é ", 0, normalized=True)]
    for kind in ["WhitespaceSplit", "Whitespace"]:
        yield "clip", {"type": "Lowercase"}, {"type": kind}, []
        yield "prefixed", None, {"type": kind}, []
    yield "fused", None, {"type": "WhitespaceSplit"}, []
    for flags in range(16):
        flag = {name: bool(flags >> bit & 1) for bit, name in enumerate(["single_word", "lstrip", "rstrip", "normalized"])}
        tokens = [token("a", 0, **flag), token("é", 1, **{**flag, "normalized": not flag["normalized"]}), token("1-", 2, special=True, **flag)]
        yield "characters", {"type": "Lowercase"}, None, tokens
        yield "characters", sequence("normalizers", {"type": "NFC"}, {"type": "Prepend", "prepend": "."}), {"type": "Digits", "individual_digits": True}, tokens
    yield "characters", None, None, [token(" ", 0, rstrip=True), token("a", 1)]
    yield "characters", None, None, [token(" ", 0, lstrip=True), token("a ", 1)]


def texts(random):
    yield from ["", " ", "a", "ab ab", "  a  b ", "e\u0301 é ½1", "\u2581a \u2581\u2581 b", "中a中", "-b a-b", "z?z  <s>x"]
    for _ in range(8):
        yield "".join(random.choice(CHARACTERS + "  z?ABÉ￼\u00a0\u0085\u200bﬁ\u1e9e") for _ in range(random.randint(3, 14)))


def main():
    generator = random.Random(9)
    all_texts = list(texts(generator))
    cases = []
    for model, normalizer, pre_tokenizer, added in settings():
        # Ids of added tokens stay as they are where the vocabulary has them too.
        vocab = dict(MODELS[model]["vocab"])
        added = [{**each, "id": vocab.setdefault(each["content"], len(vocab))} for each in added]
        file = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": None,
            "decoder": None, "model": {**MODELS[model], "vocab": vocab},
        }
        tokenizer = Tokenizer.from_str(json.dumps(file))
        results = []
        for text in all_texts:
            encoding = tokenizer.encode(text, add_special_tokens=False)
            results.append([encoding.ids, [list(offset) for offset in encoding.offsets]])
        cases.append({"model": model, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "added_tokens": added, "results": results})
    lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
    models = json.dumps(MODELS, ensure_ascii=True, separators=(",", ":"))
    print(f'{{"texts":{json.dumps(all_texts)},\n"models":{models},\n"cases":[\n{lines}\n]}}')


main()
