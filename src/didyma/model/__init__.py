"""Model files: one safetensors file with the learned arrays and, in its header, what they mean.

What a class saves stands in its annotations, and nowhere else:

    coef_: Annotated[NDArray[np.float64], Saved("n_features")]

`fields` reads them, `codec` turns objects into records and arrays and back by them, `registry` has
the classes that a file may name, `container` is the file itself. A `Model` is what a file holds, as
plain values, and ranks as the estimator does that it is of.

The header's metadata are texts: ``format`` ("didyma"), ``format_version``, ``library_version``,
``model``, ``summary`` and ``version`` (JSON) and ``checksum`` (SHA-256 over all of these and the
arrays). The version has date, data and parent (`ModelVersion`); the model is a record

    {"class": "SVMRanker", "parameters": {…}, "lost": {}, "attributes": {…}, "parts": {},
     "arrays": {}, "n_features": 46, "feature_names": ["bm25", …] or null,
     "zero_based": true, false or null}

with "categories", where columns hold texts: for each column the texts, by their codes, or null;
or, for a scikit-learn pipeline, ``{"class": "Pipeline", "steps": [[name, record], …]}``; what is no
estimator (`Serialisable`) has its fields under "state". The array ``coef_`` of a model is the
tensor "coef_", that of a pipeline's second step "1/coef_". An attribute that is a model itself
stands under "parts" as a record of its own, its arrays as "name/coef_"; one that is a dictionary of
arrays has its keys under "arrays", and the tensors "name/key". Parameters that have no text, such
as a loss of one's own, are "lost": the file says what they were, `save` warns, and the restored
model predicts as before but refuses to be fitted until they are set.

Reading runs no code of the file: classes come from the registry, or are import paths that whoever
reads it trusts by name (`load`), parameters are plain values or the texts that users type. What is
missing, unknown, of another type or of a size that does not fit the others is refused before
anything is built.
"""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
