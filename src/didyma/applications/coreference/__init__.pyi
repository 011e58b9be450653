from didyma.applications.coreference.reader import find as find
from didyma.applications.coreference.reader import read as read
from didyma.applications.coreference.reader import write as write
from didyma.applications.coreference.resolver import CoreferenceResolver as CoreferenceResolver
