from didyma.text.retrieval.function import FunctionEngine as FunctionEngine
from didyma.text.retrieval.open_search import OpenSearchEngine as OpenSearchEngine
from didyma.text.retrieval.postgres import PostgresEngine as PostgresEngine
from didyma.text.retrieval.resolution import resolve as resolve
from didyma.text.retrieval.search_engine import Retrieved as Retrieved
from didyma.text.retrieval.search_engine import SearchEngine as SearchEngine
from didyma.text.retrieval.sqlite import SQLiteEngine as SQLiteEngine
from didyma.text.retrieval.tantivy import TantivyEngine as TantivyEngine
