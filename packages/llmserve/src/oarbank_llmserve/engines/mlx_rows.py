"""The sequences' caches: each one's own while it is alone, rows of one batch while several step together.

mlx-lm's caches know how to merge, extend, filter and extract; here is decided which of it is done when. Only a change
of who steps costs a copy. What a sequence leaves behind is cleared at the next step, so that `drop` is no device work.
Nothing is evaluated here but through `settle`, a layer at a time, so that a copy never doubles the whole cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Caches = list[Any]  # one of mlx-lm's caches for each layer


class Rows:
    """Who is where. A slot is in the batch, or has caches of its own, or is unknown."""

    def __init__(self, settle: Callable[[Any], None]) -> None:
        self._settle = settle
        self._own: dict[int, Caches] = {}
        self._batch: Caches = []
        self._order: list[int | None] = []  # whose row it is; None: somebody's who left

    def begin(self, slot: int, caches: Caches) -> None:
        """A new sequence, empty."""
        self.drop(slot)
        self._own[slot] = caches

    def alone(self, slot: int) -> Caches:
        """Its own caches, taken out of the batch where it was in one."""
        if slot not in self._own:
            self._take_out(self._order.index(slot))
        return self._own[slot]

    def together(self, slots: Sequence[int]) -> tuple[Caches, list[int]]:
        """Caches in which every one of `slots` is a row and nobody else, and whose rows they are, in order."""
        if len(slots) == 1:
            return self.alone(slots[0]), list(slots)
        for row, slot in enumerate(self._order):
            if slot is not None and slot not in slots:
                self._take_out(row)
        self._clear()
        coming = [slot for slot in slots if slot in self._own]
        if coming:
            self._let_in(coming)
        return self._batch, [slot for slot in self._order if slot is not None]

    def drop(self, slot: int) -> None:
        """The sequence leaves. Unknown: nothing."""
        self._own.pop(slot, None)
        self._order = [None if other == slot else other for other in self._order]
        if not any(other is not None for other in self._order):
            self._batch, self._order = [], []

    def _take_out(self, row: int) -> None:
        slot = self._order[row]
        assert slot is not None
        own = []
        for cache in self._batch:
            own.append(cache.extract(row))
            self._settle(own[-1].state)
        self.drop(slot)
        self._own[slot] = own

    def _clear(self) -> None:
        keep = [row for row, slot in enumerate(self._order) if slot is not None]
        if len(keep) == len(self._order):
            return
        for cache in self._batch:
            cache.filter(keep)
            self._settle(cache.state)
        self._order = [self._order[row] for row in keep]

    def _let_in(self, coming: list[int]) -> None:
        had = bool(self._order)
        for layer in range(len(self._own[coming[0]])):
            own = [self._own[slot][layer] for slot in coming]
            merged = own[0].merge(own)
            if had:
                self._batch[layer].extend(merged)
            else:
                self._batch.append(merged)
            self._settle(self._batch[layer].state)
            for slot in coming:
                self._own[slot][layer] = None  # its memory goes before the next layer's is taken
        self._order += coming
        for slot in coming:
            del self._own[slot]
