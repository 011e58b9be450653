from didyma.applications.clicks import log as log
from didyma.applications.clicks.model import ClickModel as ClickModel
