"""Seconds that spaCy's untrained parser takes: ``python parser_worker.py SENTENCES.json``.

The file has the words of the sentences and the names of relations. Runs in the peers' own
environment, on one thread.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import spacy
from spacy.tokens import Doc


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    pipeline = spacy.blank("en")
    parser = pipeline.add_pipe("parser")  # its own convolutions, 96 wide and 4 deep
    for relation in given["relations"]:
        parser.add_label(relation)
    pipeline.initialize()

    def parse() -> None:
        docs = [Doc(pipeline.vocab, words=words) for words in given["sentences"]]
        for doc in parser.pipe(docs, batch_size=64):
            assert len(doc)

    parse()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        parse()
        seconds.append(time.perf_counter() - start)
    print(min(seconds))


if __name__ == "__main__":
    main()
