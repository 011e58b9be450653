from didyma.applications.clicks.model import ClickModel as ClickModel
