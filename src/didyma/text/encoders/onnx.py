"""Encoders in files of ONNX, beside the tokeniser that they were made with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError, MissingExtraError, MissingPackageError, check_choice
from didyma.files import PathName
from didyma.text.encoders.encoder import PrefixedEncoder, Prefixes, Side, prefixes_of

TOKENISER = "tokenizer.json"
POOLING = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean"}


class ONNXEncoder(PrefixedEncoder):
    """A transformer as an ONNX file, as model hubs have them.

    ``tokenizer.json`` stands beside it or one folder above, and so do, if they are there,
    ``1_Pooling/config.json`` and ``config_sentence_transformers.json``, which say how the vectors
    of a text's pieces become one, and what stands before queries and documents.

    Parameters
    ----------
    path : path
        The file. Its inputs are among input_ids, attention_mask and token_type_ids; its first
        output has a vector for each text, or for each piece of each text.
    pooling : {"mean", "first"}, optional
        How the vectors of pieces become one.
    query_prefix, document_prefix : str, optional
        What stands before each text.
    max_length : int
        Pieces of a text that are read.
    """

    def __init__(
        self,
        path: PathName,
        *,
        pooling: str | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        max_length: int = 512,
    ) -> None:
        self.path = Path(path)
        self.name = str(path)
        if not self.path.is_file():
            raise DataError("expected a file of ONNX", path=path, field="encoder")
        folders = [self.path.parent, self.path.absolute().parent.parent]
        pooled = _settings(folders, Path("1_Pooling", "config.json"))
        usual_pooling = next((mode for key, mode in POOLING.items() if pooled.get(key)), "mean")
        self.pooling = usual_pooling if pooling is None else pooling
        check_choice(self.pooling, ("mean", "first"), "pooling")
        prompts = _settings(folders, Path("config_sentence_transformers.json")).get("prompts") or {}
        usual = prefixes_of(self.path.absolute().parent.as_posix())
        if any(prompts.values()):
            document = prompts.get("document", prompts.get("passage", ""))
            usual = Prefixes(prompts.get("query", ""), document)
        self._use_prefixes(usual, query_prefix, document_prefix)
        self.max_length = max_length
        self._open(folders)

    def _open(self, folders: list[Path]) -> None:
        try:
            from onnxruntime import InferenceSession
        except ImportError:
            raise MissingExtraError(f"encoder={self.name!r}", "onnx") from None
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingPackageError(f"encoder={self.name!r}", "tokenizers") from None
        tokeniser = next((at / TOKENISER for at in folders if (at / TOKENISER).is_file()), None)
        if tokeniser is None:
            problem = f"expected a file {TOKENISER} beside it, or one folder above"
            raise DataError(problem, path=self.path, field="encoder")
        try:
            self._tokenizer = Tokenizer.from_file(str(tokeniser))
        except Exception as error:  # of no class that could be named
            raise DataError(f"is damaged ({error})", path=tokeniser) from None
        self._tokenizer.enable_truncation(max_length=self.max_length)
        self._tokenizer.enable_padding()
        try:
            self._session = InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        except Exception as error:  # the same
            raise DataError(f"is damaged ({error!s:.200})", path=self.path) from None
        self._inputs = [one.name for one in self._session.get_inputs()]
        if unknown := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
            problem = (
                f"expected inputs input_ids, attention_mask and token_type_ids, found {unknown}"
            )
            raise DataError(problem, path=self.path, field="encoder")

    def _encode(self, texts: list[str], side: Side) -> NDArray[np.float32]:
        pieces = self._tokenizer.encode_batch(self._prefixed(texts, side))
        mask = np.array([one.attention_mask for one in pieces], np.int64)
        named = {
            "input_ids": np.array([one.ids for one in pieces], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([one.type_ids for one in pieces], np.int64),
        }
        outputs = self._session.run(None, {name: named[name] for name in self._inputs})
        # Of several, such as the hidden states and what the model itself makes of them, the first.
        vectors: NDArray[np.float32] = np.asarray(outputs[0], np.float32)
        if vectors.ndim != 3:
            return vectors
        if self.pooling == "first":
            return vectors[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return (vectors * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in vars(self).items() if n not in ("_session", "_tokenizer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open([self.path.parent, self.path.absolute().parent.parent])


def _settings(folders: list[Path], name: Path) -> dict[str, Any]:
    """What a file of settings says, in the first folder that has it."""
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        return {}
    try:
        settings = json.loads(path.read_bytes())
        if isinstance(settings, dict):
            return settings
    except (ValueError, RecursionError):
        pass
    raise DataError("is damaged: expected an object of JSON", path=path)
