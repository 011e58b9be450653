"""Groups of options, which commands take as one argument.

A group is a dataclass whose fields are annotated as Typer's options are; a class variable ``PANEL``
names the panel of the help for those that name none. Or it is `ParametersOf` a class: then the
options are made from its constructor's signature and docstring.

>>> @dataclass(frozen=True)
... class Columns:
...     label: Annotated[str, typer.Option(help="Relevance.")] = "label"
>>> @command
... def show(columns: Columns) -> None:
...     print(columns)
>>> show(label="rating")
Columns(label='rating')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.models import OptionInfo

from didyma.cli.signature import FLAGS, Parameter, parameters_of
from didyma.values import GREATEST_SEED

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Option:
    """What a signature and a docstring do not tell of a parameter's option.

    An option that ``sets`` a value is a flag, without one of its own. ``sentences`` of the
    docstring are its help, unless ``help`` is given.
    """

    name: str
    flags: tuple[str, ...] = ()
    help: str = ""
    default: str | bool | None = None
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    sets: Any = EMPTY
    sentences: int = 1


SEED = Option("random_state", help="Equal seeds give equal results.", min=0, max=GREATEST_SEED)


def flag_of(name: str) -> str:
    """The option of a parameter.

    >>> flag_of("max_iter"), flag_of("random_state")
    ('--max-iter', '--seed')
    """
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


class ParametersOf:
    """Options for parameters of a class, in panels of the help; their value is a dict of them.

    Of several classes, each with a label, an option is for those that have the parameter. The dict
    then has only what was given, and `read` makes parameters of one of the classes from it.
    """

    def __init__(
        self,
        classes: str | Mapping[str, str],
        panels: Mapping[str | None, Sequence[str | Option]],
        prefix: str = "",
    ) -> None:
        self.single = isinstance(classes, str)
        self.classes: Mapping[str, str] = {"": classes} if isinstance(classes, str) else classes
        self.prefix = prefix
        self.options: dict[str, tuple[Option, str | None]] = {}
        for panel, names in panels.items():
            for each in names:
                option = Option(each) if isinstance(each, str) else each
                self.options[option.name] = option, panel

    def takers(self, name: str) -> dict[str, Parameter]:
        """The parameter of this name, by the labels of the classes that have one."""
        described = {label: parameters_of(path) for label, path in self.classes.items()}
        return {
            label: parameters[name] for label, parameters in described.items() if name in parameters
        }

    def members(self) -> list[inspect.Parameter]:
        """The options, as parameters of a function of Typer's."""
        return [self._member(option, panel) for option, panel in self.options.values()]

    def value(self, values: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the class, or what was given for one of several."""
        if self.single:
            return self.read("", values)
        return {name: value for name, value in values.items() if value is not None}

    def read(self, label: str, values: dict[str, Any]) -> dict[str, Any]:
        """Parameters of one class, from the values of its options."""
        parameters = {}
        for name, value in values.items():
            (option, _), parameter = self.options[name], self.takers(name)[label]
            if option.sets is EMPTY:
                parameters[name] = _read(parameter, value, self._flags(option)[0])
            else:
                parameters[name] = option.sets if value else parameter.default
        return parameters

    def _flags(self, option: Option) -> tuple[str, ...]:
        return option.flags or (flag_of(f"{self.prefix}{option.name}"),)

    def _member(self, option: Option, panel: str | None) -> inspect.Parameter:
        parameter, *_ = self.takers(option.name).values()
        kind, metavar = _type(parameter)
        default, shown = parameter.default, option.default
        least, greatest = parameter.bounds
        if option.sets is not EMPTY:
            kind, metavar, default = bool, None, False
        elif not self.single:
            shown = self._defaults(option.name) if shown is None else shown
            kind, default = kind | None, None
        elif default is None:
            kind = kind | None
        info = typer.Option(
            *self._flags(option),
            help=(option.help or parameter.sentences(option.sentences)).replace("[", "\\["),
            show_default=True if shown is None else shown,
            metavar=option.metavar or metavar,
            min=least if option.min is None else option.min,
            max=greatest if option.max is None else option.max,
            rich_help_panel=panel,
        )
        return _parameter(option.name, Annotated[kind, info], default)

    def _defaults(self, name: str) -> str | None:
        """What is taken if nothing is given: of the first class, and of others that differ."""
        defaults = {label: parameter.default for label, parameter in self.takers(name).items()}
        first, *_ = defaults.values()
        others = [f"{value} for {label}" for label, value in defaults.items() if value != first]
        return None if first in (None, ()) else "; ".join([str(first), *others])


def _type(parameter: Parameter) -> tuple[Any, str | None]:
    """What Typer reads the option as, and the word for its value."""
    if parameter.choices:
        return Literal[tuple(map(_word, parameter.choices))], None
    if parameter.type.startswith("path"):
        return Path, "FILE"
    if parameter.type.startswith("sequence"):
        return str, "NAMES"
    annotation = parameter.annotation.replace("Any", parameter.type)
    for kind in (bool, int, float):
        if annotation in (kind.__name__, f"{kind.__name__} | None"):
            return kind, None
    return str, "NAME"


def _word(choice: str | None) -> str:
    return "none" if choice is None else choice


def _read(parameter: Parameter, value: Any, flag: str) -> Any:
    """The value of a parameter that an option stands for."""
    if value == "none" and "None" in parameter.annotation + parameter.type:
        return None
    if parameter.type.startswith("sequence"):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if parameter.type.endswith("> 0") and not 0 < value < float("inf"):
        raise typer.BadParameter("expected a number above 0", param_hint=flag)
    if parameter.type == 'int or "auto"' and value != "auto":
        if not value.isdecimal():
            raise typer.BadParameter(f"expected a number or auto, found {value!r}", param_hint=flag)
        return int(value)
    return value


def group(help: str) -> typer.Typer:
    """Commands below one name, with a help that explains them."""
    return typer.Typer(
        no_args_is_help=True, add_completion=False, rich_markup_mode="rich", help=help
    )


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function with an option for each member of its groups, as Typer takes it."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[list[str], Callable[[dict[str, Any]], Any]]] = {}
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        members, make = _group(hints[name])
        if members:
            groups[name] = [member.name for member in members], make
        parameters += members or [_parameter(name, hints[name], parameter.default)]

    @wraps(function)
    def run(**values: Any) -> None:
        for name, (members, make) in groups.items():
            values[name] = make({member: values.pop(member) for member in members})
        function(**values)

    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _group(hint: Any) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    """The options of a group, and what makes its value from theirs; no options of anything else."""
    if is_dataclass(hint):
        types = get_type_hints(hint, include_extras=True)
        for name in types:
            types[name] = _in_panel(types[name], getattr(hint, "PANEL", None))
        members = [_parameter(each.name, types[each.name], each.default) for each in fields(hint)]
        return members, lambda values: hint(**values)  # type: ignore[operator]
    for metadata in getattr(hint, "__metadata__", ()):
        if isinstance(metadata, ParametersOf):
            return metadata.members(), metadata.value
    return [], dict


def _in_panel(hint: Any, panel: str | None) -> Any:
    """An option in a panel of the help, unless it names one."""
    for option in getattr(hint, "__metadata__", ()):
        if isinstance(option, OptionInfo) and option.rich_help_panel is None:
            option = copy(option)  # which other groups may share
            option.rich_help_panel = panel
            return Annotated[hint.__origin__, option]
    return hint


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = EMPTY if default is MISSING else default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
