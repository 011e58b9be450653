from didyma.applications.parsing.drawing import draw_trees as draw_trees
from didyma.applications.parsing.parser import DependencyParser as DependencyParser
