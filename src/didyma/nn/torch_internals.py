"""Private names of torch; where a version lacks one, the slower public way is taken.

They tell whether anybody follows what is done to a tensor. Without them the answer is yes, and all
calls go through `torch.autograd.Function.apply` and the operators of `didyma.nn.autograd`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def private(path: str) -> Any:
    """What stands at ``torch.<path>``, or None."""
    value: Any = torch
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


transforms_active = private("_C._are_functorch_transforms_active")
unwrap_dead_wrappers = private("_functorch.utils.unwrap_dead_wrappers")
is_legacy_batched = private("_C._functorch.is_legacy_batchedtensor")
interpreters = private("_C._functorch.get_interpreter_stack")
jvp_transform = private("_C._functorch.TransformType.Jvp")


class Function(torch.autograd.Function):
    """A function of autograd whose ``forward`` has no default arguments.

    Torch would look for them each time, which takes longer than a small solve.
    """

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Call ``forward``, and note it for derivatives."""
        compiled_apply = getattr(super(torch.autograd.Function, cls), "apply", None)
        if None in (compiled_apply, transforms_active, unwrap_dead_wrappers) or transforms_active():
            return super().apply(*inputs)
        return compiled_apply(*unwrap_dead_wrappers(inputs))  # type: ignore[misc]


def is_plain(gradient: Tensor | None) -> bool:
    """Whether nobody follows what is done to a gradient: no graph is made, no transform runs."""
    return not (
        gradient is None
        or torch.is_grad_enabled()
        or None in (transforms_active, is_legacy_batched)
        or transforms_active()
        or is_legacy_batched(gradient)
    )


def n_forward_modes() -> int | None:
    """How many `torch.func.jvp` are at work, one around the other; None if torch does not say."""
    if interpreters is None or jvp_transform is None:
        return None
    return sum(level.key() == jvp_transform for level in interpreters() or ())
