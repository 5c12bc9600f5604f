"""The Markdown pages of this checkout: their links, headings, and the commands that their blocks show.

Reads pages and judges nothing. A block of `bash` is one command; in a block of `console` each line behind `$ ` is one,
with the lines that a backslash continues. A block is not run where a mark says why: `# not run here: WHY` as its first
line, or `<!-- not run here: WHY -->` on the line above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.repo.test_house import ROOT, tracked

_BLOCK = re.compile(r"(?P<above>[^\n]*)\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^(?:# not run here: |<!-- not run here: )(?P<why>.*?)(?: -->)?$")
_ANY_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Command:
    """A command as a page shows it; `why_not` says why no test runs it, None where one does."""

    page: str
    text: str
    why_not: str | None

    @property
    def id(self) -> str:
        return f"{self.page}: {self.text.splitlines()[0][:50]}"


def pages() -> list[Path]:
    """Every page that people read; templates are what a command writes, not pages of ours."""
    return [path for path in tracked("*.md") if "templates" not in path.parts]


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(page: Path) -> list[Command]:
    """The commands of a page, in order."""
    return commands_of(page.read_text("utf-8"), shown(page))


def commands_of(text: str, page: str) -> list[Command]:
    """The commands of the text of a page."""
    found = []
    for block in _BLOCK.finditer("\n" + text):
        first = block["text"].partition("\n")[0]
        mark = _MARK.match(block["above"].strip()) or _MARK.match(first)
        texts = {"bash": [block["text"]], "console": prompts(block["text"])}.get(block["kind"], [])
        found += [Command(page, text.strip(), mark and mark["why"]) for text in texts]
    return found


def prompts(block: str) -> list[str]:
    """The commands behind the `$ ` of a transcript."""
    return [found.removeprefix("$ ") for found in re.findall(r"^\$ (?:.*\\\n)*.*$", block, re.MULTILINE)]


def prose(text: str) -> str:
    """A page without its code."""
    return _ANY_CODE.sub("", text)


def inline_code(page: Path) -> list[str]:
    """What stands between single backticks on a page, in order; code blocks are left out."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def links(page: Path) -> list[str]:
    """The targets of a page's links, in order."""
    return _LINK.findall(prose(page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors that its headings get where Markdown is shown: lower case, dashes for spaces, the rest left out."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
