"""One line on a terminal that says what is going on, and goes away.

Writes to a terminal and to nothing else: where stderr is none there is no line, so logs and pipes stay clean.
"""

from __future__ import annotations

import shutil
import sys
from typing import TextIO


class LiveLine:
    """The line; called with a text it shows it, `clear` takes it away."""

    def __init__(self, stream: TextIO | None = None, *, wanted: bool = True) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._on = wanted and self._stream.isatty()
        self._shown = False

    def __call__(self, text: str) -> None:
        """Show a text, cut to the width of the terminal."""
        if self._on:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Leave an empty line; nothing when none is shown."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
