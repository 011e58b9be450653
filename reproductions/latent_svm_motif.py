"""Yu and Joachims (2009), "Learning structural SVMs with latent variables": motif finding.

    python -m reproductions.latent_svm --part motif

Their sequences are not public. Ours are the confirmed replication origins of yeast (OriDB) of up to
500 bases as positives, and as negatives windows of the same lengths on the same chromosomes that
stand apart from every origin of any class and have the same share of A and T, up to a hundredth.
Ten-fold cross-validation, of which the first folds are run; of ten runs from other first sites the
one with the lowest training objective is kept. C is a multiple of the number of sequences, as the
paper's, chosen on a quarter of the training sequences. Baselines are a Gibbs sampler with a
background of the same order, and two that know no motif: a threshold on the share of A and T, and
logistic regression on 6-mers. Longer origins are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import ttest_rel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from didyma.applications.motif.fasta import encode, stream
from didyma.applications.motif.finder import MotifFinder
from didyma.applications.motif.gibbs import GibbsMotifSampler
from didyma.applications.motif.meme import IUPAC, Motif
from didyma.errors import DataError
from didyma.report.table import markdown
from reproductions import study
from reproductions.kept import Kept

FOLDER = Path("oridb_yeast", "Saccharomyces-Cerevisiae")

LONGEST = 500  # bases of an origin; longer ones are regions that hold one
APART = 500  # bases from an origin to a negative: ranges are of an older assembly, up to 371 off
ALIKE = 0.01  # most by which the share of A and T of a negative may differ from its origin's
LENGTHS = (11, 17)
ORDER = 3  # of the background
WORD = 6  # of the baseline
WORD_CS = (0.1, 1.0, 10.0, 100.0)
MULTIPLES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # of the number of sequences: C
TIES = 4
N_BACKGROUND = 500  # windows for training only
BACKGROUND_SIZE, BACKGROUND_WEIGHT = 300, 1 / 50
COMPOSITION = {"AT": "share of A and T", "words": "6-mers, logistic regression"}
NAMES = {
    "Gibbs": "Gibbs sampler",
    "Gibbs, test": "Gibbs sampler, threshold best on test",
    "random": "latent SVM, random starts",
    "latent": "latent SVM, sampled starts",
    "ties": "the same with 4 ties tried",
    "background": "latent SVM, sampled starts, background of weight 1/50",
}
ARS = "WTTTAYRTTTW"
OUTSIDE = 2
PAPER = {
    11: {"Gibbs, test": 32.49, "background": 11.09},
    17: {"Gibbs, test": 31.47, "background": 12.00},
}

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Origins:
    """Sequences with labels +1 and -1, and others to train on as background."""

    sequences: list[Codes]
    labels: NDArray[np.int64]
    background: list[Codes]


class Chromosome:
    """Bases, and which of them are free: far from any origin, and in no window drawn before."""

    def __init__(self, codes: Codes, rng: np.random.Generator) -> None:
        self.codes, self.rng = codes, rng
        self.is_free = np.ones(len(codes), dtype=bool)
        self._at = _sums((codes == 0) | (codes == 3))

    def draw(self, size: int, share: float | None = None) -> Codes:
        """A free window, with this share of A and T if one is asked for, or the nearest to it."""
        busy = _sums(~self.is_free)
        begins = np.flatnonzero(busy[size:] == busy[:-size])
        if not len(begins):
            raise DataError(f"no window of {size} bases is apart from all origins")
        if share is not None:
            off = np.abs((self._at[begins + size] - self._at[begins]) / size - share)
            begins = begins[off <= max(ALIKE, off.min())]
        begin = int(self.rng.choice(begins))
        self.is_free[begin : begin + size] = False
        return self.codes[begin : begin + size]


def _sums(values: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(values)])


def at_share(codes: Codes) -> float:
    """The share of A and T."""
    return float(np.mean((codes == 0) | (codes == 3)))


def read_origins(
    folder: Path, seed: int = 0, n_background: int = 0, *, is_matched: bool = True
) -> Origins:
    """Confirmed origins, each once, as many windows elsewhere, and sequences for background."""
    rng = np.random.default_rng(seed)
    positives: list[Codes] = []
    negatives: list[Codes] = []
    chromosomes: list[Chromosome] = []
    for path in sorted(folder.glob("chr??.fsa")):
        (record,) = stream(path)
        chromosome = Chromosome(encode(record.sequence), rng)
        own: dict[tuple[int, int], Codes] = {}
        for kind in ("confirmed", "likely", "dubious"):
            listed = path.with_name(f"{path.stem}-{kind}.fsa")
            if not listed.read_bytes().strip():
                continue  # a chromosome without such origins has an empty file
            for origin in stream(listed):
                begin, end = _range(origin.description, listed, origin.line)
                chromosome.is_free[max(0, begin - 1 - APART) : end + APART] = False
                if kind == "confirmed" and len(origin) <= LONGEST:
                    own[begin, end] = encode(origin.sequence)
        for sequence in own.values():
            positives.append(sequence)
            share = at_share(sequence) if is_matched else None
            negatives.append(chromosome.draw(len(sequence), share))
        chromosomes.append(chromosome)
    if not positives:
        raise DataError("expected chromosomes and origins (chr??.fsa)", path=folder)
    labels = np.repeat([1, -1], len(positives))
    sizes = np.array([len(chromosome.codes) for chromosome in chromosomes])
    drawn = rng.choice(len(chromosomes), n_background, p=sizes / sizes.sum())
    background = [chromosomes[c].draw(BACKGROUND_SIZE) for c in drawn]
    return Origins(positives + negatives, labels, background)


def _range(description: str, path: Path, line: int) -> tuple[int, int]:
    found = re.search(r"range=chr\w+:(\d+)-(\d+)", description)
    if found is None:
        raise DataError("expected range=chr…:first-last", path=path, line=line, field="header")
    return int(found[1]), int(found[2])


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


# --- Models ---------------------------------------------------------------------------------------


def least_error(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The share of errors at the threshold that makes fewest of them."""
    return float(np.mean(np.where(scores > best_threshold(scores, labels), 1, -1) != labels))


def best_threshold(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Of -inf and the scores the one that, answering +1 above it, errs least."""
    thresholds = np.concatenate([[-np.inf], np.unique(scores)])
    errors = [np.mean(np.where(scores > t, 1, -1) != labels) for t in thresholds]
    return float(thresholds[int(np.argmin(errors))])


def count_words(sequences: Sequence[Codes]) -> sp.csr_array:
    """Shares of the words of six bases on both strands, one row a sequence, scaled to length 1."""
    rows = []
    for codes in sequences:
        counts = np.zeros(4**WORD)
        for strand in (codes, np.where(codes < 4, 3 - codes, codes)[::-1]):
            views = np.lib.stride_tricks.sliding_window_view(strand.astype(np.int64), WORD)
            known = views[(views < 4).all(axis=1)]
            counts += np.bincount(known @ 4 ** np.arange(WORD), minlength=4**WORD)
        rows.append(sp.csr_array(counts[None] / max(float(np.linalg.norm(counts)), 1.0)))
    return sp.vstack(rows, "csr")


def composition_errors(
    origins: Origins, fold: NDArray[np.int64], n_run: int
) -> dict[str, list[float]]:
    """Errors in the first folds of the share of A and T and shares of 6-mers, without a motif."""
    at = np.array([at_share(codes) for codes in origins.sequences])
    words, labels = count_words(origins.sequences), origins.labels
    found: dict[str, list[float]] = {name: [] for name in COMPOSITION}
    for k in range(n_run):
        train, test = fold != k, fold == k
        answers = {"AT": np.where(at[test] > best_threshold(at[train], labels[train]), 1, -1)}
        model = GridSearchCV(LogisticRegression(solver="liblinear"), {"C": WORD_CS}, cv=4)
        model.fit(words[train], labels[train])
        answers["words"] = model.predict(words[test])
        for name, answer in answers.items():
            found[name].append(100 * float(np.mean(answer != labels[test])))
    return found


# How each row differs from sampled starts, and whether it is trained with background sequences.
LEARNED: dict[str, tuple[dict[str, Any], bool]] = {
    "random": ({"init": "random"}, False),
    "latent": ({}, False),
    "ties": ({"ties": TIES}, False),
    "background": ({}, True),
}


def run(
    data: Path,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_folds: int = 10,
    n_run: int = 10,
    n_seeds: int = 10,
    n_background: int = N_BACKGROUND,
    tol: float = 1e-2,
    multiples: Sequence[float] = MULTIPLES,
    both_strands: bool = True,
    seed: int = 0,
    cache: Path | None = None,
) -> dict[str, Any]:
    """The first ``n_run`` folds of a cross-validation for each length, and motifs of the last.

    What a fold gave is kept in the folder ``cache``.
    """
    begun = time.monotonic()
    origins = read_origins(data / FOLDER, seed, n_background)
    unmatched = read_origins(data / FOLDER, seed, is_matched=False)
    fold = _folds(origins.labels, n_folds, seed)
    results: dict[str, Any] = {
        "positives": int(np.sum(origins.labels > 0)),
        "negatives": int(np.sum(origins.labels < 0)),
        "bases": int(sum(map(len, origins.sequences))),
        "background": [len(origins.background), BACKGROUND_SIZE],
        "folds": [n_run, n_folds],
        "seeds": n_seeds,
        "multiples": list(multiples),
        "AT": {
            "origins": _at_shares(origins, 1),
            "matched": _at_shares(origins, -1),
            "any": _at_shares(unmatched, -1),
        },
        "composition": {
            "matched": _spreads(composition_errors(origins, fold, n_run)),
            "any": _spreads(composition_errors(unmatched, fold, n_run)),
        },
        "lengths": {},
    }
    study.say(f"composition: {results['composition']}")
    kept = Kept(cache)
    how = {"seeds": n_seeds, "background": n_background, "tol": tol, "multiples": list(multiples)}
    how |= {"folds": n_folds, "both_strands": both_strands, "seed": seed}
    for length in lengths:
        find = partial(MotifFinder, length, ORDER, both_strands, solver="bundle", tol=tol)
        gibbs = GibbsMotifSampler(
            length, ORDER, both_strands, n_restarts=n_seeds, random_state=seed
        )
        folds = []
        for k in range(n_run):
            rows = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            compute = partial(run_fold, origins, *rows, multiples, find, gibbs, n_seeds, seed)
            folds.append(kept.record({"length": length, "fold": k, **how}, compute))
            errors = {name: round(error, 1) for name, error in folds[-1]["errors"].items()}
            study.say(f"l={length} fold {k + 1}/{n_run}: {errors}; {folds[-1]['chosen']}")
        results["lengths"][length] = {
            **_spreads({name: [one["errors"][name] for one in folds] for name in NAMES}),
            "over seeds": {
                name: float(np.mean([np.std(one["seeds"][name], ddof=1) for one in folds]))
                for name in LEARNED
                if n_seeds > 1
            },
            "rounds": {
                name: _least_and_most(one["rounds"][name] for one in folds) for name in LEARNED
            },
            "chosen": [one["chosen"] for one in folds],
            "motif": folds[-1]["motif"],
        }
    results["seconds"] = time.monotonic() - begun
    return results


def run_fold(
    origins: Origins,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    multiples: Sequence[float],
    find: Callable[..., MotifFinder],
    gibbs: GibbsMotifSampler,
    n_seeds: int,
    seed: int,
) -> dict[str, Any]:
    """Errors of all models in per cent, over the seeds too; rounds of CCCP; the motifs."""
    chosen = _choose_C(origins, train, multiples, partial(find, n_restarts=1, random_state=seed))
    sequences, labels = _part(origins, test)
    gibbs.fit(*_part(origins, train))
    errors = {
        "Gibbs": 100 * float(np.mean(gibbs.predict(sequences) != labels)),
        "Gibbs, test": 100 * least_error(gibbs.log_odds(sequences), labels),
    }
    motifs = {"Gibbs": _described(gibbs.motif())}
    seeds, rounds = {}, {}
    for name, (options, with_background) in LEARNED.items():
        training = (_with_background if with_background else _part)(origins, train)
        make = partial(find, C=chosen["multiple"] * len(train), n_restarts=1, **options)
        runs = [make(random_state=k).fit(*training) for k in range(n_seeds)]
        seeds[name] = [100 * (1 - run.score(sequences, labels)) for run in runs]
        rounds[name] = [run.n_rounds_[0] for run in runs]
        best = int(np.argmin([run.objectives_[0] for run in runs]))
        errors[name], motifs[name] = seeds[name][best], _described(runs[best].motif())
    return {
        "chosen": chosen,
        "errors": errors,
        "seeds": seeds,
        "rounds": rounds,
        "motif": motifs,
    }


def _least_and_most(rounds: Iterable[Sequence[int]]) -> list[int]:
    """Rounds of CCCP."""
    counts = [n for each in rounds for n in each]
    return [min(counts), max(counts)]


def _described(motif: Motif) -> dict[str, Any]:
    return {"consensus": motif.consensus, "ARS": contains_ars(motif)}


def _at_shares(origins: Origins, label: int) -> float:
    """Mean share of A and T of the sequences with a label."""
    chosen = [s for s, y in zip(origins.sequences, origins.labels) if y == label]
    return float(np.mean([at_share(sequence) for sequence in chosen]))


def _with_background(
    origins: Origins, rows: NDArray[np.int64]
) -> tuple[list[Codes], NDArray[np.int64], NDArray[np.float64]]:
    """Some sequences, and the background as negatives of little weight."""
    sequences, labels = _part(origins, rows)
    n = len(origins.background)
    return (
        sequences + origins.background,
        np.concatenate([labels, np.full(n, -1)]),
        np.concatenate([np.ones(len(rows)), np.full(n, BACKGROUND_WEIGHT)]),
    )


def _folds(labels: NDArray[np.int64], n_folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each sequence; an origin and its window elsewhere share one."""
    half = np.random.default_rng(seed).permutation(len(labels) // 2) % n_folds
    return np.concatenate([half, half])


def _part(origins: Origins, rows: NDArray[np.int64]) -> tuple[list[Codes], NDArray[np.int64]]:
    return [origins.sequences[i] for i in rows], origins.labels[rows]


def _choose_C(
    origins: Origins,
    train: NDArray[np.int64],
    multiples: Sequence[float],
    make: Callable[..., MotifFinder],
) -> dict[str, Any]:
    """The multiple with the least error on every fourth pair of the training sequences.

    ``errors`` are those of all multiples, in per cent; of equals the smallest is chosen.
    """
    held_out = train % (len(origins.labels) // 2) % 4 == 0
    errors = []
    for multiple in multiples:
        model = make(C=multiple * np.sum(~held_out)).fit(*_part(origins, train[~held_out]))
        errors.append(100 * (1 - model.score(*_part(origins, train[held_out]))))
    return {"multiple": float(multiples[int(np.argmin(errors))]), "errors": errors}


def _spreads(errors: dict[str, list[float]]) -> dict[str, Any]:
    return {
        name: {"mean": float(np.mean(e)), "sd": float(np.std(e, ddof=1)), "folds": e}
        for name, e in errors.items()
    }


def table(results: dict[str, Any]) -> str:
    """The results as Markdown, beside the paper's."""
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in results["AT"].items())
    n, size = results["background"]
    n_run, n_folds = results["folds"]
    return "\n\n".join(
        [
            f"{results['positives']} confirmed origins, {results['negatives']} windows elsewhere, "
            f"{results['bases']} bases; {n_run} of {n_folds} folds, {results['seeds']} starts. "
            f"Background: {n} windows of {size} bases, for training only.",
            f"Mean share of A and T: {shares}. Errors of what knows no motif, in per cent:",
            markdown(["", "windows matched", "windows of any composition"], _composition(results)),
            "Windows matched; the deviation over seeds is a mean over folds; p of the paired "
            "t-test over folds, against the Gibbs sampler and against 6-mers:",
            markdown(
                [
                    *("l", "model", "error % (mean ± sd)", "sd over seeds", "rounds of CCCP"),
                    *("p, Gibbs", "p, 6-mers", "paper, other data", "consensus", "ARS share"),
                ],
                _rows(results),
            ),
            f"ARS share: mean probability of the bases that {ARS} allows, best place; all T has "
            "0.82. Motifs are those of the last fold.",
            "Errors in per cent on the quarter of the training sequences that chooses C, from one "
            "start, by C over the number of sequences, and how often that was chosen:",
            markdown(
                ["C / sequences", *(f"l = {length}" for length in results["lengths"])],
                _by_C(results),
            ),
        ]
    )


def _by_C(results: dict[str, Any]) -> list[list[str]]:
    rows = []
    for n, multiple in enumerate(results["multiples"]):
        cells = []
        for found in results["lengths"].values():
            error = np.mean([one["errors"][n] for one in found["chosen"]])
            times = sum(one["multiple"] == multiple for one in found["chosen"])
            cells.append(f"{error:.1f}, {times} times")
        rows.append([f"{multiple:g}", *cells])
    return rows


def _composition(results: dict[str, Any]) -> list[list[str]]:
    kinds = [results["composition"][kind] for kind in ("matched", "any")]
    return [
        [title, *(f"{kind[name]['mean']:.2f} ± {kind[name]['sd']:.2f}" for kind in kinds)]
        for name, title in COMPOSITION.items()
    ]


def _rows(results: dict[str, Any]) -> list[list[str]]:
    words = results["composition"]["matched"]["words"]["folds"]
    rows = []
    for length, found in results["lengths"].items():
        for name, title in NAMES.items():
            paper = PAPER.get(int(length), {}).get(name)
            motif, seeds = found["motif"].get(name), found["over seeds"].get(name)
            own, gibbs = found[name]["folds"], found["Gibbs"]["folds"]
            rounds = found["rounds"].get(name)
            rows.append(
                [
                    str(length),
                    title,
                    f"{found[name]['mean']:.2f} ± {found[name]['sd']:.2f}",
                    "" if seeds is None else f"{seeds:.2f}",
                    "" if rounds is None else f"{rounds[0]} to {rounds[1]}",
                    "" if own == gibbs else f"{ttest_rel(own, gibbs).pvalue:.2g}",
                    f"{ttest_rel(own, words).pvalue:.2g}",
                    "" if paper is None else f"{paper:.2f}",
                    "" if motif is None else f"`{motif['consensus']}`",
                    "" if motif is None else f"{motif['ARS']:.2f}",
                ]
            )
    return rows
