"""How large the next unit is: how many prompt tokens a prefill takes, how many sequences step together.

The governor says which part of the full size fits the duty (`scale`), but knows no counts: after many short prompts it
takes a unit of five tokens for a full one, and a step of the last sequence for one of the whole batch. So both sizes
are held to the time that their parts were seen to take as well. Pure: sizes and seconds in, a size out.
"""

from __future__ import annotations

import math

# What a program beside us feels is one burst. 0.1 s costs a CPU about a fifth of its prefill speed (measured) ...
GOVERNED_S = 0.1
# ... and without a duty the bound keeps safe points close together on a slow machine.
FREE_S = 0.5
PROBE = 32  # tokens of a first chunk at most, when nothing was measured
# llama.cpp computes a single token by another path, with other rounding (measured: 0.6 in a logit). Two tokens or more
# give the same bits however a prompt is cut, so one token is never left alone, and no duty changes a text.
LEAST = 2
# Slices are cut between layers, and a small model's head, a fifth of its step, cannot be: more slices of one length
# than so many are not possible.
SLICES = 5
STARVED_DUTY = 0.05  # sizes at duty 0 are those of the first step that a budget grows by, as the governor's are


class Chunks:
    """Sizes of prefill units, in tokens, `full` at most; with slices of `longest_s` as small as makes them possible."""

    def __init__(self, full: int, longest_s: float | None = None) -> None:
        self._full = full
        self._longest_s = longest_s
        self._last = 0
        self._token_s = 0.0

    def size(self, left: int, scale: float, *, governed: bool) -> int:
        """The next unit's tokens, of `left` that remain; `scale` is the governor's factor."""
        most = min(self._full, int(self._full * scale))
        if self._last:
            burst_s = GOVERNED_S if governed or self._longest_s is not None else FREE_S
            if self._longest_s is not None:
                burst_s = min(burst_s, SLICES * self._longest_s)
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


class Width:
    """How many sequences step together, `slots` at most.

    A step of n costs a + b*n, so the widest one that fits the duty's share of a second gives the most tokens. For more
    sequences than were measured, the cost is taken to grow with their number, which is never too little; so the width
    climbs to what fits, and a step that was too long narrows the next one. Until there was a step, a part of a prompt
    speaks for one: so many tokens cost about as much wherever they come from. With slices of `longest_s` the engine
    bounds the burst, and a step is so narrow that they are possible.
    """

    def __init__(self, slots: int, longest_s: float | None = None) -> None:
        self._slots = slots
        self._longest_s = longest_s
        self._last = 0
        self._last_s = 0.0
        self.measured = False  # whether a step was taken

    def most(self, scale: float, duty: float | None) -> int:
        """The next step's sequences, one at least; `scale` is the governor's factor."""
        most = max(int(self._slots * scale), 1)
        burst_s = math.inf if duty is None else max(duty, STARVED_DUTY)  # the duty's share of one second (the brief)
        if self._longest_s is not None:
            burst_s = SLICES * self._longest_s
        if not math.isinf(burst_s):
            fits = int(self._last * burst_s / max(self._last_s, 1e-9))
            most = max(min(most, fits, 2 * self._last), 1)
        return most

    def took(self, sequences: int, seconds: float) -> None:
        """A step of so many sequences took `seconds`."""
        self._last, self._last_s, self.measured = sequences, seconds, True

    def read(self, tokens: int, seconds: float) -> None:
        """A part of a prompt took `seconds`."""
        if not self.measured:
            self._last, self._last_s = tokens, seconds
