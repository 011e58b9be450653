from didyma.polytope.distributions import Distribution as Distribution
from didyma.polytope.distributions import Distributions as Distributions
