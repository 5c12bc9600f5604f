"""Figures on README.md and the benchmark results that they come from.

A paragraph that quotes figures is followed by a comment that says where each comes from. A result is what a benchmark
printed, in benchmarks/results/NAME.json; a figure is found there by a JSON pointer, perhaps times 100 or 1000:

    Held 0.991 of what is possible, at a cost of 1.9 µs a unit.
    <!-- figures: governor: 0.991 = /cases/0/held; 1.9 = /cost_s * 1000000 -->

A figure is true when the result, rounded to as many digits as are shown, is what is shown. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.repo.pages import prose

NUMBER = r"\d+(?:[.,]\d+)?"
_FIGURE = re.compile(rf"(?<![\w.-])({NUMBER})\s?(?:%|ms|µs|s|seconds|tokens/s|times|MiB|GB|fps)(?![\w/])")
_COMMENT = re.compile(r"\n<!-- figures: (?P<name>\w+): (?P<rows>.*?) -->", re.DOTALL)
_ROW = re.compile(rf"(?P<shown>{NUMBER}) = (?P<pointer>/\S*)(?: \* (?P<times>\d+))?")


def faults(page: str, results: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a page's figures, each in a sentence; `results` are the benchmarks' results by name."""
    found = []
    for paragraph in re.split(r"\n{2,}", prose(page)):
        proved: set[str] = set()
        text = _COMMENT.sub("", paragraph)
        for comment in _COMMENT.finditer(paragraph):
            name, rows = comment["name"], [row.strip() for row in comment["rows"].split(";")]
            for row in rows:
                told = _ROW.fullmatch(row)
                if told is None:
                    found.append(f"{name}: {row!r} must read SHOWN = /POINTER [* TIMES]")
                    continue
                proved.add(told["shown"])
                found += _row_faults(name, told, text, results)
        bare = [one for one in _FIGURE.findall(text) if one not in proved]
        found += [f"{one}: must name its benchmark in a comment below" for one in bare]
    return found


def _row_faults(name: str, told: re.Match[str], text: str, results: Mapping[str, Any]) -> list[str]:
    shown, pointer = told["shown"], told["pointer"]
    if not re.search(rf"(?<![\w.]){re.escape(shown)}(?![\d])", text):
        return [f"{name}: {shown} must stand in the paragraph above"]
    if name not in results:
        return [f"{name}: must be a result in benchmarks/results; found none"]
    try:
        value = at(results[name], pointer) * int(told["times"] or 1)
    except (KeyError, IndexError, ValueError, TypeError):
        return [f"{name}: {pointer} must be a number in the result; found none"]
    digits = len(shown.replace(",", ".").partition(".")[2])
    if f"{value:.{digits}f}" != shown.replace(",", "."):
        return [f"{name}: {pointer} is {value:.{digits}f}; the page shows {shown}"]
    return []


def at(value: Any, pointer: str) -> float:
    """Return the number at a JSON pointer. Raises KeyError, IndexError, ValueError, TypeError where there is none."""
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(pointer)
    return value
