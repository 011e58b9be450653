"""Measures as values, evaluation with one tie rule, and paired significance tests."""

from didyma.metrics.evaluation import Evaluation, Evaluator, evaluate, expected
from didyma.metrics.measures import ROCArea, parse, parse_all
from didyma.metrics.runs import RunEvaluator, evaluate_run
from didyma.metrics.significance import (
    Comparison,
    compare,
    randomisation,
    t_test,
    wilcoxon,
    wins_losses,
)

__all__ = [
    "Comparison",
    "Evaluation",
    "Evaluator",
    "ROCArea",
    "RunEvaluator",
    "compare",
    "evaluate",
    "evaluate_run",
    "expected",
    "parse",
    "parse_all",
    "randomisation",
    "t_test",
    "wilcoxon",
    "wins_losses",
]
