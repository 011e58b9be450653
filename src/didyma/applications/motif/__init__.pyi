from didyma.applications.motif.finder import MotifFinder as MotifFinder
from didyma.applications.motif.logo import save_logo as save_logo
