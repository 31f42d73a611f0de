"""One long file on several threads, by a tokenizer that has such a call from Python.

Started as `one_file.py NAME RANKS JSON FILE LENGTHS IDS CORES`, it writes the ids, four bytes each, and
prints one line of JSON: the seconds of three passes from the file to the ids, and the mean of their work.
LENGTHS has documents in bytes for those who do not cut a text themselves.
"""

import json
import os
import sys
import time

PASSES = 3

# Who takes so many seconds gains little by another pass.
ENOUGH = 20


def gigatoken(ranks, tokenizer_json, file, lengths):
    import numpy
    from gigatoken import TextFileSource, Tokenizer

    # The name of the file says which pattern to use.
    tokenizer = Tokenizer.from_tiktoken(ranks)
    source = TextFileSource([file])

    def encode():
        return tokenizer.encode_files(source, parallel=len(os.sched_getaffinity(0)) > 1)

    def flat(found):
        return numpy.concatenate([numpy.asarray(document, dtype="<u4") for document in found])

    return encode, flat


def tokenizers(ranks, tokenizer_json, file, lengths):
    import numpy
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_json)
    with open(lengths, encoding="utf-8") as lines:
        lengths = json.load(lines)

    def encode():
        with open(file, "rb") as input:
            documents = [input.read(length).decode() for length in lengths]
        return tokenizer.encode_batch_fast(documents, add_special_tokens=False)

    def flat(found):
        return numpy.concatenate([numpy.array(document.ids, dtype="<u4") for document in found])

    return encode, flat


def main():
    name, ranks, tokenizer_json, file, lengths, ids, cores = sys.argv[1:]
    cores = [int(core) for core in cores.split(",")]
    os.sched_setaffinity(0, cores)
    os.environ["RAYON_NUM_THREADS"] = str(len(cores))
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if len(cores) > 1 else "false"
    sides = {side.__name__: side for side in (gigatoken, tokenizers)}
    encode, flat = sides[name](ranks, tokenizer_json, file, lengths)
    seconds = []
    work = time.process_time()
    while len(seconds) < PASSES and sum(seconds) < ENOUGH:
        found = None
        start = time.perf_counter()
        found = encode()
        seconds.append(time.perf_counter() - start)
    work = (time.process_time() - work) / len(seconds)
    flat(found).tofile(ids)
    print(json.dumps({"seconds": seconds, "work": work}))


main()
