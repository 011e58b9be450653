"""What scikit-learn asks of an estimator, kept here so that nothing of it is imported to have one.

Importing `sklearn.base` takes longer than most fits, so `Estimator` has the parameters and checks
of `sklearn.base.BaseEstimator` itself, and borrows what only scikit-learn's own tools ask for
(tags, metadata routing, the picture in a notebook) when they ask. `sklearn.base.clone`, searches
and pipelines take such an estimator as one of theirs.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, lru_cache, wraps
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.matrix import is_sparse, refuse_masked
from didyma.errors import warn
from didyma.parameters import check_parameter

__all__ = [
    "Estimator",
    "Transformer",
    "call_routed",
    "check_is_fitted",
    "check_random_state",
    "clone",
    "seed_of",
    "unchanged",
    "validate_data",
    "warn_of_convergence",
]

# Methods whose arguments, other than rows and labels, scikit-learn routes.
ROUTED = (
    *("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function"),
    *("score", "split", "transform", "inverse_transform"),
)
NOT_ROUTED = {"self", "X", "y", "Y", "Xt", "yt"}
NO_LABELS = "no_validation"  # scikit-learn's word


class _Borrowed:
    """An attribute of a class of `sklearn.base`, which is imported when it is asked for."""

    def __init__(self, owner: str = "BaseEstimator") -> None:
        self._owner = owner

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        lender = getattr(import_module("sklearn.base"), self._owner)
        return inspect.getattr_static(lender, self._name).__get__(instance, owner)


class _RequestSetter:
    """``set_fit_request`` and the like, as scikit-learn makes them of a method's arguments."""

    def __init__(self, method: str, keys: list[str]) -> None:
        self._method, self._keys = method, keys

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        from sklearn.utils._metadata_requests import RequestMethod

        return RequestMethod(self._method, self._keys).__get__(instance, owner)


class Estimator:
    """Parameters are the arguments of ``__init__``; what is learned has a name that ends in "_".

    An estimator of ours is a data class: each parameter is stated once, as a field, and a subclass
    has those of its base and its own. What is learned is a field with ``init=False``, or none.

    >>> from dataclasses import dataclass, field
    >>> @dataclass(eq=False, repr=False)
    ... class Mean(Estimator):
    ...     power: float = 1.0
    ...     mean_: float = field(init=False)
    >>> Mean(2.0), Mean().set_params(power=3.0).get_params()
    (Mean(power=2.0), {'power': 3.0})
    """

    _requires_fit: ClassVar[bool] = True
    n_features_in_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.isfunction(fit := cls.__dict__.get("fit")):
            cls.fit = _whole_or_not_at_all(fit)  # type: ignore[attr-defined]
        for method in ROUTED:
            function = getattr(cls, method, None)
            if inspect.isfunction(function) and (keys := _routed(function)):
                setattr(cls, f"set_{method}_request", _RequestSetter(method, keys))

    @classmethod
    @cache  # of each class: a search clones often
    def _parameters_of_class(cls) -> dict[str, inspect.Parameter]:
        if cls.__init__ is object.__init__:
            return {}
        (_, *parameters) = inspect.signature(cls.__init__).parameters.items()
        return dict(parameters)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._parameters_of_class())

    @classmethod
    @cache
    def _ruled_parameters(cls) -> list[str]:
        """Parameters that a class of ours declares: a subclass may mean its own by such a name."""
        ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "didyma"]
        declared = set().union(*map(inspect.get_annotations, ours))
        return [name for name in cls._get_param_names() if name in declared]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; if ``deep`` also those of parameters that are estimators."""
        params = {}
        for name in self._get_param_names():
            value = params[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name__key`` is a parameter of a parameter."""
        inner: dict[str, dict[str, Any]] = {}
        names = self._get_param_names()
        for name, value in params.items():
            outer, nested, key = name.partition("__")
            if outer not in names:
                raise ValueError(
                    f"Invalid parameter {outer!r} for estimator {self}. "
                    f"Valid parameters are: {names!r}."
                )
            if nested:
                inner.setdefault(outer, {})[key] = value
            else:
                setattr(self, name, value)
        for outer, values in inner.items():
            getattr(self, outer).set_params(**values)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be; `fit` does so before it looks at the data."""
        for name in self._ruled_parameters():
            check_parameter(name, getattr(self, name))

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, parameter in self._parameters_of_class().items()
            if not _same(getattr(self, name), parameter.default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    __sklearn_tags__ = _Borrowed()
    get_metadata_routing = _Borrowed()
    _get_metadata_request = _Borrowed()
    _get_class_level_metadata_request_values = _Borrowed()
    _get_default_requests = _Borrowed()  # which the one above replaced in 1.8
    _build_request_for_signature = _Borrowed()
    _repr_html_ = _Borrowed()
    _repr_html_inner = _Borrowed()
    _repr_mimebundle_ = _Borrowed()
    _html_repr = _Borrowed()
    _get_params_html = _Borrowed()
    _get_fitted_attr_html = _Borrowed()

    def _get_doc_link(self) -> str:
        return ""


class Transformer(Estimator):
    """An estimator that makes new columns; ``set_output`` chooses the frame that they come in."""

    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in ("transform", "fit_transform"):
            if method in cls.__dict__:
                setattr(cls, method, _in_chosen_frame(cls.__dict__[method]))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The same as `fit` and then `transform`."""
        return self.fit(X, y).transform(X)  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    get_feature_names_out = _Borrowed("OneToOneFeatureMixin")
    set_output = _Borrowed("TransformerMixin")


def clone(estimator: Any) -> Any:
    """A new estimator with copies of the parameters, which has learned nothing."""
    if not isinstance(estimator, Estimator):
        from sklearn.base import clone as sklearn_clone

        return sklearn_clone(estimator, safe=False)
    parameters = {
        name: clone(value) if hasattr(value, "get_params") else deepcopy(value)
        for name, value in estimator.get_params(deep=False).items()
    }
    copy = type(estimator)(**parameters)
    for name in ("_metadata_request", "_sklearn_output_config"):
        if name in vars(estimator):
            setattr(copy, name, deepcopy(vars(estimator)[name]))
    return copy


def call_routed(estimator: Any, method: str, *rows: Any, qid: Any) -> Any:
    """Call a method of scikit-learn's, telling it the query of each row if a step asks for it."""
    from sklearn import config_context

    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        # Columns have been matched by name already.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        wants_qid = estimator.get_metadata_routing().consumes(method, ["qid"])
        return getattr(estimator, method)(*rows, **({"qid": qid} if wants_qid else {}))


def check_is_fitted(estimator: Any, attribute: str | None = None) -> None:
    """Raise scikit-learn's NotFittedError if the attribute, or any, has not been learned."""
    learned = (
        (name for name in vars(estimator) if name.endswith("_") and name[:2] != "__")
        if attribute is None
        else (name for name in [attribute] if hasattr(estimator, name))
    )
    if getattr(estimator, "_requires_fit", True) and not any(learned):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with "
            "appropriate arguments before using this estimator."
        )


def check_random_state(random_state: Any) -> np.random.RandomState:
    """The generator of a seed, or the one that is given; None is NumPy's own."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if random_state is None or random_state is np.random:
        generator: np.random.RandomState = np.random.mtrand._rand
        return generator
    return np.random.RandomState(random_state)


def seed_of(random_state: Any) -> int:
    """A seed for NumPy's newer generators."""
    if type(random_state) is int:
        return _seed_of_whole(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


@lru_cache(maxsize=16)
def _seed_of_whole(number: int) -> int:
    return int(check_random_state(number).randint(2**31 - 1))


def warn_of_convergence(message: str) -> None:
    """Warn, as scikit-learn does, that training ended before it was done."""
    from sklearn.exceptions import ConvergenceWarning

    warn(message, ConvergenceWarning)


def validate_data(
    estimator: Any,
    X: Any,
    y: Any = NO_LABELS,
    *,
    reset: bool,
    finite: bool | str = True,
    sparse: bool = False,
    named: bool = True,
) -> Any:
    """Rows in single or double precision, with their labels if there are any.

    ``reset`` sets ``n_features_in_`` and ``feature_names_in_``, otherwise rows must agree with
    them; those that are not ``named`` have been compared already. ``finite`` is as
    ``ensure_all_finite`` in scikit-learn. Lists, arrays and CSR of finite numbers are read here;
    whatever else there is, data frames and all that is wrong, scikit-learn reads or refuses.
    """
    rows, labels = _read_rows(X, finite, sparse), _read_labels(y)
    agree = rows is not None and (
        not named or reset or getattr(estimator, "n_features_in_", None) in (None, rows.shape[1])
    )
    if rows is None or labels is None or not agree or not _as_long(rows, labels):
        return _validate_by_sklearn(estimator, X, y, reset, finite, sparse, named)
    if named and reset:
        estimator.n_features_in_ = rows.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    elif named and hasattr(estimator, "feature_names_in_"):
        warnings.warn(
            f"X does not have valid feature names, but {type(estimator).__name__} was fitted with "
            "feature names",
            stacklevel=2,
        )
    return rows if isinstance(labels, str) else (rows, labels)


def _validate_by_sklearn(
    estimator: Any, X: Any, y: Any, reset: bool, finite: bool | str, sparse: bool, named: bool
) -> Any:
    from sklearn.utils import validation

    refuse_masked(X, "X")
    refuse_masked(y, "y")
    form: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": finite}
    if sparse:
        form |= {"accept_sparse": "csr", "order": "C"}
    judged = not (isinstance(y, str) and y == NO_LABELS)
    if judged:
        form |= {"y_numeric": True}
    if named:
        return validation.validate_data(
            estimator, X, **({"y": y} if judged else {}), reset=reset, **form
        )
    if judged:
        return validation.check_X_y(X, y, estimator=estimator, **form)
    return validation.check_array(X, estimator=estimator, input_name="X", **form)


def _read_rows(X: Any, finite: bool | str, sparse: bool) -> Any:
    """Rows, or None if there is anything unusual about them."""
    if sparse and is_sparse(X):
        ordinary = X.format == "csr" and X.dtype in (np.float64, np.float32) and 0 not in X.shape
        return X if ordinary and all_finite(X.data, finite) else None
    rows = _as_array(X)
    if rows is None or rows.ndim != 2 or 0 in rows.shape:
        return None
    dtype = rows.dtype if rows.dtype in (np.float64, np.float32) else np.float64
    rows = np.asarray(rows, dtype=dtype, order="C" if sparse else None)
    return rows if all_finite(rows, finite) else None


def _read_labels(y: Any) -> Any:
    """Labels, or None if there is anything unusual about them."""
    if isinstance(y, str) and y == NO_LABELS:
        return y
    labels = _as_array(y)
    return labels if labels is not None and labels.ndim == 1 and all_finite(labels) else None


def _as_array(values: Any) -> NDArray[Any] | None:
    if type(values) in (list, tuple):
        try:
            values = np.asarray(values)
        except (TypeError, ValueError):
            return None
    return values if type(values) is np.ndarray and values.dtype.kind in "biuf" else None


def _as_long(rows: Any, labels: Any) -> bool:
    return isinstance(labels, str) or len(labels) == rows.shape[0]


def all_finite(values: NDArray[Any], finite: bool | str = True) -> bool:
    """Whether that is certain without a second array."""
    if not finite or values.dtype.kind != "f" or not values.size:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        if finite == "allow-nan":
            extremes = (np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None))
            return not np.isinf(extremes).any()
        return bool(np.isfinite(np.sum(values, dtype=np.float64)))


@contextmanager
def unchanged(estimator: Any) -> Iterator[None]:
    """A block in which an estimator may learn; behind it, it is as it was."""
    before = vars(estimator).copy()
    try:
        yield
    finally:
        _put_back(estimator, before)


def _whole_or_not_at_all(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which leaves the estimator as it was unless it comes to its end."""

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            _put_back(self, before)
            raise

    return whole


def _put_back(estimator: Any, before: dict[str, Any]) -> None:
    vars(estimator).clear()
    vars(estimator).update(before)


def _routed(function: Callable[..., Any]) -> list[str]:
    """The arguments of a method that scikit-learn routes."""
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    parameters = inspect.signature(function).parameters.items()
    return sorted(
        name
        for name, parameter in parameters
        if name not in NOT_ROUTED and parameter.kind not in variadic
    )


def _in_chosen_frame(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with columns in the frame that ``set_output`` or a configuration asks for.

    Neither has asked for one while scikit-learn has not been imported.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        columns = method(self, X, *args, **kwargs)
        if "sklearn.utils._set_output" not in sys.modules:
            return columns
        from sklearn.utils._set_output import _wrap_data_with_container

        return _wrap_data_with_container("transform", columns, X, self)

    return wrapped


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and repr(value) == repr(default))
