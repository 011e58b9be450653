from didyma.structured.learners import LatentStructuredPerceptron as LatentStructuredPerceptron
from didyma.structured.learners import LatentStructuredSVM as LatentStructuredSVM
from didyma.structured.learners import StructuredPerceptron as StructuredPerceptron
from didyma.structured.learners import StructuredSVM as StructuredSVM
from didyma.structured.structure_task import StructureTask as StructureTask
from didyma.structured.task import Task as Task
from didyma.structured.task import TaskProblem as TaskProblem
