"""Measures as scorers of scikit-learn's searches."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.metrics import make_scorer

from didyma.metrics import evaluate, parse


def scorer(measure: str = "AP") -> Any:
    """A scorer for grid search and cross-validation: the mean of a measure over the queries.

    It asks metadata routing for ``qid``, and for ``docid``, which breaks ties, where that is given.
    Its value is that of `didyma.evaluate` on the same rows.

    >>> from sklearn.model_selection import GridSearchCV
    >>> from didyma import SVMRanker
    >>> search = GridSearchCV(SVMRanker(), {"C": [1, 10]}, scoring=scorer("nDCG@10"))
    """
    judge = partial(_mean, str(parse(measure)))
    with config_context(enable_metadata_routing=True):
        return make_scorer(judge).set_score_request(qid=True, docid=True)


def _mean(
    measure: str,
    y: ArrayLike,
    scores: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    docid: ArrayLike | None = None,
) -> float:
    return evaluate(scores, y, measures=measure, qid=qid, docid=docid).mean(measure)
