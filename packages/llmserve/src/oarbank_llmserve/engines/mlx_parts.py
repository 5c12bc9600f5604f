"""How many of a prompt's tokens go through the layers at once, so that a single layer is no longer than a slice.

A step is cut between its layers (slices.py), and a layer over a whole chunk may be too long by itself: so a chunk goes
in parts. Nothing is known before it was measured, so the first part is small and the next at most twice as large. A
longer time counts at once, a shorter one by and by. Pure: seconds come in as arguments.
"""

from __future__ import annotations

FILL = 0.8  # of the longest slice that is aimed at: what is left takes a disturbance
FIRST = 8  # tokens, before anything is known
_LARGEST = 1 << 16  # more than any chunk
_FORGETS = 0.1  # how far a shorter time moves what is expected


class Parts:
    """What one layer over one of many tokens was measured to take."""

    def __init__(self) -> None:
        self._token_s: float | None = None
        self._newest = FIRST

    def size(self, left: int, longest_s: float) -> int:
        """Of a prompt's `left` tokens; a power of two where not all go, so that few sizes of steps are to be learnt."""
        fits = FIRST
        if self._token_s is not None:
            fits = int(min(FILL * longest_s / self._token_s, 2 * self._newest, _LARGEST))
        self._newest = 1 << max(fits, 1).bit_length() - 1
        return min(self._newest, left)

    def took(self, tokens: int, layer_s: float) -> None:
        """One layer over so many tokens, of a part or of the end of a prompt, took so long."""
        # An end is shorter than a part, which takes at least as long: reading the weights is most of it on a GPU.
        token_s = max(layer_s, 1e-9) / max(tokens, self._newest)
        if self._token_s is not None and token_s < self._token_s:
            if tokens < self._newest:
                return
            token_s = self._token_s + _FORGETS * (token_s - self._token_s)
        self._token_s = token_s
