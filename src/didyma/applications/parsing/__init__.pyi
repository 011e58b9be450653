from didyma.applications.parsing.parser import DependencyParser as DependencyParser
