"""Wrong use of a command line is one line on stderr and exit status 2: what is wrong, what was meant, where help is.

For every command of our packages and for runners. Nothing is looked at here but the words that were typed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

WRONG_USE = 2
MOST_SHOWN = 80
"""Characters of what was typed that the line shows."""


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line, which names the sub-command; argparse puts the whole usage before it."""

    _typed: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        line = " ".join(message.split()).removeprefix("argument ").rstrip(".")
        print(f"{self.prog}: {line}{self._meant()}; see {self.prog} --help", file=sys.stderr)
        sys.exit(WRONG_USE)

    def parse_known_args(  # type: ignore[override]  (argparse's own overloads cannot be repeated)
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, and let nothing pass that nobody knows: here the sub-command's name is known."""
        self._typed = sys.argv[1:] if args is None else list(args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {_shown(' '.join(unknown))}")
        return found, unknown

    def _meant(self) -> str:
        """The option that is closest to one that was typed and that is none. What no help shows is never named."""
        known = [name for one in self._actions if one.help != argparse.SUPPRESS for name in one.option_strings]
        every = [name for one in self._actions for name in one.option_strings]
        for word in self._typed:
            option = word.partition("=")[0]
            if option == "--":
                break
            if option.startswith("--") and not any(name.startswith(option) for name in every):
                return _nearest(option, known)
        return ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a choice that is none, as argparse does, and name the one that was perhaps meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            choices = [str(choice) for choice in action.choices or ()]
            listed = ", ".join(choices)
            message = f"invalid choice: {_shown(repr(value))} (choose from {listed}){_nearest(str(value), choices)}"
            raise argparse.ArgumentError(action, message) from None


def _nearest(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    close = get_close_matches(word[:MOST_SHOWN], list(known), n=1, cutoff=0.7)
    return f" (did you mean {close[0]}?)" if close else ""


def _shown(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
