from didyma.applications.passages.ranker import PassageEmbedding as PassageEmbedding
from didyma.applications.passages.ranker import PassageRanker as PassageRanker
