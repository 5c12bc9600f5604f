"""Steps of llama.cpp in slices: its evaluation callback, with a breath behind the layers that slices.py names.

llama.cpp asks of every node of a graph whether it should finish there; behind a node for which the answer was yes the
device is done and calls again, and it goes on when that call returns. About a thousand questions a token cost some
1 us each, so a context has the callback only where slices are wanted. Models whose layers' outputs are not named
`l_out-<i>` are not cut: each step is one slice. On a CPU the logits stay the same to the bit, cut behind every layer.
On a GPU a cut may undo a fusion of kernels, and so change a rounding.

Never run: GPU builds of llama.cpp; tested with a real model on a CPU.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import Slicing
from oarbank_llmserve.engines.llamacpp_library import lib
from oarbank_llmserve.slices import Slices

_LAYER = b"l_out-"


class Knife:
    """The callback of one context, and what it learnt. `began` before each decode, `ended` behind it."""

    def __init__(self, layers: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.given_up = False
        self.callback = lib.ggml_backend_sched_eval_callback(self._evaluated)  # lives as long as the context
        self._name = _name_of()
        self._slices = Slices(layers)
        self._layers = layers
        self._clock = clock
        self._slicing: Slicing | None = None
        self._cuts: frozenset[int] = frozenset()
        self._tokens = 0
        self._began_s = 0.0
        self._part = 0  # the first one of this slice
        self._raised: BaseException | None = None

    def began(self, tokens: int, slicing: Slicing | None) -> None:
        """A decode of so many tokens comes."""
        self.given_up, self._raised = False, None
        self._slicing, self._tokens, self._part = slicing, tokens, 0
        self._cuts = frozenset() if slicing is None else self._slices.cuts(tokens, slicing.longest_s)
        self._began_s = self._clock()

    def ended(self) -> None:
        """The decode is over, and the device done. Raises what a breath should not have raised."""
        slicing, self._slicing = self._slicing, None
        if slicing is not None and not self.given_up and self._part <= self._layers:
            self._slices.took(self._tokens, self._part, self._layers, self._clock() - self._began_s)
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _evaluated(self, tensor: int, asking: bool, data: Any) -> bool:
        try:
            if self.given_up:  # stop at the next node, and behind it
                return asking
            if asking:
                return bool(self._cuts) and self._cut(tensor) is not None
            self._breathe(self._cut(tensor))
        except BaseException as raised:  # Ctrl-C arrives in any line: nothing may cross the library
            self._raised, self.given_up = raised, True
        return not self.given_up

    def _cut(self, tensor: int) -> int | None:
        """The layer whose output this node is, where a cut is wanted behind it."""
        name = self._name(tensor)
        if not name.startswith(_LAYER):
            return None
        layer = int(name[len(_LAYER) :])
        return layer if layer in self._cuts and layer >= self._part else None

    def _breathe(self, layer: int | None) -> None:
        if layer is None or self._slicing is None:
            return
        self._slices.took(self._tokens, self._part, layer, self._clock() - self._began_s)
        self._part = layer + 1
        self.given_up = not self._slicing.breathe()
        self._began_s = self._clock()


def _name_of() -> Callable[[int], bytes]:
    folder = Path(lib.__file__).parent / "lib"
    base = import_module("llama_cpp._ctypes_extensions").load_shared_library("ggml-base", folder)
    name = base.ggml_get_name
    name.argtypes, name.restype = [ctypes.c_void_p], ctypes.c_char_p
    return name
