"""Writes pattern_cases.json: what random patterns match in random texts by `tokenizers` (0.23.3).

python pattern_cases.py > pattern_cases.json
"""

import json
import random

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

chance = random.Random(7)

LITERALS = [*"aabbscksStfilAZ019_ -]&~\n.,/#!<>}{:=éßÉ中²ſ"]
CHARACTERS = [*"aabbsStfiAZ019_ -^]&~\n\r\t.{},|éÉß²¹½\u200c\u200dſKİıΣςσ中ア\u0301\u0345٣Ⅷⓐ\u00a0\u2028\u0085ﬁ"]
ESCAPES = [
    *[r"\n", r"\r", r"\t", r"\.", r"\-", r"\/", r"\<", r"\[", r"\]", r"\\", r"\x41", r"\x{e9}", r"\u4e2d"],
    *[r"\ ", r"\#", r"\&", r"\~", r"\e", r"\a", r"\f", r"\v", r"\_", r"\é", r"\{", r"\^", r"\$", r"\'"],
]
SETS = [
    *[r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\H", r"\p{L}", r"\P{L}", r"\p{^L}", r"\P{^Lu}", r"\p{Lu}"],
    *[r"\p{N}", r"\p{Han}", r"\p{M}", r"\p{P}", r"\p{S}", r"\p{Letter}", r"\p{Greek}", r"\p{Alphabetic}", r"\p{lu}"],
]
RANGES = ["a-c", "A-Z", "0-9", "a-z", "é-ü", "一-龥", "!-/", r"\x00-\x1f", "J-L", "a-", "-z"]
BRACKETS = ["alpha", "alnum", "ascii", "blank", "cntrl", "digit", "lower", "punct", "space", "upper", "word", "xdigit"]
ASSERTIONS = ["^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", "(?i)", "(?-i)"]
GROUPS = ["(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i:", "(?-i:"]
QUANTIFIERS = ["*", "+", "?", "{1}", "{2}", "{2,2}", "{1,2}", "{1,3}", "{,2}", "{2,}", "{3,1}", "{", "{a}", "{,}"]


def a_class(depth=0):
    items = []
    for _ in range(chance.randint(1, 4)):
        kind = chance.choices(["literal", "set", "escape", "range", "class", "bracket", "odd"], [8, 4, 2, 3, 1, 1, 1])[0]
        items.append(
            {
                "literal": lambda: chance.choice(LITERALS),
                "set": lambda: chance.choice(SETS),
                "escape": lambda: chance.choice([*ESCAPES, r"\b"]),
                "range": lambda: chance.choice(RANGES),
                "class": lambda: a_class(depth + 1) if depth < 2 else "x",
                "bracket": lambda: f"[:{chance.choice(['', '^'])}{chance.choice(BRACKETS)}:]",
                "odd": lambda: chance.choice(["-", "&", "~", "^", "--", "~~", "&&", "&&[^a]", r"&&\w"]),
            }[kind]()
        )
    return "[" + chance.choice(["", "", "^"]) + "".join(items) + "]"


def an_atom(depth):
    kind = chance.choices(["literal", "escape", "set", "class", "group", "assertion"], [8, 2, 3, 4, 4, 1])[0]
    if kind == "group" and depth < 3:
        return chance.choice(GROUPS) + a_pattern(depth + 1) + ")"
    if kind == "class":
        return a_class()
    return chance.choice({"escape": ESCAPES, "set": SETS, "assertion": ASSERTIONS}.get(kind, LITERALS))


def a_quantifier():
    if chance.random() < 0.6:
        return ""
    return chance.choice(QUANTIFIERS) + chance.choice(["", "", "", "", "?", "+"])


def a_pattern(depth=0):
    def branch():
        return "".join(an_atom(depth) + a_quantifier() for _ in range(chance.randint(1, 3)))

    return "|".join(branch() for _ in range(chance.choice([1, 1, 1, 2, 3])))


def matches(split, text):
    spans = (span for _, span in split.pre_tokenize_str(text))
    return [[len(text[:place].encode()) for place in span] for span in spans]


def main():
    cases = []
    while len(cases) < 600:
        pattern = a_pattern()
        try:
            split = Split(Regex(pattern), "removed", invert=True)
        except Exception:  # it does not compile
            continue
        texts = ["".join(chance.choices(CHARACTERS, k=chance.randint(1, 9))) for _ in range(4)]
        texts.append("aßẞss ﬁfi ﬆst ſs")
        cases.append([pattern, [[text, matches(split, text)] for text in texts]])
    print(",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases).join("[]"))


main()
