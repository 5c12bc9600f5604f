"""How a batch looks to a person: completions on stdout, everything about them on stderr.

On a terminal there is a progress bar, for which rich is imported at the first need; elsewhere plain lines. A model's
text is shown as text: its control characters never reach a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from oarbank_llmserve.batch import Totals
from oarbank_llmserve.result import Spent
from oarbank_llmserve.sink import Completion
from oarbank_llmserve.text import printable
from oarbank_llmserve.usage import UsageError

_REFRESH_S = 0.1


class CannotPrint(UsageError):
    """stdout takes no more."""

    def __init__(self, line: str) -> None:
        super().__init__(line, 3)


class Screen:
    """A sink that prints, each prompt after those before it. `progress` is for the batch, `figures` for its line.

    `to_file`: the completions go to a file, and only what failed is said here.
    """

    def __init__(self, prompts: int, backend: str, device: str, *, to_file: bool = False) -> None:
        self.figures: Callable[[int], str] = lambda tokens: f"{tokens} tokens"
        self._prompts = prompts
        self._to_file = to_file
        self._printed = 0
        self._early: dict[int, Completion] = {}
        self._next = 0
        self._next_s = 0.0
        self._bar: Any = None
        if sys.stderr.isatty():
            self._start_bar(f"{backend} on {device}")

    def _start_bar(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tokens]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,  # a refreshing thread would compete with the model
            redirect_stdout=False,
        )
        self._row = self._bar.add_task(title, total=self._prompts, tokens="")
        self._bar.start()

    def put(self, completion: Completion) -> None:
        """Print it once those before it are, or on stderr why there is none. Raises `CannotPrint`."""
        self._early[completion.index] = completion
        while (ready := self._early.pop(self._next, None)) is not None:
            self._next += 1
            self._show(ready)

    def _show(self, completion: Completion) -> None:
        number = completion.index + 1
        if completion.error is not None:
            self._say(f"prompt {number}: {completion.error}. Skipped; the others run on.")
            return
        if self._to_file:
            return
        text = f"[{number}] {completion.text}"
        if sys.stdout.isatty():
            text = printable(text)
        try:
            self._print("\n".join(f"    {line}" if line and row else line for row, line in enumerate(text.split("\n"))))
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise CannotPrint(
                f"stdout: must take every completion; {fault.strerror} at prompt {number}. "
                f"Printed whole before it: {self._printed}. Make room, and start again"
            ) from None
        self._printed += 1

    def progress(self, prompts: int, tokens: int) -> None:
        """Move the bar, ten times a second at most."""
        now_s = time.monotonic()
        if self._bar is None or now_s < self._next_s:
            return
        self._next_s = now_s + _REFRESH_S
        self._bar.update(self._row, completed=prompts, tokens=self.figures(tokens))
        self._bar.refresh()

    def close(self) -> None:
        """Print what waited for others, if they never came, and take the bar away. Again: nothing."""
        for index in sorted(self._early):
            self._show(self._early.pop(index))
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    def _print(self, text: str) -> None:
        if self._bar is not None and sys.stdout.isatty():
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)


def live(tokens: int, spent: Spent, busy_s: float) -> str:
    """The bar's line: tokens, their rate without the idle, the share held."""
    rate, held = spent.rate(tokens), spent.held(busy_s)
    parts = [f"{tokens} tokens"]
    if rate is not None:
        parts.append(f"{rate:.1f}/s")
    if held is not None:
        parts.append(f"held {held:.2f}")
    return ", ".join(parts)


def closing(totals: Totals, spent: Spent, duty: float | None) -> str:
    """The closing line: tokens, their rate without the idle, the duty asked and held."""
    rate, held = spent.rate(totals.tokens), spent.held(totals.busy_s)
    failed = f", {totals.failed} failed" if totals.failed else ""
    return (
        f"{totals.prompts} prompts{failed}, {totals.tokens} tokens in {spent.wall_s:.1f} s: "
        f"{'no rate' if rate is None else f'{rate:.1f} tokens/s'} without the idle of {spent.idle_s:.1f} s; "
        f"duty asked {'none' if duty is None else f'{duty:g}'}, held {'unknown' if held is None else f'{held:.3f}'}; "
        f"longest unit {totals.longest_unit_s * 1000:.0f} ms"
    )
