"""Write the parts of the corpora that were made for this project.

    python3 written.py adversarial > corpora/adversarial.txt
    python3 written.py structured > the last part of corpora/structured.txt

The same bytes come out every time: the only source of chance is the linear
congruential generator below, and no character table of the interpreter is used.
"""

import base64
import itertools
import json
import sys


class Lcg:
    """x = x * 6364136223846793005 + 1442695040888963407 mod 2^64; take the high bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % bound

    def pick(self, items):
        return items[self.below(len(items))]


LETTERS = "abcdefghijklmnopqrstuvwxyz"

# One or two characters of every kind that a split pattern tells apart.
KINDS = [
    "a", "Z", "ß", "é", "я", "Я", "λ",      # letters, lower and upper
    "ǅ", "ᾈ",                               # title case
    "ʰ", "ー", "ˈ",                          # modifier letters
    "中", "ひ", "カ", "한", "ا", "ש", "ก",    # letters without case
    "7", "٣", "५", "３", "²", "½", "Ⅻ", "①",  # numbers of three kinds
    "\u0301", "\u093f", "\u20dd",            # marks: nonspacing, spacing, enclosing
    ".", "-", "_", "/", "(", "」", "“", "#", "\\",
    "+", "$", "^", "©", "€", "|",            # symbols
    "😀", "🇫", "\u200d", "\ufe0f", "\u200b", "\ufeff", "\u00ad",
    " ", "\u00a0", "\u3000", "\t", "\n", "\r", "\r\n", "\u2028", "\u0085",
    "\u0001", "\u007f", "\ue000", "\U0010ffff", "\ufffd",
]


def blanks():
    """Every row of one to three blanks of eight kinds, then long runs."""
    kinds = [" ", "\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2028"]
    after = ["b", "B", "7", ".", "中", "'s"]
    rows = [r for n in (1, 2, 3) for r in itertools.product(kinds, repeat=n)]
    for i, row in enumerate(rows):
        yield "a" + "".join(row) + after[i % len(after)]
    for n in range(1, 34):
        yield "x" + " " * n + "y" + " " * n + "\n" + " " * n + "z" + "\n" * n
        yield "\t" * n + "t" + "\r\n" * (n % 5) + " " * n + "." + " " * n + "9"
    yield " " * 600 + "end" + "\n" * 300 + "end" + " \n" * 100 + "\r\n" * 100 + "\t " * 100


def contractions():
    """The seven contractions in every case, with both apostrophes, and with U+017F for s."""
    heads = ["it", "IT", "It", "7", "中", " ", "é", "ſ", "-", ""]
    i = 0
    for ending in ["s", "t", "re", "ve", "m", "ll", "d"]:
        for spelled in itertools.product(*[(c, c.upper()) for c in ending]):
            for apostrophe in ("'", "’"):
                word = "".join(spelled)
                for tail in ("", "x", "X", " ", "'", "\n", "1"):
                    yield heads[i % len(heads)] + apostrophe + word + tail
                    i += 1
    for word in ("ſ", "ſs", "sſ", "reſ", "ſt", "K", "İ", "lL'Ll", "n't", "N'T", "tis", "em"):
        for head in heads:
            yield head + "'" + word + " "
    yield "I'M SURE'VE'D'LL don't DON'T Don'T y'all'd've rock'n'roll o'clock 'twas ''s '''ll"


def digits():
    """Runs of one to nine digits of fourteen sets of ten, alone and mixed."""
    zeros = [0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xBE6, 0xE50, 0xF20, 0x17E0, 0x1810,
             0xFF10, 0x1D7CE, 0x1D7F6]
    for zero in zeros:
        for n in range(1, 10):
            yield "".join(chr(zero + (n * 7 + i * 3) % 10) for i in range(n)) + " "
    others = "²³¹½¾⅓ⅠⅫⅷↂ①⑳⒈㊿〇〡万一二三百𒐀𐄇"
    chance = Lcg(3)
    for _ in range(80):
        mixed = [chance.pick(others) if chance.below(3) == 0
                 else chr(chance.pick(zeros) + chance.below(10))
                 for _ in range(1 + chance.below(8))]
        yield "".join(mixed) + chance.pick(["", " ", ",", ".", "a", "-", "\n"])
    yield "1,234,567.89 0x1F 1e-10 3.14159 2024-02-29T23:59:60Z 10% $1000 №5 1st 2ND"


def marks():
    """Eight marks, one to three of them, after every kind of character."""
    some = ["\u0301", "\u0308", "\u0323", "\u20dd", "\u093f", "\u0e31", "\u05b8", "\ufe0f"]
    for i, kind in enumerate(KINDS):
        for j, mark in enumerate(some):
            extra = some[(i + j) % len(some)] * ((i + j) % 3)
            yield kind + mark + extra + ("a" if (i + j) % 2 else "")
    yield "e" + "\u0301" * 200 + " " + "\u0323\u0301" * 50 + "A\u030a\u0301 한\u0301 1\u20e3"


def case():
    """Title case, capitals inside words, and capitals after letters without case."""
    words = ["ǅungla", "ǅUNGLA", "ǈubav", "ǋegova", "ǲ", "ᾈδης", "ᾼ", "ῼ", "iPhone", "HTTPServer",
             "getHTTPResponseCode", "McDONALD", "XMLHttpRequest", "aB", "Ab", "AB", "ABc", "aBC",
             "ﬁre", "STRASSE", "straße", "ẞ", "ŉ", "İstanbul", "ıı", "ΣΑΣ", "σας", "ʰA", "aʰB",
             "Aʰb", "Ⓐⓐ", "ⅰⅠ", "𝐀𝐛", "ªº", "ᏣᎳᎩ", "ꮳꮃꭹ", "ქართული", "ᲥᲐᲠᲗᲣᲚᲘ"]
    for i, word in enumerate(words):
        yield word + ["", " ", "'s", "'S", "/", "\n", "_", "1"][i % 8]
    before = ["ひらがな", "カタカナ", "ー", "々", "中文", "한글", "ไทย", "العربية", "शब्द", "ʻ", "ﾊﾝ"]
    for i, head in enumerate(before):
        for tail in ("ABC", "Abc", "abc", "aBC", "A", "AbCd", "É", "Я", "ǅ", "A中a", "7A"):
            yield head + tail + ("" if i % 2 else " ")


def emoji():
    """Sequences joined by U+200D, skin tones, flags whole and halved, keycaps, tags."""
    people = ["👩", "👨", "🧑", "👧"]
    for a, b in itertools.product(people, repeat=2):
        yield a + "\u200d❤\ufe0f\u200d" + b + " " + a + "\u200d👩\u200d" + b
    for tone in range(0x1F3FB, 0x1F400):
        yield "👍" + chr(tone) + "🧑" + chr(tone) + "\u200d🚀" + chr(tone) + "x"
    letters = [chr(0x1F1E6 + i) for i in range(26)]
    chance = Lcg(6)
    for n in range(1, 24):
        yield "".join(chance.pick(letters) for _ in range(n)) + chance.pick([" ", "a", "\n", ""])
    for key in "0123456789#*":
        yield key + "\ufe0f\u20e3" + key + "\u20e3"
    for region in ("gbeng", "gbsct", "ustx"):
        yield "🏴" + "".join(chr(0xE0000 + ord(c)) for c in region) + "\U000e007f"
    yield "🏳\ufe0f\u200d🌈🏴\u200d☠\ufe0f☺☺\ufe0f☺\ufe0e\u200d\u200d🇦\u200d🇧 1️a🙂's 🙂'S !🙂! 🙂\n\n🙂/"


def hangul():
    """Conjoining jamo in and out of order, compatibility and half-width forms, old letters."""
    chance = Lcg(7)
    for n in range(240):
        lead, vowel, trail = (chr(base + chance.below(count))
                              for base, count in ((0x1100, 19), (0x1161, 21), (0x11A8, 27)))
        yield [lead + vowel + trail, lead + vowel, lead, vowel + trail, trail + lead,
               lead + lead + vowel, chr(0xAC00 + chance.below(11172)) + trail][n % 7]
        if n % 9 == 0:
            yield " ㄱㅏㄴㆎ ﾡￂﾣ ᄀᅠᆨ ꥠힰퟋ 가각"


def zero_width():
    """Characters without width before, between and after words, blanks and signs."""
    invisible = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u061c", "\u200e",
                 "\u200f", "\u180e", "\u034f", "\u115f", "\ufe00", "\U000e0001"]
    for mark in invisible:
        for left, right in (("a", "b"), (" ", "b"), ("a", " "), ("1", "2"), (".", "."),
                            ("\n", "\n"), ("'", "s"), ("中", "A"), ("a", "'s"), (" ", " ")):
            yield left + mark + right
        yield mark * 5


def runs():
    """Long runs of one letter, of a pair, of a sign."""
    for n in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610):
        yield "a" * n + " "
    yield "a" * 3000 + "\n" + "ab" * 600 + "\n" + "A" * 500 + "aA" * 300 + "\n"
    for unit, n in (("中", 200), ("é", 200), ("ｗ", 100), ("한", 100), ("😂", 80), ("=", 400),
                    ("-", 150), (".", 300), ("/", 100), ("'", 100), ("0", 400), ("的", 100),
                    ("ſ", 60), ("\u0301", 60), ("xyz", 100), ("!?", 60), ("ha", 150), ("\\n", 60)):
        yield unit * n + "\n"


def base_64():
    """Random bytes in base64, in lines of 76 and in one line, and the same in hexadecimal."""
    chance = Lcg(10)
    raw = bytes(chance.below(256) for _ in range(3000))
    text = base64.b64encode(raw).decode()
    yield "\n".join(text[i:i + 76] for i in range(0, 2280, 76))
    yield "\ndata:application/octet-stream;base64," + text[2280:] + "\n" + raw[:600].hex() + "\n"


def random_words():
    """Words of 15 random letters, unlikely to be whole in a vocabulary."""
    chance = Lcg(11)
    for n in range(420):
        word = "".join(chance.pick(LETTERS) for _ in range(15))
        if n % 7 == 3:
            word = word.upper()
        yield word + ("\n" if n % 6 == 5 else " ")


def apostrophes():
    """The apostrophe before, after and between every kind of character."""
    for i, kind in enumerate(KINDS):
        yield "'" + kind + kind + "'" + kind + "'s" + kind + " '" + kind + "''" + kind + "\n"
        other = KINDS[(i * 7 + 3) % len(KINDS)]
        yield kind + "'" + other + "’" + kind


def neighbours():
    """About a third of all ordered pairs of kinds of character."""
    for left in KINDS:
        yield "".join(left + right for right in KINDS if (ord(left[0]) + ord(right[0])) % 3 == 0)


def specials():
    """Strings that some encodings reserve, whole, cut and doubled; paths and line-end marks."""
    names = ["endoftext", "fim_prefix", "fim_middle", "fim_suffix", "endofprompt", "im_start",
             "im_end", "start_header_id", "eot_id"]
    for name in names:
        yield f"<|{name}|>a <|{name}| > <|{name.upper()}|><|<|{name}|>|> |{name}|>\n"
    yield "<s></s><unk>[CLS][SEP][PAD][MASK]<pad><0x0A><0xE4>▁▁ ▁a Ġ Ċ âĢĻ\n"
    yield "a/b//c/\n/ ./../x.tar.gz /\r\n/ //\n\n// C:\\a\\b\\ ?q=1&r=%20#frag //\r\r\n/**/ ;\n;\r\n!\n \n"


SECTIONS = [blanks, contractions, digits, marks, case, emoji, hangul, zero_width, runs, base_64,
            random_words, apostrophes, neighbours, specials]


def adversarial():
    return "".join("".join(section()) + "\n" for section in SECTIONS)


def structured():
    """Records of a made-up row of gauges, in the forms in which machines write records."""
    chance = Lcg(20)
    things = ["valve", "pump", "boiler", "lamp", "fan", "gate", "belt", "scale"]
    states = ["ok", "late", "off", "check"]

    def record(number):
        return {
            "id": number,
            "name": f"{chance.pick(things)}-{chance.below(900) + 100}",
            "state": chance.pick(states),
            "value": (chance.below(2_000_000) - 1_000_000) / 1000,
            "limits": [chance.below(100), chance.below(1000)],
            "tags": [chance.pick(things) for _ in range(chance.below(4))],
            "note": chance.pick([None, "", "say \"stop\"", "tab\there", "überprüft", "検査済み", "a\\b"]),
            "seen": f"2024-{chance.below(12) + 1:02}-{chance.below(28) + 1:02}"
                    f"T{chance.below(24):02}:{chance.below(60):02}:{chance.below(60):02}.{chance.below(1000):03}Z",
        }

    out = []
    records = [record(n) for n in range(1, 111)]
    out.append("\n".join(json.dumps(r, ensure_ascii=n % 2 == 0)
                         for n, r in enumerate(records)) + "\n\n")
    out.append(json.dumps(records[:50], separators=(",", ":")) + "\n\n")
    out.append(json.dumps(records[50:70], indent=4, ensure_ascii=False) + "\n\n")
    rows = ["id,name,state,value,low,high,seen,note"]
    for r in (record(n) for n in range(200, 330)):
        note = (r["note"] or "").replace('"', '""')
        rows.append(f'{r["id"]},{r["name"]},{r["state"]},{r["value"]:.3f},{r["limits"][0]},'
                    f'{r["limits"][1]},{r["seen"]},"{note}"')
    out.append("\r\n".join(rows) + "\r\n\n")
    for n in range(140):
        level = chance.pick(["DEBUG", "INFO ", "INFO ", "WARN ", "ERROR"])
        r = record(n)
        out.append(f'{r["seen"]} {level} [worker-{chance.below(8)}] {chance.pick(things)}::{r["name"]}'
                   f' took {chance.below(90000)}us, id=0x{chance.below(2**31):08x} addr=10.0.'
                   f'{chance.below(256)}.{chance.below(256)}:{1024 + chance.below(60000)}\n')
        if level == "ERROR":
            out.append(f'    at {chance.pick(things)}.read(line {chance.below(500)})\n'
                       f'    at main(line {chance.below(90)})\n')
    out.append("\n")
    for r in (record(n) for n in range(400, 420)):
        out.append(f'- id: {r["id"]}\n  name: {r["name"]}\n  limits:\n    low: {r["limits"][0]}\n'
                   f'    high: {r["limits"][1]}\n  tags: [{", ".join(r["tags"])}]\n')
    out.append("\n")
    for r in (record(n) for n in range(500, 530)):
        out.append(f'[gauge.{r["name"]}]\nstate = "{r["state"]}"\nvalue = {r["value"]}\n'
                   f'limits = {r["limits"]}\n\n')
    out.append('<?xml version="1.0" encoding="UTF-8"?>\n<gauges>\n')
    for r in (record(n) for n in range(600, 640)):
        out.append(f'\t<gauge id="{r["id"]}" state="{r["state"]}"><name>{r["name"]}</name>'
                   f'<value unit="&#176;C">{r["value"]}</value></gauge>\n')
    out.append("</gauges>\n\n| name | state | value |\n| :--- | :---: | ---: |\n")
    for r in (record(n) for n in range(700, 740)):
        out.append(f'| `{r["name"]}` | **{r["state"]}** | {r["value"]} |\n')
    out.append("\n")
    for r in (record(n) for n in range(800, 840)):
        out.append(f"INSERT INTO gauge (id, name, state, value) VALUES ({r['id']}, '{r['name']}', "
                   f"'{r['state']}', {r['value']});\n")
    out.append("\n")
    for n in range(30):
        a, b = record(n), record(n)
        out.append(f'@@ -{n * 9 + 1},3 +{n * 9 + 1},3 @@\n {a["name"]} = {a["value"]}\n'
                   f'-{b["name"]} = {a["limits"]}\n+{b["name"]} = {b["limits"]}\n')
    return "".join(out)


def main():
    makers = {"adversarial": adversarial, "structured": structured}
    if len(sys.argv) != 2 or sys.argv[1] not in makers:
        sys.exit("usage: written.py adversarial|structured")
    sys.stdout.buffer.write(makers[sys.argv[1]]().encode("utf-8"))


if __name__ == "__main__":
    main()
