"""PyTerrier: a transformer that is trained by ``fit`` and reranks results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyterrier

from didyma.data.lists import Lists
from didyma.data.passage import TEXT
from didyma.data.schema import Schema
from didyma.errors import DataError
from didyma.integrations.retrieved import GivenReranker, reranker_of

if TYPE_CHECKING:
    from pandas import DataFrame


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
    fields, signals : sequence of str
        Other columns to learn from, texts and signals; one that is fitted knows its own.
    """

    def __init__(
        self,
        reranker: GivenReranker,
        *,
        text_field: str = "text",
        first_stage: bool = False,
        fields: Sequence[str] = (),
        signals: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.reranker, self.text_field = reranker_of(reranker), text_field
        self.first_stage, self.fields, self.signals = first_stage, fields, signals

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
        schema = None
        if self.fields or self.signals:
            records = self._records(judged, (*self.fields, *self.signals))
            schema = Schema.infer(records, fields=self.fields, signals=self.signals)
        labels = judged["label"].fillna(0).to_numpy(float)
        self.reranker.fit(self._lists(judged, schema, self.first_stage, labels))

    def transform(self, inp: DataFrame) -> DataFrame:
        """The same results with new scores and ranks."""
        results = inp.copy()
        is_fitted = hasattr(self.reranker, "model_")
        schema = self.reranker.schema_ if is_fitted else None
        uses_scores = self.first_stage or (is_fitted and self.reranker.uses_scores)
        lists = self._lists(inp, schema, uses_scores)
        results["score"] = self.reranker.predict(lists) if len(inp) else 0.0
        return pyterrier.model.add_ranks(results)

    def _lists(
        self, results: DataFrame, schema: Schema | None, uses_scores: bool, labels: Any = None
    ) -> Lists:
        wanted = ["qid", "query", self.text_field, *(["score"] if uses_scores else [])]
        if missing := [name for name in wanted if name not in results.columns]:
            raise DataError(f"expected the columns {', '.join(wanted)}, found no {missing[0]}")
        texts, attributes = results[self.text_field].astype(str).tolist(), None
        if schema is not None and schema.has_attributes:
            names = [field.name for field in schema.fields if field.name in results.columns]
            texts, attributes, _ = schema.read(self._records(results, names))
        return Lists(
            texts,
            labels,
            results["qid"].astype(str).to_numpy(),
            queries=results.drop_duplicates("qid")["query"].tolist(),
            scores=results["score"].to_numpy(float) if uses_scores else None,
            attributes=attributes,
        )

    def _records(self, results: DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
        """Rows as documents with these fields."""
        if missing := [name for name in names if name not in results.columns]:
            raise DataError("expected such a column, found none", field=missing[0])
        others = results[[name for name in names if name != self.text_field]].to_dict("records")
        texts = results[self.text_field].astype(str)
        return [{**other, TEXT: text} for other, text in zip(others, texts)]
