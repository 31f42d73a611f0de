"""One tokenizer that has a call from Python only, asked line by line.

Started as `worker.py NAME CORES`; the requests and answers are those of `src/speed/child.rs`. The clock
runs around the call and nothing else: what it takes in are bytes, what it gives is whatever the peer
gives with the least Python in it.
"""

import array
import importlib
import importlib.metadata
import json
import os
import sys
import time

SHORT = b"The first text, whose encoding builds what loading put off."


class Watch:
    """The clock on the wall, and that of the work of this process."""

    def __enter__(self):
        self.work = time.process_time()
        self.wall = time.perf_counter()
        return self

    def __exit__(self, *_):
        wall = time.perf_counter()
        work = time.process_time()
        self.answer = {"wall": wall - self.wall, "work": work - self.work}


def resident_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return None


class Worker:
    def __init__(self, name):
        self.peer = importlib.import_module("peer_" + name.replace("-", "_"))
        self.version = importlib.metadata.version(self.peer.PACKAGE)
        self.loaded = None
        self.texts = {}

    def load(self, request):
        self.loaded = None
        with Watch() as ready:
            self.loaded = self.peer.Peer(request["encoding"], request["ranks"], request["json"])
        short = self.prepare([SHORT])
        with Watch() as first:
            self.loaded.run(short)
        return {
            "version": self.version,
            "ready": ready.answer,
            "first": first.answer,
            "resident_bytes": resident_bytes(),
        }

    def prepare(self, texts):
        """What the peer takes, made outside of the time: bytes, or text where it takes no bytes."""
        return [self.peer.prepare(text) for text in texts]

    def read_texts(self, request):
        with open(request["path"], "rb") as file:
            data = file.read()
        at = 0
        texts = []
        for length in request["lengths"]:
            texts.append(data[at : at + length])
            at += length
        self.texts[request["name"]] = self.prepare(texts)
        return {}

    def ids(self, request):
        with open(request["path"], "wb") as file:
            for text in self.texts[request["texts"]]:
                file.write(array.array("I", self.loaded.ids(text)).tobytes())
        return {}

    def time(self, request):
        texts = self.texts[request["texts"]]
        call = self.loaded.run_batch if request["batch"] else self.loaded.run
        with Watch() as watch:
            answer = call(texts)
        # Dropped after the clock: what that costs is the peer's luck, not ours.
        del answer
        return watch.answer


def main():
    name, cores = sys.argv[1:]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    worker = Worker(name)
    calls = {
        "load": worker.load,
        "texts": worker.read_texts,
        "ids": worker.ids,
        "time": worker.time,
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = calls[request["do"]](request)
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


main()
