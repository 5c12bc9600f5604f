"""Where a step is cut, so that no slice of it lasts longer than was asked for. Pure: seconds in, layers out.

A step is its layers and what follows the last of them (the output head, which is a fifth of a small model). A device
can be asked to finish behind any layer, but not to tell beforehand how long a stretch of layers will take: so the time
of each part is learnt from the slices it was in, for each size of step, and a step of a size not seen yet is cut behind
every layer. Fewer cuts cost less: each makes the device run dry once.
"""

from __future__ import annotations

AIM = 0.85  # of the longest slice: the rest is for the unevenness of a machine that others use as well
_RISES, _FALLS = 0.5, 0.05  # how much of what was seen is believed at once: too long is worse than too short
_WILDEST = 3.0  # a slice this many times longer than expected was disturbed, and says no more than that
_EXACT, _STEP = 16, 16  # sizes up to the first have times of their own, larger ones share those of a multiple


class Slices:
    """What is known of one model's parts: `layers`, and one more for what follows them."""

    def __init__(self, layers: int) -> None:
        self._layers = layers
        self._parts_s: dict[int, list[float]] = {}

    def cuts(self, tokens: int, longest_s: float) -> frozenset[int]:
        """The layers behind which a step of so many tokens is cut: as few as keep each slice below `longest_s`."""
        parts_s = self._parts_s.get(_size(tokens))
        if parts_s is None:
            return frozenset(range(self._layers))
        found, slice_s = [], 0.0
        for part, part_s in enumerate(parts_s):
            if part and slice_s + part_s > AIM * longest_s:
                found.append(part - 1)
                slice_s = 0.0
            slice_s += part_s
        return frozenset(found)

    def took(self, tokens: int, first: int, last: int, seconds: float) -> None:
        """The parts `first` to `last` of a step of so many tokens took so long together."""
        parts_s = self._parts_s.setdefault(_size(tokens), [0.0] * (self._layers + 1))
        expected_s = sum(parts_s[first : last + 1])
        if expected_s <= 0.0:
            parts_s[first : last + 1] = [seconds / (last + 1 - first)] * (last + 1 - first)
            return
        ratio = min(seconds / expected_s, _WILDEST)
        factor = 1.0 + (_RISES if ratio > 1.0 else _FALLS) * (ratio - 1.0)
        for part in range(first, last + 1):
            parts_s[part] *= factor


def _size(tokens: int) -> int:
    return tokens if tokens <= _EXACT else -(-tokens // _STEP) * _STEP
