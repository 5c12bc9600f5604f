"""A step in slices: gates between a model's layers, and the watch that decides at each whether to breathe.

It works for any model whose loop goes through its list of layers, whatever else it does, and changes no number: the
same operations are computed, some of them earlier. What is decided is in slices.py and mlx_parts.py; here are the clock
and the device.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from oarbank_llmserve.engines import Slicing, StepGivenUp
from oarbank_llmserve.engines.mlx_library import settle
from oarbank_llmserve.engines.mlx_parts import Parts
from oarbank_llmserve.slices import Slices


@dataclass
class Post:
    """Where the gates of a model look for who watches."""

    watch: Watch | None = None  # None: nobody


class Gate:
    """A layer that says when it was asked for. Everything else about it is the layer's own."""

    def __init__(self, layer: Any, post: Post) -> None:
        self._layer = layer
        self._post = post

    def __call__(self, *args: Any, **named: Any) -> Any:
        out = self._layer(*args, **named)
        if self._post.watch is not None:
            self._post.watch.after_layer(out)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)


class Watch:
    """The slices of one call: times layers, and breathes between them with the device done."""

    def __init__(self, slicing: Slicing, slices: Slices, parts: Parts, layers: int) -> None:
        self._slicing = slicing
        self._slices = slices
        self._parts = parts
        self._layers = layers
        self.seen = 0  # layers asked for, in the whole call
        self._has_tail = False
        self._size = self._gone = self._first = 0  # tokens of this step; its layers gone; the first of this slice
        self._cuts: frozenset[int] = frozenset()
        self._began_s = time.perf_counter()

    def part(self, left: int) -> int:
        """How many of so many tokens of a prompt go next."""
        return self._parts.size(left, self._slicing.longest_s)

    def begin(self, size: int, *, has_tail: bool) -> None:
        """A step over so many tokens; without a tail it ends with its last layer."""
        self._has_tail, self._size, self._gone, self._first = has_tail, size, 0, 0
        cuts = self._slices.cuts(size, self._slicing.longest_s)
        self._cuts = cuts if has_tail else cuts - {self._layers - 1}

    def after_layer(self, out: Any) -> None:
        """A layer was asked for; `out` is what it makes."""
        layer, self._gone = self._gone, self._gone + 1
        self.seen += 1
        if layer in self._cuts:
            settle(out)
            self._took(layer)
            self._breathe()

    def end_part(self, *, more: bool) -> None:
        """A step without a tail is over and the device done."""
        self._took(self._layers - 1)
        if more:
            self._breathe()

    def end_step(self) -> None:
        """A step with a tail is over and the device done."""
        self._took(self._layers)

    def _took(self, last: int) -> None:
        seconds = time.perf_counter() - self._began_s
        self._slices.took(self._size, self._first, last, seconds)
        if not self._has_tail:
            self._parts.took(self._size, seconds / (last + 1 - self._first))
        self._first = last + 1

    def _breathe(self) -> None:
        if not self._slicing.breathe():
            raise StepGivenUp
        self._began_s = time.perf_counter()
