from didyma.applications.alignment.drawing import heat_maps as heat_maps
from didyma.applications.alignment.esim import EntailmentClassifier as EntailmentClassifier
