"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": motif finding.

    python reproductions/latent_svm_motif.py            everything, 8 minutes of one core
    python reproductions/latent_svm_motif.py --quick    l = 11, three folds, two seeds

Their sequences are not public. Ours are the confirmed replication origins of yeast (OriDB) of up to
500 bases as positives, and as negatives windows of the same lengths on the same chromosomes that
stand apart from every origin of any class. Ten-fold cross-validation; of several runs the one with
the lowest training objective is kept. The baseline is a Gibbs sampler with a background of the
same order, and a threshold chosen on the training sequences. The paper's background sequences at a
weight of 1/50 are left out, and so are longer origins, for time.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.estimators.gibbs_motif import GibbsMotifSampler
from didyma.estimators.motif import MotifFinder
from didyma.files import replace_when_done
from didyma.formats.fasta import encode, stream
from didyma.formats.meme import IUPAC, Motif

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("oridb_yeast", "Saccharomyces-Cerevisiae")

LONGEST = 500  # bases of an origin; longer ones are regions that hold one
APART = 500  # bases from an origin to a negative: ranges are of an older assembly, up to 371 off
LENGTHS = (11, 17)
CS = (10.0, 100.0, 1000.0)
CURVE = (0.1, 1.0, 10.0, 100.0, 1000.0)
NAMES = {
    "Gibbs": "Gibbs sampler",
    "random": "latent SVM, random start",
    "latent": "latent SVM, sampled start",
}
ARS = "WTTTAYRTTTW"
OUTSIDE = 2
PAPER = {11: {"Gibbs": 32.49, "random": 11.09}, 17: {"Gibbs": 31.47, "random": 12.00}}

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Origins:
    """Sequences with labels +1 and -1."""

    sequences: list[Codes]
    labels: NDArray[np.int64]


def read_origins(folder: Path, seed: int = 0) -> Origins:
    """Confirmed origins, each once, and as many windows elsewhere."""
    rng = np.random.default_rng(seed)
    positives: list[Codes] = []
    negatives: list[Codes] = []
    for path in sorted(folder.glob("chr??.fsa")):
        (chromosome,) = stream(path)
        codes = encode(chromosome.sequence)
        taken = np.zeros(len(codes) + 1, dtype=np.int64)
        own: dict[tuple[int, int], Codes] = {}
        for kind in ("confirmed", "likely", "dubious"):
            listed = path.with_name(f"{path.stem}-{kind}.fsa")
            if not listed.read_bytes().strip():
                continue  # a chromosome without such origins has an empty file
            for record in stream(listed):
                begin, end = _range(record.description, listed, record.line)
                taken[max(0, begin - 1 - APART) : end + APART] = 1
                if kind == "confirmed" and len(record) <= LONGEST:
                    own[begin, end] = encode(record.sequence)
        busy = np.concatenate([[0], np.cumsum(taken)])
        for sequence in own.values():
            positives.append(sequence)
            negatives.append(_elsewhere(codes, busy, len(sequence), rng))
    if not positives:
        raise DataError("expected chromosomes and origins (chr??.fsa)", path=folder)
    labels = np.repeat([1, -1], len(positives))
    return Origins(positives + negatives, labels)


def _range(description: str, path: Path, line: int) -> tuple[int, int]:
    found = re.search(r"range=chr\w+:(\d+)-(\d+)", description)
    if found is None:
        raise DataError("expected range=chr…:first-last", path=path, line=line, field="header")
    return int(found[1]), int(found[2])


def _elsewhere(codes: Codes, busy: NDArray[np.int64], size: int, rng: np.random.Generator) -> Codes:
    """A window of a chromosome that overlaps no origin."""
    while True:
        begin = int(rng.integers(len(codes) - size))
        if busy[begin + size] == busy[begin]:
            return codes[begin : begin + size]


def contains_ars(motif: Motif) -> float:
    """Mean probability of the bases that the ARS consensus allows, in the best place and strand.

    1 is a motif that allows nothing else; a motif that knows nothing has the background's share. Up
    to two positions of the consensus may stand outside the motif, and do not count.
    """
    allowed = np.array([[IUPAC.index(letter) >> base & 1 for base in range(4)] for letter in ARS])
    best = 0.0
    for turned in (motif.probabilities, motif.probabilities[::-1, ::-1]):
        shares = np.full((len(turned) + 2 * OUTSIDE, 4), np.nan)
        shares[OUTSIDE:-OUTSIDE] = turned
        for at in range(len(shares) - len(ARS) + 1):
            sums = (shares[at : at + len(ARS)] * allowed).sum(axis=1)
            best = max(best, float(np.nanmean(sums)))
    return best


def run(
    data: Path,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_folds: int = 10,
    n_seeds: int = 5,
    tol: float = 1e-2,
    Cs: Sequence[float] = CS,
    curve: Sequence[float] = CURVE,
    both_strands: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    """Cross-validation for each length, motifs of all sequences, and rounds of CCCP over C."""
    begun = time.monotonic()
    origins = read_origins(data / FOLDER, seed)
    fold = _folds(origins.labels, n_folds, seed)
    results: dict[str, Any] = {
        "positives": int(np.sum(origins.labels > 0)),
        "negatives": int(np.sum(origins.labels < 0)),
        "bases": int(sum(map(len, origins.sequences))),
        "folds": n_folds,
        "seeds": n_seeds,
        "lengths": {},
    }

    def finder(length: int, C: float, restarts: int = n_seeds, init: str = "sample") -> MotifFinder:
        how = {"init": init, "tol": tol, "n_restarts": restarts, "random_state": seed}
        return MotifFinder(length, 3, both_strands, C, **how)

    for length in lengths:
        gibbs = GibbsMotifSampler(length, 3, both_strands, n_restarts=n_seeds, random_state=seed)
        found: dict[str, list[float]] = {name: [] for name in (*NAMES, "C")}
        for k in range(n_folds):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            C = _choose_C(origins, train, Cs, lambda C, length=length: finder(length, C, 1))
            models = (gibbs, finder(length, C, 1, "random"), finder(length, C))
            for name, model in zip(NAMES, models):
                model.fit(*_part(origins, train))
                sequences, labels = _part(origins, test)
                found[name].append(100 * float(np.mean(model.predict(sequences) != labels)))
            found["C"].append(C)
            errors = ", ".join(f"{name} {found[name][-1]:.1f} %" for name in NAMES)
            minutes = (time.monotonic() - begun) / 60
            _say(f"l={length} fold {k + 1}/{n_folds}: {errors}; {minutes:.1f} min")
        C = float(np.median(found["C"]))
        motifs = {
            "Gibbs": gibbs.fit(origins.sequences, origins.labels).motif(),
            "latent": finder(length, C).fit(origins.sequences, origins.labels).motif(),
        }
        results["lengths"][length] = {
            **{name: _spread(found[name]) for name in NAMES},
            "C": found["C"],
            "motif": {
                name: {"consensus": motif.consensus, "ARS": contains_ars(motif)}
                for name, motif in motifs.items()
            },
        }
    results["rounds"] = {}
    for C in curve:
        fits = {
            init: finder(lengths[0], C, 1, init).fit(origins.sequences, origins.labels)
            for init in ("random", "sample")
        }
        results["rounds"][f"{C:g}"] = {
            init: {"rounds": fit.n_rounds_[0], "objective/C": fit.result_.value / C}
            for init, fit in fits.items()
        }
        _say(f"C={C:g}: {results['rounds'][f'{C:g}']}")
    results["seconds"] = time.monotonic() - begun
    return results


def _folds(labels: NDArray[np.int64], n_folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each sequence; an origin and its window elsewhere share one."""
    half = np.random.default_rng(seed).permutation(len(labels) // 2) % n_folds
    return np.concatenate([half, half])


def _part(origins: Origins, rows: NDArray[np.int64]) -> tuple[list[Codes], NDArray[np.int64]]:
    return [origins.sequences[i] for i in rows], origins.labels[rows]


def _choose_C(
    origins: Origins,
    train: NDArray[np.int64],
    Cs: Sequence[float],
    finder: Callable[[float], MotifFinder],
) -> float:
    """The C with the least error on every fourth pair of the training sequences."""
    if len(Cs) == 1:
        return float(Cs[0])
    held_out = train % (len(origins.labels) // 2) % 4 == 0
    errors = []
    for C in Cs:
        model = finder(C).fit(*_part(origins, train[~held_out]))
        errors.append(1 - model.score(*_part(origins, train[held_out])))
    return float(Cs[int(np.argmin(errors))])


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)), "folds": values}


def table(results: dict[str, Any]) -> str:
    """The results as Markdown, beside the paper's."""
    lines = [
        f"{results['positives']} confirmed origins, {results['negatives']} windows elsewhere, "
        f"{results['bases']} bases; {results['folds']} folds, {results['seeds']} seeds.",
        "",
        "| l | model | error % (mean ± sd) | paper, other data | consensus | ARS share |",
        "|---|---|---|---|---|---|",
    ]
    for length, found in results["lengths"].items():
        for name, title in NAMES.items():
            paper = PAPER.get(int(length), {}).get(name)
            motif = found["motif"].get(name)
            cells = [
                str(length),
                title,
                f"{found[name]['mean']:.2f} ± {found[name]['sd']:.2f}",
                "" if paper is None else f"{paper:.2f}",
                "" if motif is None else f"`{motif['consensus']}`",
                "" if motif is None else f"{motif['ARS']:.2f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        f"ARS share: mean probability of the bases that {ARS} allows, best place; all T has 0.82.",
        "",
    ]
    lines += [
        "| C | rounds, random start | objective / C | rounds, sampled start | objective / C |"
    ]
    lines += ["|---|---|---|---|---|"]
    for C, found in results["rounds"].items():
        cells = [C]
        for init in ("random", "sample"):
            cells += [str(found[init]["rounds"]), f"{found[init]['objective/C']:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three folds, two seeds, l = 11")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="PATH"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures")
    options = parser.parse_args(arguments)
    quick = {"lengths": (11,), "n_folds": 3, "n_seeds": 2, "Cs": (10.0,), "curve": (1.0, 10.0)}
    try:
        results = run(options.data, seed=options.seed, **(quick if options.quick else {}))
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(results))
    if options.json:
        with replace_when_done(options.json) as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
