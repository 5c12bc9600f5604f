"""Some lines on a terminal that say what is going on, and go away.

Writes to a terminal and to nothing else: where stderr is none there are no lines, so logs and pipes stay clean.
"""

from __future__ import annotations

import shutil
import sys
from typing import TextIO


class LiveText:
    """The lines; called with a text it shows it in place of the last one, `clear` takes it away."""

    def __init__(self, stream: TextIO | None = None, *, wanted: bool = True) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.on = wanted and self._stream is not None and self._stream.isatty()  # None: it was closed
        self._shown = 0

    def __call__(self, text: str) -> None:
        """Show a text, each line cut to the width of the terminal."""
        if self.on:
            width = shutil.get_terminal_size().columns - 1
            lines = [line[:width] for line in text.split("\n")]
            self._stream.write(self._away() + "\n".join(lines))
            self._stream.flush()
            self._shown = len(lines)

    def clear(self) -> None:
        """Leave an empty line; nothing when none is shown."""
        if self._shown:
            self._stream.write(self._away())
            self._stream.flush()
            self._shown = 0

    def _away(self) -> str:
        """Clear the last line, and each above it."""
        return "\r\x1b[K" + "\x1b[1A\x1b[K" * max(self._shown - 1, 0)
