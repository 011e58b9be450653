from didyma.nn.distributions import StructureDistribution as StructureDistribution
from didyma.nn.layers import SparseMAP as SparseMAP
from didyma.nn.layers import sparsemap as sparsemap
from didyma.nn.local import LocalSparseMAP as LocalSparseMAP
from didyma.nn.losses import FenchelYoungLoss as FenchelYoungLoss
from didyma.nn.ranking_loss import RankingLoss as RankingLoss
