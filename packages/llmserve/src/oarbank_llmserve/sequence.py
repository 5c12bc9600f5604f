"""One prompt on its way through the batch: its text so far, and why it ended.

It asks the engine for a token's bytes and nothing else, and knows nothing of units, duties or neighbours.
"""

from __future__ import annotations

from oarbank_llmserve.engines import Engine, PromptFault
from oarbank_llmserve.job import Prompt
from oarbank_llmserve.sampling import PromptSampler
from oarbank_llmserve.sink import Completion
from oarbank_llmserve.text import TextStream
from oarbank_llmserve.units import fenced

NO_SLOT = -1


class Sequence:
    """A prompt, the slot it holds, and what was written to it."""

    __slots__ = ("_error", "_finish", "_index", "_most", "_parts", "_stream", "sampler", "slot", "token", "tokens",
                 "written")  # fmt: skip

    def __init__(self, index: int, prompt: Prompt, tokens: list[int]) -> None:
        self.tokens = tokens  # the prompt's
        self.slot = NO_SLOT
        self.token = 0  # the newest, which the next step takes
        self.written = 0  # new tokens in the text
        self.sampler = PromptSampler(prompt)
        self._index = index
        self._most = prompt.max_tokens
        self._stream = TextStream(prompt.stop)
        self._parts: list[str] = []
        self._finish = ""
        self._error: str | None = None

    def ends_with(self, token: int, engine: Engine, room: int) -> bool:
        """Take the next token; True when it is the last. `room`: tokens that a slot holds, the prompt's included."""
        try:
            if fenced(engine.is_end, token):
                self._finish = "end"
                return True
            self.token = token
            self.written += 1
            self._parts.append(self._stream.feed(fenced(engine.piece, token)))
        except PromptFault as fault:
            self.fails(str(fault))
            return True
        if self._stream.stopped:
            self._finish = "stop"
        elif self.written >= self._most:
            self._finish = "length"
        elif self.written > room - len(self.tokens):
            self._finish = "context"
        return self._finish != ""

    def fails(self, error: str) -> Sequence:
        """It has no completion, but what it has of a text."""
        self._finish, self._error = "error", error
        return self

    def completion(self) -> Completion:
        """What became of it."""
        self._parts.append(self._stream.end())
        return Completion(self._index, "".join(self._parts), self.written, len(self.tokens), self._finish, self._error)
