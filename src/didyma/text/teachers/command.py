"""Teachers that are commands: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import weakref
from contextlib import suppress
from typing import Any

from didyma.text.teachers.teacher import Teacher, within


class CommandTeacher(Teacher):
    """A program that reads queries with documents and writes scores.

    It is started once, reads one JSON object on each line of its standard input,

        {"query": "who wrote Emma?", "documents": ["Jane Austen.", "It is late."]}

    and answers each, before it reads the next, by a line of its standard output with a list of
    scores or an object that has one:

        {"scores": [7.1, -3.2]}

    No shell is involved. A program that ends, or does not answer in time, is started again for the
    next query.

    >>> CommandTeacher("python score.py --device cpu").words
    ['python', 'score.py', '--device', 'cpu']

    Parameters
    ----------
    command : str
        Program and arguments, as a shell separates them.
    """

    is_nameable = True

    def __init__(self, command: str) -> None:
        self.name = command
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise self._error(f"cannot be read: {error}") from None
        if not self.words:
            raise self._error("expected a command, found none")
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def _score(self, query: str, documents: list[str], timeout: float | None) -> Any:
        question = json.dumps({"query": query, "documents": documents}).encode() + b"\n"
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise self._error("is busy with another query")
        try:  # answers come in the order of questions
            line = within(timeout, lambda: self._exchange(question))
        except OSError as error:  # which a timeout is, too
            self.close()
            raise self._error(f"{error.strerror or error}") from None
        except BaseException:
            self.close()
            raise
        finally:
            self._lock.release()
        try:
            answer = json.loads(line)
        except ValueError:
            self.close()
            raise self._error(f"expected a line of JSON, found {line[:80]!r}") from None
        return answer.get("scores") if isinstance(answer, dict) else answer

    def _exchange(self, question: bytes) -> bytes:
        process = self._process
        if process is None or process.poll() is not None:
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                self.words, stdin=pipe, stdout=pipe, start_new_session=os.name == "posix"
            )
            self._process = process
            weakref.finalize(self, _end, process)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(question)
            process.stdin.flush()
        except BrokenPipeError:
            raise OSError(f"ended with code {process.wait()}") from None
        line: bytes = process.stdout.readline()
        if not line:
            raise OSError(f"ended with code {process.wait()}, without an answer")
        return line

    def close(self) -> None:
        """End the program."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def __reduce__(self) -> Any:
        return CommandTeacher, (self.name,)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        if os.name == "posix":  # what it has started holds its pipes as well
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written any more
                pipe.close()
