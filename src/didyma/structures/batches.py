"""Checks of user input and its flat form: scores, lengths, outputs, additional scores."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma._core.polytope import forbid
from didyma.errors import DataError
from didyma.structures.layout import Additional, Floats, Layout, Lengths, Parts
from didyma.values import aligned, as_array, is_whole, shown

LARGEST = 1e300  # sums of larger scores would overflow
CACHED_SHAPES = 256  # of batches, whose constants are kept
EVERYTHING = np.zeros(0, np.bool_)  # flags of `forbid` that leave nothing out


def impossible(b: int) -> DataError:
    """The error for an instance whose outputs all contain a forbidden part."""
    return DataError(
        f"instance {b}: every output contains a part with score -inf; at least one output must be "
        "possible",
        field="scores",
    )


def lay_out(
    structure: Any,
    scores: ArrayLike,
    lengths: Lengths,
    additional: Mapping[str, Any],
) -> Layout:
    """The layout of a structure of one's own, with the additional scores and data it declares."""
    additional = dict(additional)
    if lengths is not None:
        if "lengths" not in structure.data:
            raise DataError(
                f"{type(structure).__name__} takes no lengths: give instances of different sizes "
                "to separate calls, or name lengths in its attribute `data`",
                field="lengths",
            )
        single = np.ndim(scores) == structure.ndim
        additional["lengths"] = np.ravel(lengths)[0] if single else np.asarray(lengths)
    batch = check_scores(as_batch(scores, structure.ndim), "scores")
    values = {name: additional.pop(name, None) for name in structure.data}
    data, keys = _as_data(values, np.ndim(scores) == structure.ndim, len(batch))
    flat = flatten(batch)
    shapes = declared(structure, batch.shape[1:], additional)
    extra, places = lay_out_additional(
        len(batch), {name: (additional.get(name), shape) for name, shape in shapes.items()}
    )
    return Layout(
        flat,
        batch.shape[1:],
        flat.shape[1],
        extra,
        places,
        extra.shape[1],
        dims=np.array(batch.shape[1:], np.int64),
        sizes=keys,
        n_index=flat.shape[1] + extra.shape[1],
        data=data,
    )


def _as_data(
    data: Mapping[str, Any], single: bool, batch: int
) -> tuple[dict[int, dict[str, Any]], NDArray[np.int64]]:
    """What instances have beside scores, by a number, and the numbers of all of them, (B, 1)."""
    named = {}
    for name, values in data.items():
        if values is None:
            continue
        values = [values] if single else values
        if not hasattr(values, "__len__") or len(values) != batch:
            raise DataError(
                f"expected one for each of {batch} instances, found {shown(values)}", field=name
            )
        named[name] = values
    if not named:
        return {}, np.zeros((batch, 0), np.int64)
    instances = [{name: values[b] for name, values in named.items()} for b in range(batch)]
    keys = [data_key(one) for one in instances]
    return dict(zip(keys, instances)), np.array(keys, np.int64).reshape(batch, 1)


def data_key(data: Mapping[str, Any]) -> int:
    """A number for what an instance has: the same only where its content is the same."""
    try:
        content = pickle.dumps(data, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):  # functions, open solvers
        content = repr([id(value) for value in data.values()]).encode()
    return int.from_bytes(blake2b(content, digest_size=7).digest(), "little")


def declared(
    structure: Any, shape: tuple[int, ...], additional: Mapping[str, Any]
) -> Mapping[str, tuple[int, ...]]:
    """Shapes of the additional scores that a structure declares; any other name is refused."""
    shapes: Mapping[str, tuple[int, ...]] = structure.additional(shape)
    for name in additional:
        if name not in shapes:
            raise DataError(
                f"{type(structure).__name__} has no such scores: its method `additional` declares "
                f"{', '.join(shapes) or 'none'}"
                + (f", its attribute `data` {', '.join(structure.data)}" if structure.data else ""),
                field=name,
            )
    return shapes


def as_batch(scores: ArrayLike, ndim: int) -> Floats:
    """Scores as float64 with a batch axis; `check_scores` is to follow."""
    batch = np.asarray(scores, dtype=np.float64)
    if batch.ndim == ndim:
        batch = batch[None]
    if batch.ndim != ndim + 1:
        raise DataError(
            f"expected {ndim} axes, or {ndim + 1} with a batch axis first, found an array of shape "
            f"{np.shape(scores)}",
            field="scores",
        )
    return aligned(batch)


def flatten(batch: NDArray[Any]) -> NDArray[Any]:
    """All axes but the first made one, also of an empty batch."""
    return batch.reshape(len(batch), prod(batch.shape[1:]))


def check_scores(array: Floats, name: str, used: NDArray[np.bool_] | None = None) -> Floats:
    """The scores, −∞ where they are not used; NaN and +inf are refused, naming the first place.

    Scores below −1e300 forbid a part as −∞ does, since sums of them would overflow.
    """
    array = aligned(array)
    if used is None:
        used = EVERYTHING
    elif used.shape[1:] != array.shape[1:]:
        used = np.broadcast_to(used, array.shape)
    changed, wrong = forbid(array.reshape(-1), np.ascontiguousarray(used).reshape(-1), LARGEST)
    if wrong >= 0:
        place = [int(i) for i in np.unravel_index(wrong, array.shape)]
        raise DataError(
            f"expected numbers up to {LARGEST:g} (-inf forbids a part), found "
            f"{array.flat[wrong]} at index {place}",
            field=name,
        )
    return changed.reshape(array.shape) if changed.size else array


def as_lengths(lengths: Lengths, batch: int, longest: int) -> NDArray[np.int64]:
    """One length per instance, between 0 and the padded one."""
    if lengths is None:
        return _equal_lengths(batch, longest)
    values = np.atleast_1d(as_array(lengths))
    if values.shape != (batch,) or not np.issubdtype(values.dtype, np.integer):
        raise DataError(
            f"expected {batch} integers, one per instance, found {values.dtype} of shape "
            f"{values.shape}",
            field="lengths",
        )
    wrong = np.flatnonzero((values < 0) | (values > longest))
    if len(wrong):
        raise DataError(
            f"expected 0 to {longest} (the padded size), found {values[wrong[0]]} for instance "
            f"{wrong[0]}",
            field="lengths",
        )
    return values.astype(np.int64)


@lru_cache(maxsize=CACHED_SHAPES)
def _equal_lengths(batch: int, longest: int) -> NDArray[np.int64]:
    lengths = np.full(batch, longest, np.int64)
    lengths.flags.writeable = False
    return lengths


def as_outputs(outputs: ArrayLike, shape: tuple[int, ...], layout: Layout) -> Parts:
    """One output of this shape per instance, as integers with a batch axis."""
    values = as_array(outputs)
    if values.shape == shape:
        values = values[None]
    if values.shape != (len(layout), *shape) or not np.issubdtype(values.dtype, np.integer):
        raise DataError(
            f"expected integers of shape {(len(layout), *shape)}, found {values.dtype} of shape "
            f"{values.shape}",
            field="outputs",
        )
    return values.astype(np.int32)


def as_flags(outputs: ArrayLike, used: NDArray[np.bool_], layout: Layout) -> NDArray[np.bool_]:
    """One boolean (or 0/1) output per instance, False where it is not used (padding)."""
    values = np.asarray(outputs)
    if values.shape == layout.shape:
        values = values[None]
    shape = (len(layout), *layout.shape)
    if values.shape != shape or values.dtype.kind not in "biu":
        raise DataError(
            f"expected booleans of shape {shape}, found {values.dtype} of shape {values.shape}",
            field="outputs",
        )
    wrong = np.argwhere(used & (values != 0) & (values != 1))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise DataError(
            f"expected 0 or 1, found {values[place]} at index {list(place)}", field="outputs"
        )
    return used & (values == 1)


def indicators(parts: Parts, layout: Layout) -> NDArray[np.bool_]:
    """0/1 arrays in the shape of the scores, one for each row of part indices."""
    outputs = np.zeros((len(parts), layout.scores.shape[1]), dtype=bool)
    rows, columns = np.nonzero(parts >= 0)
    outputs[rows, parts[rows, columns]] = True
    return outputs.reshape(len(parts), *layout.shape)


def column_of_row(parts: Parts, rows: int, columns: int) -> NDArray[np.int64]:
    """The column that each row has a part in, of scores (rows, columns); −1 where it has none."""
    column_of = np.full((len(parts), rows), -1, np.int64)
    output, place = np.nonzero(parts >= 0)
    row, column = np.divmod(parts[output, place], columns)
    column_of[output, row] = column
    return column_of


def one_hot(labels: Parts, n_labels: int, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which part each label is, flat (B, …), where it is used."""
    return flatten(used[..., None] & (labels[..., None] == np.arange(n_labels)))


def pack(flags: NDArray[np.bool_], layout: Layout) -> Parts:
    """Flat indices of the true entries of each instance, ascending, padded with −1."""
    flat = flatten(flags)
    parts = np.full((len(layout), layout.n_parts), -1, np.int32)
    instance, part = np.nonzero(flat)
    parts[instance, (np.cumsum(flat, axis=1) - 1)[instance, part]] = part
    return parts


def check_range(
    outputs: Parts, low: int, high: int | NDArray[np.int64], used: NDArray[np.bool_], what: str
) -> None:
    """Refuse outputs below ``low`` or from ``high`` on, where they are used."""
    wrong = np.argwhere(used & ((outputs < low) | (outputs >= high)))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        limit = int(np.broadcast_to(high, outputs.shape)[place])
        article = "an" if what[0] in "aeiou" else "a"
        raise DataError(
            f"expected {article} {what} from {low} to {limit - 1}, found {outputs[place]} at index "
            f"{list(place)}",
            field="outputs",
        )


def lay_out_additional(
    batch: int,
    scores: Mapping[str, tuple[ArrayLike | None, tuple[int, ...]]],
    used: Mapping[str, NDArray[np.bool_]] | None = None,
) -> tuple[Floats, dict[str, Additional]]:
    """Additional scores side by side, as (1, f) if the whole batch shares them, else (batch, f).

    ``scores`` has, per name, the array or None (zero scores) and the shape of one instance;
    ``used`` which of them some instance of the batch (or each one, along a first axis) uses.
    """
    named: dict[str, Additional] = {}
    blocks = []
    start = 0
    for name, (array, shape) in scores.items():
        stop = start + prod(shape)
        if array is None:
            start = stop
            continue
        values = np.asarray(array, dtype=np.float64)
        if values.shape not in (shape, (batch, *shape)):
            raise DataError(
                f"expected shape {shape}, or {(batch, *shape)} for one per instance, found "
                f"{values.shape}",
                field=name,
            )
        shared = values.shape == shape
        reads = used.get(name) if used else None
        if reads is not None and shared:
            reads = np.asarray(reads.any(axis=0))
        values = check_scores(values, name, reads)
        named[name] = Additional(start, stop, shape, shared)
        blocks.append(values.reshape(1 if shared else batch, stop - start))
        start = stop
    extra = np.zeros((max((len(block) for block in blocks), default=1), start))
    for place, block in zip(named.values(), blocks):
        extra[:, place.start : place.stop] = block
    return extra, named


def check_whole(number: object, least: int, field: str) -> None:
    """Refuse what is no whole number, or below the least."""
    if not is_whole(number) or number < least:
        raise DataError(f"expected a whole number from {least} up, found {number!r}", field=field)


def check_positive(number: float, field: str) -> float:
    """The number as a float, which must be positive and finite."""
    if not 0.0 < float(number) < inf:
        raise DataError(f"expected a positive number, found {number}", field=field)
    return float(number)


def check_one_each(shape: tuple[int, ...], n: int, what: str) -> None:
    """Refuse scores of another shape than (n,)."""
    if shape != (n,):
        raise DataError(
            f"expected {n} scores, one for each {what}, found shape {shape}", field="scores"
        )
