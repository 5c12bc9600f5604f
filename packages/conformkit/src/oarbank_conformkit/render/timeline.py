"""A timeline as SVG: what was asked, what was reported, what was measured, and when things happened. Pure.

Places across are per cent and places down are pixels, so a picture fills a page of any width and its letters keep their
size. Colours come from the style of the page; a picture that stands alone carries them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from oarbank_conformkit.judge.duty import limit
from oarbank_conformkit.render import style
from oarbank_conformkit.render.characters import escaped
from oarbank_conformkit.timeline import Moment, Series, Timeline

LEFT, RIGHT = 9.0, 98.0
"""Where the plot begins and ends, in per cent of the width."""

PLOT_PX = 190
LANE_PX = 15
LETTER = 1.8
"""Width of a letter and its part of the gap, in per cent of the narrowest page that is looked at, 400 px."""

ALONE_PX = 780
"""Width of a picture that stands alone."""

MOST_TOLD = 300
"""More reports than these are not drawn; the report lists them all."""

_SCALES = ((0.25, 0.05), (0.5, 0.1), (0.75, 0.25), (1.05, 0.25), (1.5, 0.5), (2.0, 0.5), (4.0, 1.0))
_STEPS_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where things lie."""

    start_s: float
    end_s: float
    top_px: float
    most: float  # share at the top
    step: float  # share between two lines across

    def x(self, at_s: float) -> float:
        """Per cent of the width."""
        part = (at_s - self.start_s) / (self.end_s - self.start_s)
        return round(LEFT + (RIGHT - LEFT) * min(max(part, 0.0), 1.0), 3)

    def y(self, share: float) -> float:
        """Pixels from the top."""
        return round(self.top_px + PLOT_PX * (1 - min(max(share / self.most, 0.0), 1.0)), 1)

    @property
    def bottom_px(self) -> float:
        return self.top_px + PLOT_PX


def svg(found: Timeline, ident: str, *, alone: bool = False) -> str:
    """Return the picture as one `svg` element; `ident` must be unique on its page, `alone` makes it a file of its own.

    It has a title and a description that say in words what it shows.
    """
    lanes = _lanes(found)
    plot = _Plot(found.start_s, found.end_s, max(lane for lane, _, _ in lanes) * LANE_PX + 28.0, *_most(found))
    legend = _legend(found)
    height = plot.bottom_px + 38 + 17 * ((len(legend) + 1) // 2)
    size = f'width="{ALONE_PX}" height="{height:g}" viewBox="0 0 {ALONE_PX} {height:g}"'
    size = f'xmlns="http://www.w3.org/2000/svg" {size}' if alone else f'width="100%" height="{height:g}"'
    head = f'<svg class="timeline" {size} role="img" aria-labelledby="{ident}-title {ident}-desc">'
    parts = [
        head,
        f'<title id="{ident}-title">Duty spec {escaped(found.name)}: shares over time</title>',
        f'<desc id="{ident}-desc">{escaped(words(found))}</desc>',
        f"<style>{style.COLOURS}{style.PICTURE}</style>" if alone else "",
        '<rect class="ground" width="100%" height="100%"/>' if alone else "",
        *_background(plot, found),
        *_bars(plot, found.series),
        *_limits(plot, found),
        *_told(plot, found),
        *_means(plot, found.series),
        *_asked(plot, found),
        *_moments(plot, lanes),
        *_legend_rows(legend, plot.bottom_px + 38),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def words(found: Timeline) -> str:
    """Return what the picture shows, for those who cannot see it."""
    asked = f"Asked {found.duty:g}; at most {found.limit:g} is allowed, and {found.burst_limit:g} in any 2 s."
    shares = [
        f"Measured of the {one.device} ({one.source}): between {min(bar.share for bar in one.bars):.3f} and "
        f"{max(bar.share for bar in one.bars):.3f} in {found.bucket_s:.2f} s."
        for one in found.series
        if one.bars
    ]
    told = ", ".join(f"{one.stretch.share:.3f}" for one in found.told[:20])
    more = f" and {len(found.told) - 20} more" if len(found.told) > 20 else ""
    reported = f"Reported: {told}{more}." if told else "Nothing was reported."
    moments = "; ".join(f"{moment.at_s:.2f} s {moment.says}" for moment in found.moments)
    return " ".join([asked, *(shares or ["Nothing was measured."]), reported, f"Moments: {moments}."])


def _most(found: Timeline) -> tuple[float, float]:
    """The share at the top of the plot, and the one between two lines across it."""
    highest = max(
        [found.burst_limit, *(limit(one.share) for one in found.asked)]
        + [one.stretch.share for one in found.told]
        + [bar.share for one in found.series for bar in one.bars]
    )
    return next((scale for scale in _SCALES if highest <= scale[0] * 0.98), (highest * 1.05, highest * 1.05 / 4))


# ---- the plot -----------------------------------------------------------------------------------------


def _background(plot: _Plot, found: Timeline) -> Iterator[str]:
    if found.window is not None:
        left, right = map(plot.x, found.window)
        yield _rect("window", left, right, plot.top_px, plot.bottom_px)
    yield f'<text class="axis" x="0" y="{plot.top_px - 12:g}">share</text>'
    for number in range(round(plot.most / plot.step) + 1):
        share = number * plot.step
        y = plot.y(share)
        yield _line("grid", LEFT, RIGHT, y, y)
        yield f'<text class="axis" x="{LEFT - 1}%" y="{y + 4:g}" text-anchor="end">{_short(share)}</text>'
    length = plot.end_s - plot.start_s
    step = next((step for step in _STEPS_S if length / step <= 8), length)
    number = 0
    while number * step <= plot.end_s:
        x, y = plot.x(number * step), plot.bottom_px + 15
        yield f'<text class="axis" x="{x}%" y="{y:g}" text-anchor="middle">{number * step:g} s</text>'
        number += 1


def _bars(plot: _Plot, series: Sequence[Series]) -> Iterator[str]:
    for place, one in enumerate(series):
        for bar in one.bars:
            left, right = plot.x(bar.start_s), plot.x(bar.end_s)
            if right > left:
                yield _rect(_kind("bar", place), left, right, plot.y(bar.share), plot.bottom_px)


def _means(plot: _Plot, series: Sequence[Series]) -> Iterator[str]:
    for place, one in enumerate(series):
        means = one.means if len(one.means) > 1 else one.means * 2  # a single one shows as a dot
        for (at_s, share), (next_s, next_share) in pairwise(means):
            yield _line(_kind("mean", place), plot.x(at_s), plot.x(next_s), plot.y(share), plot.y(next_share))


def _kind(name: str, place: int) -> str:
    return name if place == 0 else f"{name} second"


def _told(plot: _Plot, found: Timeline) -> Iterator[str]:
    for one in found.told[:MOST_TOLD]:
        if one.stretch.end_s <= plot.start_s or one.stretch.start_s >= plot.end_s:
            continue
        kind = "told" if one.judged else "told unjudged"
        left, right, y = plot.x(one.stretch.start_s), plot.x(one.stretch.end_s), plot.y(one.stretch.share)
        yield _line(kind, left, max(right, left + 0.5), y, y)
        yield _line(kind, right, right, y - 4, y + 4)


def _asked(plot: _Plot, found: Timeline) -> Iterator[str]:
    """Thin, and on top: what was reported is thick and lies just below it where all is well."""
    for one in found.asked:
        yield _line("asked", plot.x(one.start_s), plot.x(one.end_s), plot.y(one.share), plot.y(one.share))


def _limits(plot: _Plot, found: Timeline) -> Iterator[str]:
    for one in found.asked:
        y = plot.y(limit(one.share))
        yield _line("limit", plot.x(one.start_s), plot.x(one.end_s), y, y)
    if found.window is not None:
        left, right = map(plot.x, found.window)
        yield _line("burst", left, right, plot.y(found.burst_limit), plot.y(found.burst_limit))


def _moments(plot: _Plot, lanes: list[tuple[int, bool, Moment]]) -> Iterator[str]:
    for lane, leftwards, moment in lanes:
        x, y = plot.x(moment.at_s), plot.top_px - 12 - lane * LANE_PX
        anchor, gap = ("end", -4) if leftwards else ("start", 4)
        yield _line("moment", x, x, y - 10, plot.bottom_px)
        yield f'<text x="{x}%" y="{y:g}" dx="{gap}" text-anchor="{anchor}">{escaped(moment.says)}</text>'


def _lanes(found: Timeline) -> list[tuple[int, bool, Moment]]:
    """A lane above the plot for each moment, counted upwards, and whether its words stand to the left of its line.

    Where lines stand close, the words of each must not lie across another's line: of words to the left the later are
    higher, of words to the right the earlier. Words of one lane must not meet, or those to the left go higher.
    """
    length_s = found.end_s - found.start_s
    middle = found.start_s + 0.55 * length_s
    early = [moment for moment in reversed(found.moments) if moment.at_s < middle]
    late = [moment for moment in found.moments if moment.at_s >= middle]

    def meet(one: Moment, other: Moment) -> bool:
        apart = (other.at_s - one.at_s) / length_s * (RIGHT - LEFT)
        return apart < LETTER * (len(one.says) + len(other.says))

    up = 0
    while any(meet(*pair) for pair in zip(early[up:], late, strict=False)):
        up += 1
    lanes = [(lane, False, moment) for lane, moment in enumerate(early)]
    return lanes + [(lane + up, True, moment) for lane, moment in enumerate(late)]


# ---- the legend ---------------------------------------------------------------------------------------


def _legend(found: Timeline) -> list[tuple[str, str]]:
    asked = " or ".join(dict.fromkeys(f"{one.share:g}" for one in found.asked))
    rows = [("asked", f"asked {asked}"), ("told", "reported")]
    limits = " or ".join(dict.fromkeys(f"{limit(one.share):g}" for one in found.asked))
    rows += [("limit", f"at most {limits}"), ("burst", f"at most {found.burst_limit:g} in any 2 s")]
    for place, one in enumerate(found.series):
        which = "" if len(found.series) == 1 else f", {one.device}"
        rows.append((_kind("bar", place), f"measured{which}, each {found.bucket_s:.2g} s"))
        rows.append((_kind("mean", place), f"measured{which}, mean of 2 s"))
    return rows


def _legend_rows(legend: list[tuple[str, str]], top_px: float) -> Iterator[str]:
    """Give the legend in two columns."""
    for place, (kind, says) in enumerate(legend):
        x, y = LEFT + 46 * (place % 2), top_px + 17 * (place // 2)
        if kind.startswith("bar"):
            yield _rect(kind, x, x + 3.5, y - 5, y + 5)
        else:
            yield _line(kind, x, x + 3.5, y, y)
        yield f'<text x="{x + 4.5}%" y="{y + 4:g}">{escaped(says)}</text>'


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:g}%" x2="{x2:g}%" y1="{y1:g}" y2="{y2:g}"/>'


def _rect(kind: str, left: float, right: float, top: float, bottom: float) -> str:
    width = round(right - left, 3)
    return f'<rect class="{kind}" x="{left:g}%" width="{width:g}%" y="{top:g}" height="{max(bottom - top, 0):g}"/>'


def _short(share: float) -> str:
    return f"{share:.3f}".rstrip("0").rstrip(".")
