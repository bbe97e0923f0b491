"""The log of a daemon, as lines that a test can wait for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Condition, Thread
from typing import IO


class LogLines:
    """Everything that the processes wrote to their logs, in the order it came.

    Also kept in a file, for whoever looks into a failed test.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = Condition()
        self._lines: list[str] = []
        self._threads: list[Thread] = []

    def follow(self, stream: IO[bytes]) -> None:
        """Take the lines of one more process until it ends."""
        thread = Thread(target=self._take, args=(stream,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take(self, stream: IO[bytes]) -> None:
        with stream, self._path.open("ab", buffering=0) as file:
            for line in stream:
                file.write(line)
                with self._changed:
                    self._lines.append(line.decode(errors="replace").rstrip("\n"))
                    self._changed.notify_all()

    def wait_for(self, text: str, *, times: int = 1, patience_s: float) -> str:
        """The line that has `text` for the n-th time, once it is there."""

        def found() -> list[str]:
            return [line for line in self._lines if text in line][times - 1 : times]

        with self._changed:
            if not self._changed.wait_for(lambda: bool(found()), patience_s):
                raise AssertionError(f"no line with {text!r} came; the log:\n{self._text()}")
            return found()[0]

    def count(self, text: str) -> int:
        """Lines with `text` so far."""
        return len(self.matching(lambda line: text in line))

    def matching(self, wanted: Callable[[str], bool]) -> list[str]:
        with self._changed:
            return [line for line in self._lines if wanted(line)]

    def ended(self) -> None:
        """Wait until all of the processes that are followed have closed their logs."""
        for thread in self._threads:
            thread.join()

    def _text(self) -> str:
        return "\n".join(self._lines[-50:])
