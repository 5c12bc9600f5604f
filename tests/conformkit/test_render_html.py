"""The page: well formed, safe, complete, readable on a narrow screen, and one file alone."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from oarbank_conformkit.checks import check
from oarbank_conformkit.render import html as page
from oarbank_conformkit.render import style
from oarbank_conformkit.render import timeline as picture
from oarbank_conformkit.report import Report
from oarbank_conformkit.timeline import timeline
from tests.conformkit import reports
from tests.conformkit.reports import MARKUP, every_kind, hostile, of, one

KINDS = every_kind()
VOID = {"meta", "br", "link", "img"}
NARROW_PX = 400
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Reader(HTMLParser):
    """Reads a page and holds what it found; a tag that is not closed in its place is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attrs in self.tags if (value := attrs.get(name)) is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_well_formed_and_asks_for_nothing(kind: str) -> None:
    found = Reader(page.render(KINDS[kind]))

    assert not {"script", "link", "img", "iframe", "object", "form"} & {tag for tag, _ in found.tags}
    assert [value for name in ("src", "srcset", "action", "style", "data") for value in found.values(name)] == []
    assert all(target.startswith("#") for target in found.values("href"))
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    ids = found.values("id")
    assert len(set(ids)) == len(ids)
    assert {target[1:] for target in found.values("href")} <= set(ids)
    assert {each for value in found.values("aria-labelledby") for each in value.split()} <= set(ids)


def test_styles_ask_for_nothing_either() -> None:
    assert "url(" not in style.COLOURS + style.PICTURE + style.PAGE
    assert "@import" not in style.COLOURS + style.PICTURE + style.PAGE


@pytest.mark.parametrize("kind", KINDS)
def test_every_check_stands_there_with_its_rule_and_its_sentence(kind: str) -> None:
    report = KINDS[kind]
    text = page.render(report)

    assert text.count('<li class="check ') == len(report.checks)
    for each in report.checks:
        assert f"<code>{each.rule}</code> " in text
    assert text.count("<svg ") == sum(timeline(run) is not None for run in report.duty_runs)


def test_what_others_wrote_is_text_and_no_markup() -> None:
    text = page.render(hostile())

    assert MARKUP not in text
    assert MARKUP in Reader(text).text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    text.encode("utf-8")


def test_what_went_wrong_stands_first_and_its_evidence_is_open() -> None:
    told = check("runner", "duty.burst", "no burst", "fail", "held at most 0.9", {"held": 0.9})
    text = page.render(of(one("pass"), told))

    assert text.index("What went wrong") < text.index("a pass check")
    assert '<a href="#check-1">no burst</a>' in text
    assert "<details open><summary>Evidence</summary>\n<dl>\n<dt>held</dt><dd>0.9</dd>" in text


@pytest.mark.parametrize(
    ("status", "kind"), [("pass", "pass"), ("warn", "pass"), ("unknown", "unknown"), ("fail", "fail")]
)
def test_the_verdict_is_a_sentence_and_not_a_colour_alone(status: str, kind: str) -> None:
    found = of(one(status))  # type: ignore[arg-type]
    text = page.render(found)

    sentence = {"pass": "conforms", "fail": "does not conform", "unknown": "could not tell whether"}[kind]
    assert f'<div class="verdict {kind}">\n<p><strong>' in text
    assert sentence in text.split("<strong>")[1].split("</strong>")[0]


def test_the_picture_says_in_words_what_it_shows() -> None:
    found = timeline(reports.held())

    assert found is not None
    said = picture.words(found)
    assert said.startswith("Asked 0.3; at most 0.4 is allowed, and 0.45 in any 2 s. Measured of the cpu")
    assert "Reported: 0.300, 0.300." in said
    assert said.endswith("5.11 s acknowledged; 5.12 s ended, exit 75.")


def test_the_picture_draws_every_line_and_moment() -> None:
    text = page.render(KINDS["GPU and CPU"])

    for kind in ("asked", "limit", "burst", "window", "bar", "bar second", "mean", "mean second", "told unjudged"):
        assert f'class="{kind}"' in text, kind
    for says in ("nudge: duty 0.3", "window opens", "window closes", "stop", "acknowledged", "ended, exit 75"):
        assert f">{says}</text>" in text, says


def places(root: ElementTree.Element) -> list[float]:
    """Every place across, in per cent."""
    names = ("x", "x1", "x2")
    values = [element.get(name, "") for element in root.iter() for name in names]
    return [float(value[:-1]) for value in values if value.endswith("%")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_that_stands_alone_is_a_file_of_its_own_and_stays_in_its_frame(kind: str) -> None:
    for run in KINDS[kind].duty_runs:
        found = timeline(run)
        if found is None:
            continue
        root = ElementTree.fromstring(picture.svg(found, "duty", alone=True))
        height = float(root.get("height", ""))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert all(0 <= place <= 100 for place in places(root))
        downs = [float(each.get(name) or 0) for each in root.iter() for name in ("y", "y1", "y2")]
        assert all(0 <= place <= height for place in downs)


LATE = [moment for moment in timeline(reports.held()).moments if moment.at_s > 4]  # type: ignore[union-attr]


def test_words_never_lie_across_another_s_line() -> None:
    found = timeline(reports.held())

    assert found is not None
    text = picture.svg(found, "duty")
    high = {says: float(re.search(rf'y="([\d.]+)"[^>]*>{says}</text>', text)[1]) for says in  # type: ignore[index]
            [moment.says for moment in found.moments]}  # fmt: skip
    late = [high[moment.says] for moment in LATE]
    assert late == sorted(late, reverse=True)
    assert high["nudge: duty 0.3"] < high["window opens"]


def lightness(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(scheme: int) -> None:
    found = [dict(re.findall(r"--([a-z0-9]+):(#[0-9a-f]{6})", part)) for part in style.COLOURS.split("@media")][scheme]
    for ground in ("ground", "panel"):
        for text in ("text", "quiet", "pass", "fail", "warn", "mean"):
            high, low = sorted((lightness(found[ground]), lightness(found[text])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, text)


def frame(text: str) -> str:
    """A page that shows another in a narrow frame and says how wide that one is."""
    return (
        f'<iframe id="f" style="width:{NARROW_PX}px;height:900px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        "<script>f.onload=()=>{document.title='width '+f.contentDocument.documentElement.scrollWidth}</script>"
    )


@pytest.mark.realtime
@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser (chromium) to lay the page out")
def test_nothing_is_wider_than_a_narrow_screen(tmp_path: Path) -> None:
    runs = (*hostile().duty_runs, *KINDS["GPU and CPU"].duty_runs, *KINDS["deaf to stop"].duty_runs)
    report: Report = of(*hostile().checks, *KINDS["GPU and CPU"].checks, duty_runs=runs)
    (tmp_path / "frame.html").write_text(frame(page.render(report)), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
             "--no-first-run", "--hide-scrollbars", "--dump-dom", f"--user-data-dir={tmp_path / 'own'}"]  # fmt: skip

    done = subprocess.run(
        [str(CHROMIUM), *flags, str(tmp_path / "frame.html")], capture_output=True, text=True, timeout=100, check=False
    )

    width = re.search(r"<title>width (\d+)</title>", done.stdout)
    assert width, done.stderr[-500:]
    assert int(width[1]) == NARROW_PX
