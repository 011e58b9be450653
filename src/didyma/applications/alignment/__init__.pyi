from didyma.applications.alignment.drawing import heat_maps as heat_maps
from didyma.applications.alignment.esim import EntailmentClassifier as EntailmentClassifier
from didyma.applications.alignment.reader import labelled as labelled
from didyma.applications.alignment.reader import read as read
