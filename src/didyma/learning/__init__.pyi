from didyma.learning.bcfw import BCFW as BCFW
from didyma.learning.bundle import ProximalBundle as ProximalBundle
from didyma.learning.cccp import CCCP as CCCP
from didyma.learning.cutting_plane import NSlack as NSlack
from didyma.learning.cutting_plane import OneSlack as OneSlack
from didyma.learning.perceptron import Perceptron as Perceptron
from didyma.learning.problem import Cut as Cut
from didyma.learning.problem import PythonProblem as PythonProblem
