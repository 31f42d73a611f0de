"""One trainer that has a call from Python only, in a process of its own.

Started as `train.py NAME CORPUS PATTERN SIZE CORES`, it prints one line of JSON: the time of the call, on
the wall and in work, the memory before it and the most there was, and the tokens that were learned. The
pattern is that of GPT-2, which some have built in. Each reads the corpus in the way that suits it best:
by the name of the file where the call takes one, else through an iterator that holds some 64 KB at once.
"""

import importlib.metadata
import json
import os
import sys
import time

BYTE_LEVEL = "byte_level"
HEXADECIMAL = "hexadecimal"


def memory(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return None


def blocks(corpus):
    """Whole lines, some 64 KB at once."""
    with open(corpus, encoding="utf-8", newline="") as file:
        while lines := file.readlines(1 << 16):
            yield "".join(lines)


def gigabpe(corpus, pattern, size, threads):
    import gigabpe

    def train():
        # The 256 characters of the alphabet are in it only where they occur.
        vocab, _ = gigabpe.train_bpe([corpus], size, pretokenizer="bytelevel", threads=threads)
        return BYTE_LEVEL, vocab

    return train


def gigatoken(corpus, pattern, size, threads):
    from gigatoken.gigatoken_rs import TextFileSource, train_bpe

    def train():
        vocab, _ = train_bpe(TextFileSource([corpus]), size, [])
        return HEXADECIMAL, vocab.values()

    return train


def rustbpe(corpus, pattern, size, threads):
    import rustbpe

    def train():
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(blocks(corpus), vocab_size=size, pattern=pattern, buffer_size=64)
        return HEXADECIMAL, (token for token, _ in tokenizer.get_mergeable_ranks())

    return train


def bpeasy(corpus, pattern, size, threads):
    import bpeasy

    def train():
        return HEXADECIMAL, bpeasy.train_bpe(blocks(corpus), pattern, 1 << 20, size, 64)

    return train


def tokenizers(corpus, pattern, size, threads):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def train():
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train([corpus], trainer)
        return BYTE_LEVEL, tokenizer.get_vocab()

    return train


TRAINERS = [gigabpe, gigatoken, rustbpe, bpeasy, tokenizers]


def main():
    name, corpus, pattern, size, cores = sys.argv[1:]
    cores = [int(core) for core in cores.split(",")]
    os.sched_setaffinity(0, cores)
    os.environ["RAYON_NUM_THREADS"] = str(len(cores))
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if len(cores) > 1 else "false"
    trainer = next(trainer for trainer in TRAINERS if trainer.__name__ == name)
    train = trainer(corpus, pattern, int(size), len(cores))
    before = memory("VmRSS:")
    work = time.process_time()
    wall = time.perf_counter()
    spelling, tokens = train()
    wall = time.perf_counter() - wall
    work = time.process_time() - work
    peak = memory("VmHWM:")
    if spelling == HEXADECIMAL:
        tokens = [bytes(token).hex() for token in tokens]
    answer = {
        "version": importlib.metadata.version(name),
        "wall": wall,
        "work": work,
        "before_bytes": before,
        "peak_bytes": peak,
        "spelling": spelling,
        "tokens": sorted(tokens),
    }
    print(json.dumps(answer))


main()
