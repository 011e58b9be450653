"""Compilation: caches that are hit, missing or unusable, and templates."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from didyma.kernels import jit as jit_module
from didyma.kernels.jit import bind, cache_folder, jit, specialise
from tests.uncompiled import compiled_only

PROGRAM = """
import numpy as np
from didyma.learning.plane_dual import PlaneDual
from didyma.kernels.select import descending
index = np.arange(3)
descending(np.array([1.0, 3.0, 2.0]), index)
print(index.tolist(), sum(descending.compiled.stats.cache_hits.values()))
"""


def run(cache_dir: str, *before: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache_dir}
    return subprocess.run(
        [*before, sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@compiled_only
def test_kernels_are_cached_across_processes(tmp_path):
    assert run(str(tmp_path)) == "[1, 2, 0] 0"
    assert run(str(tmp_path)) == "[1, 2, 0] 1"
    assert [path.name for path in tmp_path.iterdir()] == ["didyma"]


def for_reading_only(folder: Path) -> list[str]:
    """Take the right to write away; what to put before a command so that root obeys."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid():
        return []
    if (found := shutil.which("setpriv")) is None:
        pytest.skip("root may write everywhere, and there is no setpriv")
    return [found, "--bounding-set=-dac_override", "--inh-caps=-dac_override"]


@compiled_only
@pytest.mark.skipif(sys.platform == "win32", reason="modes differ")
def test_a_cache_that_cannot_be_written_is_read(tmp_path):
    assert run(str(tmp_path)) == "[1, 2, 0] 0"
    before = for_reading_only(tmp_path / "didyma")
    files = sorted((tmp_path / "didyma").rglob("*"))
    assert run(str(tmp_path), *before) == "[1, 2, 0] 1"
    assert sorted((tmp_path / "didyma").rglob("*")) == files
    (index,) = (tmp_path / "didyma").rglob("*descending*.nbi")
    index.chmod(0o644)
    index.write_bytes(b"damaged")
    assert run(str(tmp_path), *before) == "[1, 2, 0] 0"
    assert index.read_bytes() == b"damaged"


class Pair(NamedTuple):
    a: int
    b: int


class Couple(NamedTuple):
    a: int
    b: int


def total(pair):
    return pair[0] + pair[1]


@pytest.fixture
def hits_of(tmp_path, monkeypatch):
    """How often a new kernel finds itself in the cache, for arguments whose total is 3."""
    monkeypatch.setattr(jit_module, "cache_folder", lambda: str(tmp_path))

    def call(pair: tuple[int, int]) -> int:
        kernel = jit(total)
        assert kernel(pair) == 3
        return sum(kernel.compiled.stats.cache_hits.values())

    return call


DAMAGES = {
    "empty": lambda contents: b"",
    "cut": lambda contents: contents[: len(contents) // 2],
    "text": lambda contents: b"not a pickle",
    "another value": lambda contents: pickle.dumps(None),
    "another version": lambda contents: pickle.dumps("0") + contents,
    "a module that is gone": lambda contents: contents.replace(b"numba.core", b"numba.gone"),
}


@compiled_only
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_cannot_be_loaded_is_compiled_anew_and_replaced(tmp_path, hits_of, ending, damage):
    assert [hits_of((1, 2)), hits_of((1, 2))] == [0, 1]
    (entry,) = tmp_path.glob(f"**/*.{ending}")
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert entry.read_bytes() != whole
    assert [hits_of((1, 2)), hits_of((1, 2))] == [0, 1]


@compiled_only
def test_a_type_of_arguments_may_have_gone(hits_of, monkeypatch):
    assert [hits_of(Pair(1, 2)), hits_of(Pair(1, 2))] == [0, 1]
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    assert [hits_of(Couple(1, 2)), hits_of(Couple(1, 2))] == [0, 1]


@compiled_only
def test_what_is_compiled_with_a_users_function_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(jit_module, "cache_folder", lambda: str(tmp_path))

    def hits(function: Callable[[float], float], expected: float) -> int:
        scope = {"function": function}
        own = eval("lambda x: function(x)", scope)  # in no file, as at a prompt
        kernel = specialise(twice, "twice_own", operation=jit(own, cached=False))
        assert kernel(3.0) == expected
        return sum(kernel.compiled.stats.cache_hits.values())

    def closed(shift: float) -> Callable[[float], float]:
        return jit(lambda x: x + shift, cached=False)

    assert [hits(closed(1.0), 5.0), hits(closed(1.0), 5.0)] == [0, 1]
    assert [hits(closed(2.0), 7.0), hits(closed(2.0), 7.0)] == [0, 1]


@compiled_only
def test_what_cannot_be_described_is_compiled_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(jit_module, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(jit_module, "fingerprint", fail)
    assert jit(total)((1, 2)) == 3
    assert not list(tmp_path.iterdir())


def fail(kernel):
    raise TypeError


@compiled_only
def test_an_unusable_cache_folder_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(str(blocked / "below")) == "[1, 2, 0] 0"


@pytest.fixture
def folder_of(monkeypatch):
    """The cache folder that a new process would take; "" stands for a variable that is not set."""

    def find(**variables: object) -> str | None:
        for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return cache_folder.__wrapped__()

    return find


posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and owners differ")


@posix
def test_the_cache_is_private(tmp_path, folder_of):
    found = folder_of(NUMBA_CACHE_DIR=tmp_path)
    assert found is not None
    assert Path(found).parent == tmp_path / "didyma"
    assert (tmp_path / "didyma").stat().st_mode & 0o777 == 0o700


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_cache_that_others_can_write_is_not_used(tmp_path, folder_of, mode):
    (tmp_path / "didyma").mkdir()
    (tmp_path / "didyma").chmod(mode)
    with pytest.warns(UserWarning, match="can be written by others"):
        assert folder_of(NUMBA_CACHE_DIR=tmp_path) is None


@posix
def test_a_cache_behind_a_link_is_not_used(tmp_path, folder_of):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "didyma").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="can be written by others"):
        assert folder_of(NUMBA_CACHE_DIR=tmp_path) is None


@posix
def test_a_cache_of_someone_else_is_not_used(tmp_path, folder_of, monkeypatch):
    (tmp_path / "didyma").mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(tmp_path / "didyma", 4321, -1)
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    with pytest.warns(UserWarning, match="can be written by others"):
        assert folder_of(NUMBA_CACHE_DIR=tmp_path) is None


@posix
def test_a_cache_of_root_is_used(tmp_path, folder_of, monkeypatch):
    """An image has one, which whoever runs it can read."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of root's")
    (tmp_path / "didyma").mkdir(mode=0o755)
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    assert folder_of(NUMBA_CACHE_DIR=tmp_path) is not None


@posix
def test_without_a_home_each_user_has_a_folder_of_its_own(tmp_path, folder_of, monkeypatch):
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    found = folder_of()
    assert found is not None
    assert Path(found).parent == tmp_path / f"didyma-{os.getuid()}"


def operation(x):
    raise AssertionError("never bound")


def twice(x):
    return operation(operation(x))


def test_one_template_serves_compiled_and_plain_functions():
    @jit
    def double(x):
        return 2.0 * x

    native = specialise(twice, "twice_double", operation=double)
    plain = bind(twice, "twice_list", operation=lambda x: [x])
    assert native(3.0) == 12.0
    assert plain(3.0) == [[3.0]]
    assert native.py_func.__name__ == "twice_double"


def test_numba_is_loaded_by_the_first_call():
    program = (
        "import sys, numpy as np\n"
        "from didyma.kernels import rows, select\n"
        "before = 'numba' in sys.modules\n"
        "select.descending(np.zeros(2), np.arange(2))\n"
        "print(before, 'numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.split() == ["False", "True"], found.stderr


def test_sums_may_be_reordered_but_nan_and_infinity_are_kept():
    @jit
    def classify(x):
        return np.isnan(x), np.isinf(x)

    assert classify(np.nan) == (True, False)
    assert classify(np.inf) == (False, True)
