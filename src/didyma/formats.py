"""The former name of `didyma.data`, and of readers that have gone to their subjects."""

from didyma.lazy import moved

_DATA = (
    *("blocks", "conll", "format_of", "letor", "lists_folder", "numpy_file", "read", "table"),
    *("texts", "trec", "write", "write_blocks"),
)
__getattr__ = moved(
    __name__,
    {
        **{name: f"didyma.data.{name}" for name in _DATA},
        "click_log": "didyma.applications.clicks.log",
        "coreference": "didyma.applications.coreference",
        "fasta": "didyma.applications.motif.fasta",
        "meme": "didyma.applications.motif.meme",
        "nbest": "didyma.nbest",
        "nli": "didyma.applications.alignment",
        "qa": "didyma.data.texts.qa",
        "vectors": "didyma.data.word_vectors",
    },
)
