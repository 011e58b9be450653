"""Which mentions mean the same person: train on ten made-up tales, resolve another one.

Mentions are linked by a latent spanning forest: "her" belongs to "Emma" because one good link says
so, not because "her" resembles every other mention of Emma.
"""

import tempfile
from pathlib import Path

import numpy as np

from didyma import CoreferenceResolver
from didyma.applications import coreference

PEOPLE = (("Emma", "her"), ("Frank", "his"), ("Harriet", "her"), ("John", "his"))


def tale(seed, n_sentences=12):
    random = np.random.default_rng(seed)
    lines = [f"#begin document (tale{seed}); part 0"]
    for who in random.integers(len(PEOPLE), size=n_sentences):
        name, pronoun = PEOPLE[who]
        words = [(name, f"({who})"), ("likes", "-"), (pronoun, f"({who})"), ("walks", "-")]
        lines += [f"tale{seed} 0 {k} {word} {tag}" for k, (word, tag) in enumerate(words)]
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tales.conll")
        path.write_text("".join(tale(seed) for seed in range(11)))
        *train, unseen = coreference.read(path)
        resolver = CoreferenceResolver(C=0.1, r=0.1).fit(train)
        (labels,) = resolver.predict([unseen])
        for cluster in range(labels.max() + 1):
            words = [unseen.text(m) for m, own in zip(unseen.mentions, labels) if own == cluster]
            print(f"{cluster}: {', '.join(words)}")
        trace = " > ".join(f"{value:.4f}" for value in resolver.objective_trace_)
        print(f"CoNLL measure {resolver.score([unseen]):.3f}, objective by round {trace}")


if __name__ == "__main__":
    main()
