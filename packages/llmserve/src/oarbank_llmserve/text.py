"""From a stream of token bytes to text: whole characters, and an end at a stop string.

A token may end in the middle of a character, and a stop string may begin in one token and end in another. What comes
out must not depend on where the bytes were cut: the same bytes give the same text. Pure: bytes in, text out.
"""

from __future__ import annotations

import codecs
import re


class TextStream:
    """Give it bytes as they come; it gives back the text that can no longer change.

    The text ends before the stop string that is complete first (of several complete at the same character, the
    longest). Bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        self.stopped = False  # a stop string was found: further bytes are dropped
        self._stops = sorted(stops, key=len, reverse=True)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""  # the start of a stop string, perhaps

    def feed(self, piece: bytes) -> str:
        """The text that `piece` makes certain."""
        return self._take(self._decoder.decode(piece))

    def end(self) -> str:
        """The rest, when no more bytes come."""
        text = self._take(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return text if self.stopped else text + held

    def _take(self, new: str) -> str:
        if self.stopped or not new:
            return ""
        text = self._held + new
        found = self._first_stop(text, len(self._held))
        if found is not None:
            self.stopped = True
            self._held = ""
            return text[:found]
        keep = self._may_begin_a_stop(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _first_stop(self, text: str, old: int) -> int | None:
        """Where the stop begins that is complete first; the first `old` characters complete none."""
        first: tuple[int, int] | None = None  # (its end, its start): the smaller wins
        for stop in self._stops:
            at = text.find(stop, max(old - len(stop) + 1, 0))
            if at >= 0 and (first is None or (at + len(stop), at) < first):
                first = (at + len(stop), at)
        return None if first is None else first[1]

    def _may_begin_a_stop(self, text: str) -> int:
        """How many of the last characters a stop string begins with."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """`text` for a terminal: a model's control characters (but tab and line feed) shown as U+FFFD."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
