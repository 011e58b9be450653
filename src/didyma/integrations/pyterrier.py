"""PyTerrier: a transformer that is trained by ``fit`` and reranks results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyterrier

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.integrations.loading import GivenReranker, reranker_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["RerankTransformer"]


class RerankTransformer(pyterrier.Estimator):
    """Reranks results that have texts; scores are raw, as runs of other systems have them.

        pipeline = retriever >> pt.text.get_text(dataset) >> RerankTransformer(TextReranker())
        pipeline.fit(train_topics, train_qrels, dev_topics, dev_qrels)
        pt.Experiment([retriever, pipeline], topics, qrels, ["map"])

    Documents without a judgement count as not relevant in training.

    Parameters
    ----------
    reranker : TextReranker or path
        One that is fitted, or one to be fitted.
    text_field : str
        The column of texts.
    first_stage : bool
        Whether the scores that results come with are features too.
    """

    def __init__(
        self, reranker: GivenReranker, *, text_field: str = "text", first_stage: bool = False
    ) -> None:
        super().__init__()
        self.reranker, self.text_field = reranker_of(reranker), text_field
        self.first_stage = first_stage

    def fit(
        self,
        topics_or_res_tr: DataFrame,
        qrels_tr: DataFrame,
        topics_or_res_va: DataFrame | None = None,
        qrels_va: DataFrame | None = None,
    ) -> None:
        """Learn from results and judgements; those for validation are not needed."""
        keys = ["qid", "docno"]
        judged = topics_or_res_tr.merge(qrels_tr[[*keys, "label"]], on=keys, how="left")
        self.reranker.fit(self._lists(judged, judged["label"].fillna(0).to_numpy(float)))

    def transform(self, inp: DataFrame) -> DataFrame:
        """The same results with new scores and ranks."""
        results = inp.copy()
        results["score"] = self.reranker.predict(self._lists(inp)) if len(inp) else 0.0
        return pyterrier.model.add_ranks(results)

    def _lists(self, results: DataFrame, labels: Any = None) -> Lists:
        wanted = ["qid", "query", self.text_field, *(["score"] if self.first_stage else [])]
        if missing := [name for name in wanted if name not in results.columns]:
            raise DataError(f"expected the columns {', '.join(wanted)}, found no {missing[0]}")
        return Lists(
            results[self.text_field].astype(str).tolist(),
            labels,
            results["qid"].astype(str).to_numpy(),
            queries=results.drop_duplicates("qid")["query"].tolist(),
            scores=results["score"].to_numpy(float) if self.first_stage else None,
        )
