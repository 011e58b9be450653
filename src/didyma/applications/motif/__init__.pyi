from didyma.applications.motif import fasta as fasta
from didyma.applications.motif import meme as meme
from didyma.applications.motif.finder import MotifFinder as MotifFinder
from didyma.applications.motif.meme import save_logo as save_logo
