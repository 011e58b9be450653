from didyma.nbest.bags import Bag as Bag
from didyma.nbest.boosting import BoostingReranker as BoostingReranker
from didyma.nbest.low_rank import LowRankReranker as LowRankReranker
from didyma.nbest.reranker import NBestReranker as NBestReranker
