"""A peer's tagger: ``python tagger_worker.py PEER DATA.json``.

DATA has the words and tags of training and test sentences. Prints, as JSON, the seconds of
training and of tagging, and the share of words whose tag is right. It runs in the peers' own
environment, on one thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Tag = Callable[[Sequence[str]], Sequence[str]]


def nltk_tnt(sentences: Any, tags: Any) -> Tag:
    """TnT with a suffix tagger for unknown words, as it has none of its own."""
    from nltk.tag import AffixTagger, DefaultTagger
    from nltk.tag.tnt import TnT

    data = [list(zip(words, own)) for words, own in zip(sentences, tags)]
    ((common, _),) = Counter(tag for own in tags for tag in own).most_common(1)
    unknown = AffixTagger(data, affix_length=-3, backoff=DefaultTagger(common))
    tagger = TnT(unk=unknown, Trained=True)
    tagger.train(data)
    return lambda words: [tag for _, tag in tagger.tag(words)]


def crfsuite(sentences: Any, tags: Any) -> Tag:
    """A linear chain over words, affixes, shapes and neighbours, trained by L-BFGS."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for words, own in zip(sentences, tags):
        trainer.append(list(_features(words)), own)
    trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": 50})
    path = str(Path(tempfile.mkdtemp(), "model"))
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return lambda words: tagger.tag(list(_features(words)))


def _features(words: Sequence[str]) -> Iterator[list[str]]:
    for i, word in enumerate(words):
        lower = word.lower()
        shape = "".join("X" if c.isupper() else "0" if c.isdigit() else "x" for c in word[:6])
        yield [
            f"w={lower}",
            *(f"s{n}={lower[-n:]}" for n in range(1, 5)),
            *(f"p{n}={lower[:n]}" for n in range(1, 4)),
            f"shape={shape}",
            f"w-1={words[i - 1].lower() if i else ''}",
            f"w-2={words[i - 2].lower() if i > 1 else ''}",
            f"w+1={words[i + 1].lower() if i + 1 < len(words) else ''}",
            f"w+2={words[i + 2].lower() if i + 2 < len(words) else ''}",
        ]


def main() -> None:
    peer, path = sys.argv[1:]
    train_words, train_tags, test_words, test_tags = json.loads(Path(path).read_text())
    fit = {"nltk_tnt": nltk_tnt, "crfsuite": crfsuite}[peer]
    fit(train_words[:5], train_tags[:5])  # loads libraries, as ours are loaded
    start = time.perf_counter()
    tag = fit(train_words, train_tags)
    fitted = time.perf_counter()
    guesses = [guess for words in test_words for guess in tag(words)]
    done = time.perf_counter()
    right = sum(a == b for a, b in zip(guesses, (tag for own in test_tags for tag in own)))
    result = {"fit": fitted - start, "tag": done - fitted, "accuracy": right / len(guesses)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
