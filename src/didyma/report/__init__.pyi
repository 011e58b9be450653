from didyma.report import figures as figures
from didyma.report.functions import draw_functions as draw_functions
from didyma.report.functions import terms as terms
from didyma.report.functions import write_functions as write_functions
