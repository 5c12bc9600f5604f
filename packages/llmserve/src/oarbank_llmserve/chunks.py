"""How many prompt tokens the next prefill unit takes.

The governor says which part of the full size fits the duty (`scale`), but knows no token counts: after many short
prompts it takes a unit of five tokens for a full one. So the size is held to the time a token was seen to take as well.
Pure: sizes and seconds in, a size out.
"""

from __future__ import annotations

# What a program beside us feels is one burst. 0.1 s costs a CPU about a fifth of its prefill speed (measured) ...
GOVERNED_S = 0.1
# ... and without a duty the bound keeps safe points close together on a slow machine.
FREE_S = 0.5
PROBE = 32  # tokens of a first chunk at most, when nothing was measured
# llama.cpp computes a single token by another path, with other rounding (measured: 0.6 in a logit). Two tokens or more
# give the same bits however a prompt is cut, so one token is never left alone, and no duty changes a text.
LEAST = 2


class Chunks:
    """Sizes of prefill units, in tokens, `full` at most."""

    def __init__(self, full: int) -> None:
        self._full = full
        self._last = 0
        self._token_s = 0.0

    def size(self, left: int, scale: float, *, governed: bool) -> int:
        """The next unit's tokens, of `left` that remain; `scale` is the governor's factor."""
        most = min(self._full, int(self._full * scale))
        if self._last:
            burst_s = GOVERNED_S if governed else FREE_S
            most = min(most, 2 * self._last, int(burst_s / max(self._token_s, 1e-9)))
        else:
            most = min(most, PROBE)
        most = max(most, LEAST)
        if left - most >= LEAST or most >= left:
            return min(most, left)
        return most - 1 if most > LEAST else left

    def took(self, tokens: int, seconds: float) -> None:
        """A unit of `tokens` took `seconds`. The short rest of a prompt says little, and changes nothing."""
        if 2 * tokens >= self._last:
            self._last = max(tokens, LEAST)
            self._token_s = seconds / tokens
