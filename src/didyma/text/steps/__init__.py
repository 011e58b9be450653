"""Steps after ranking: diversity, recency and boosts, each of which says what it did."""

from didyma.text.steps.diversity import Diversity
from didyma.text.steps.factors import Boost, Recency
from didyma.text.steps.step import Step, take_steps

__all__ = ["Boost", "Diversity", "Recency", "Step", "take_steps"]
