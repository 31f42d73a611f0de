"""Random small tokenizer.json files, and what `tokenizers` makes of random texts with them.

Run as `added_tokens.py SEED FILES`. Each line of the output is one file with the answers, as JSON:

    file        the tokenizer.json: some added tokens of all flags, and some of every step
    truncation  the settings of `cut`, or null
    texts       for each text: `bare` (no post-processor), `plain` (encode_special_tokens), `off`, `on` (without and
                with special tokens) and `cut` (truncated)
    pairs       for each pair: `texts` and `on`
    lists       for each list of ids: `ids`, and `texts` decoded with and without special tokens

An answer is [ids, offsets in characters, special tokens mask, overflowing], and null where the library refuses or
panics.
"""

import json
import random
import resource
import sys

from tokenizers import Tokenizer

USUAL = "ab \u2581\u0120\u00e9A"
RARE = "\t\n1-.e_B\u0301\u00a0\u3000\u200b\u0085\u4e2d\u00c3\u0130\u212a"
ALPHABETS = [
    USUAL, USUAL, "ab ", "a \u2581", "a\u0120 ", "aA\u00e9 ", " \t\u3000a", "<s> ", "\u00e9\u0301e ", "a_ \u2581", "\u0120\u2581 ",
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def byte_alphabet():
    """The characters that stand for bytes, in the order of the bytes."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in kept else chr(next(others)) for byte in range(256)]


class Case:
    """One file, and texts like its added tokens."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.choice = self.random.choice
        self.alphabet = self.choice(ALPHABETS)
        self.kind, model = self.model()
        self.vocab = model["vocab"]
        self.usual = [text for text in list(self.vocab)[-20:] if not text.startswith("<0x")]
        added = self.added_tokens()
        normalizer, pre_tokenizer = self.before_the_model()
        self.file = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": self.post_processor(added), "decoder": self.decoder(),
            "model": model,
        }

    def chance(self, probability):
        return self.random.random() < probability

    def character(self):
        return self.choice(RARE if self.chance(0.08) else self.alphabet)

    def some(self, name, step, most=3):
        """No step, one, or a sequence of them."""
        steps = [step() for _ in range(self.choice([0, 1, 1, 2, most]))]
        match steps:
            case []:
                return None
            case [one] if self.chance(0.7):
                return one
        return {"type": "Sequence", name: steps}

    def merges(self, vocab, units):
        merges, tokens = [], list(units)
        for _ in range(self.random.randint(0, 8)):
            sides = [self.choice(tokens), self.choice(tokens)]
            product = "".join(sides)
            if product not in vocab:
                vocab[product] = len(vocab)
                merges.append(sides)
                tokens.append(product)
        return merges

    def model(self):
        kind = self.choice(["bytes", "bytes", "characters", "characters", "fallback", "fallback", "words"])
        if kind == "words":
            words = ["[UNK]", "a", "b", "ab", "##a", "##b", "##ab", "\u2581", "##\u2581", "\u0120", "\u2581a", "##\u00e9", "\u00e9"]
            return kind, {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 8, "vocab": {word: index for index, word in enumerate(words)},
            }
        model = {"type": "BPE", "ignore_merges": kind != "fallback" and self.chance(0.3)}
        if kind == "bytes":
            vocab = {character: byte for byte, character in enumerate(byte_alphabet())}
            units = ["a", "b", "A", "\u0120", "\u00c3", "\u00a9", "\u00e2", "\u0138", "\u0123"]
        elif kind == "characters":
            units = [character for character in USUAL if character != " "]
            vocab = {text: index for index, text in enumerate(["<unk>", *units])}
            if self.chance(0.5):
                vocab[" "] = len(vocab)
            model.update(unk_token="<unk>", fuse_unk=self.chance(0.5))
        else:
            units = ["\u2581", "a", "b", "A", "\u00e9"]
            texts = ["<unk>", *[f"<0x{byte:02X}>" for byte in range(256)], *units]
            vocab = {text: index for index, text in enumerate(texts)}
            model.update(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
        return kind, {**model, "merges": self.merges(vocab, units), "vocab": vocab}

    def added_tokens(self):
        """Their ids are those that the library gives them: of the vocabulary, or behind it."""
        contents = []
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.random()
            if kind < 0.12:
                content = self.choice(self.usual)
            elif kind < 0.17:
                content = self.choice(["<s>", "[UNK]", "<unk>", "<0x41>", "<0x20>", "<|a|>"])
            elif kind < 0.25 and contents:
                content = self.choice(contents) + self.character()
            else:
                content = "".join(self.character() for _ in range(self.choice([1, 1, 2, 2, 2, 3, 3, 4])))
            if content not in contents:
                contents.append(content)
        flagged = self.choice([0, 0.3, 0.5])
        added = [
            {
                "id": None, "content": content, "single_word": self.chance(flagged / 2), "lstrip": self.chance(flagged),
                "rstrip": self.chance(flagged), "normalized": self.chance(0.45), "special": self.chance(0.5),
            }
            for content in contents
        ]
        if self.chance(0.5):
            for content in contents:
                if self.chance(0.5):
                    self.vocab.setdefault(content, len(self.vocab))
        self.ids = len(self.vocab)
        for token in added:
            token["id"] = self.vocab.get(token["content"], self.ids)
            self.ids += token["id"] == self.ids
        return added

    def before_the_model(self):
        normalizer = self.some("normalizers", self.normalizer) if self.chance(0.75) else None
        if self.kind != "bytes":
            return normalizer, self.some("pretokenizers", self.pre_tokenizer)
        if self.chance(0.12):
            steps = [self.normalizer() for _ in range(self.random.randint(0, 2))]
            split = {"type": "Split", "pattern": {"Regex": "[a-z]+|\u0120"}, "behavior": "Isolated", "invert": False}
            return {"type": "Sequence", "normalizers": [*steps, {"type": "ByteLevel"}]}, self.choice([None, split])
        if self.chance(0.6):
            return normalizer, self.byte_level(True)
        steps = [self.pre_tokenizer() for _ in range(self.random.randint(1, 2))]
        return normalizer, {"type": "Sequence", "pretokenizers": [*steps, self.byte_level(True)]}

    def normalizer(self):
        blanks = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        search = self.choice(["a", "ab", "\u2581", "A", "\u0120"])
        bert = {
            "type": "BertNormalizer", "clean_text": self.chance(0.7), "handle_chinese_chars": self.chance(0.5),
            "strip_accents": self.choice([True, False, None]), "lowercase": self.chance(0.5),
        }
        regex = self.choice(["[ab]+", "\\s+"])
        return self.choice([
            *[{"type": kind} for kind in ["Lowercase", "Lowercase", "NFC", "NFD", "NFKC", "StripAccents", "Nmt"]],
            blanks, blanks, blanks, bert,
            {"type": "Replace", "pattern": {"String": search}, "content": self.choice(["", "b", " ", "a ", "ba"])},
            {"type": "Replace", "pattern": {"Regex": regex}, "content": self.choice(["", "b", " ", "\u2581"])},
            {"type": "Prepend", "prepend": self.choice(["\u2581", "\u2581", " ", "a", "ab"])},
            {"type": "Strip", "strip_left": self.chance(0.6), "strip_right": self.chance(0.6)},
        ])

    def pre_tokenizer(self):
        split = {"type": "Split", "behavior": self.choice(BEHAVIORS), "invert": self.chance(0.2)}
        regex = self.choice(["\\s+", "[ab]+", "\\w+|[^\\w\\s]+", " ?[a-z]+", "\\s+(?!\\S)|\\s+"])
        scheme = self.choice(["first", "never", "always"])
        metaspace = {"type": "Metaspace", "replacement": self.choice("\u2581\u2581\u2581_"), "prepend_scheme": scheme}
        return self.choice([
            {**metaspace, "split": self.chance(0.6)}, {**metaspace, "split": True},
            {**split, "pattern": {"String": self.choice([" ", "\u2581", "a", "ab", "\u0120"])}},
            {**split, "pattern": {"Regex": regex}},
            *[{"type": kind} for kind in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"]],
            {"type": "Digits", "individual_digits": self.chance(0.5)},
            {"type": "Punctuation", "behavior": self.choice(BEHAVIORS)},
            {"type": "CharDelimiterSplit", "delimiter": self.choice(" a\u2581")},
            {"type": "FixedLength", "length": self.random.randint(1, 3)},
        ])

    def byte_level(self, trims):
        return {
            "type": "ByteLevel", "add_prefix_space": self.chance(0.5), "trim_offsets": trims, "use_regex": self.chance(0.5),
        }

    def post_processor(self, added):
        cls, sep = ([token["content"], token["id"]] for token in self.random.choices(added, k=2))

        def special(name, kind):
            return {"SpecialToken": {"id": name, "type_id": kind}}

        def text(name, kind):
            return {"Sequence": {"id": name, "type_id": kind}}

        single = [special("cls", 0), text("A", 0), special("sep", 0)]
        named = {"cls": cls, "sep": sep}.items()
        template = {
            "type": "TemplateProcessing", "single": single, "pair": [*single, text("B", 1), special("sep", 1)],
            "special_tokens": {name: {"id": name, "ids": [token[1]], "tokens": [token[0]]} for name, token in named},
        }
        around = {"sep": sep, "cls": cls}
        byte_level = self.byte_level(self.chance(0.85))
        roberta = {"trim_offsets": self.chance(0.85), "add_prefix_space": self.chance(0.5)}
        return self.choice([
            None, byte_level, byte_level, template, {"type": "BertProcessing", **around},
            {"type": "RobertaProcessing", **around, **roberta}, {"type": "RobertaProcessing", **around, **roberta},
            {"type": "Sequence", "processors": self.random.sample([byte_level, template], 2)},
        ])

    def decoder(self):
        blanks = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
        byte_level = self.byte_level(True)
        whole = [blanks, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]

        def step():
            pattern = {"String": self.choice(["a", "ab"])}
            scheme = self.choice(["first", "never", "always"])
            return self.choice([
                blanks, byte_level, {"type": "Fuse"}, {"type": "ByteFallback"},
                {"type": "Replace", "pattern": pattern, "content": self.choice([" ", "", "b"])},
                {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True},
                {"type": "WordPiece", "prefix": "##", "cleanup": self.chance(0.5)},
                {"type": "BPEDecoder", "suffix": self.choice(["a", "\u0120"])},
            ])

        if self.chance(0.5):
            return {"bytes": byte_level, "fallback": {"type": "Sequence", "decoders": whole}}.get(self.kind)
        return self.some("decoders", step)

    def text(self):
        parts = []
        for _ in range(self.choice([0, 1, 2, 3, 4, 5, 6, 8, 10])):
            kind = self.random.random()
            if kind < 0.35:
                part = self.choice(self.file["added_tokens"])["content"]
                if self.chance(0.2):
                    spaced = part.replace("\u2581", " ").replace("\u0120", " ")
                    part = self.choice([part.upper(), part.lower(), spaced, part.replace(" ", "\u2581")])
            else:
                part = " " * self.random.randint(1, 3) if kind < 0.5 else self.character()
            parts.append(part)
        return "".join(parts)

    def some_ids(self):
        added = [token["id"] for token in self.file["added_tokens"]]
        id_of = [lambda: self.random.randrange(self.ids), lambda: self.choice(added), lambda: self.choice(added)]
        return [self.choice(id_of)() for _ in range(self.random.randint(0, 6))]


def answer(call):
    """What `call` gives; null where it raises, which a panic does too, as no `Exception`."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def said(encoding, overflowing=True):
    parts = [said(part, False) for part in encoding.overflowing] if overflowing else []
    return [encoding.ids, [list(offset) for offset in encoding.offsets], encoding.special_tokens_mask, parts]


def answers(case):
    file = json.dumps(case.file)
    tokenizer = Tokenizer.from_str(file)
    # The library finds a token of nothing without end.
    normalizer = tokenizer.normalizer
    contents = [token["content"] for token in case.file["added_tokens"] if token["normalized"]]
    if normalizer and not all(normalizer.normalize_str(content) for content in contents):
        return None
    plain = Tokenizer.from_str(file)
    plain.encode_special_tokens = True
    bare = Tokenizer.from_str(json.dumps({**case.file, "post_processor": None}))
    cut = Tokenizer.from_str(file)
    truncation = {
        "max_length": case.random.randint(3, 8), "stride": case.choice([0, 0, 1, 2]), "direction": case.choice(["right", "left"]),
    }
    if answer(lambda: cut.enable_truncation(**truncation) or True) is None:
        truncation = cut = None

    def of_text(text):
        return {
            "text": text,
            "bare": answer(lambda: said(bare.encode(text))),
            "plain": answer(lambda: said(plain.encode(text, add_special_tokens=False))),
            "off": answer(lambda: said(tokenizer.encode(text, add_special_tokens=False))),
            "on": answer(lambda: said(tokenizer.encode(text))),
            "cut": cut and answer(lambda: said(cut.encode(text))),
        }

    def of_pair(first, second):
        return {"texts": [first, second], "on": answer(lambda: said(tokenizer.encode(first, second)))}

    def of_ids(ids):
        decoded = answer(lambda: [tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True)])
        return {"ids": ids, "texts": decoded}

    return {
        "file": case.file, "truncation": truncation,
        "texts": [of_text(case.text()) for _ in range(6)],
        "pairs": [of_pair(case.text(), case.text()) for _ in range(2)],
        "lists": [of_ids(case.some_ids()) for _ in range(4)],
    }


def main():
    seed, files = map(int, sys.argv[1:])
    # What runs away ends by itself.
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    for number in range(files):
        case = Case(seed * 1_000_003 + number)
        given = answer(lambda: answers(case))
        if given is not None:
            print(json.dumps(given), flush=True)


main()
