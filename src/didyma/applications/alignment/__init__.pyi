from didyma.applications.alignment.esim import EntailmentClassifier as EntailmentClassifier
from didyma.applications.alignment.heat_maps import heat_maps as heat_maps
