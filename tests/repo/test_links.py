"""Every link of every page leads somewhere: a file of this checkout, a heading of a page, or an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repo import pages
from tests.repo.test_house import ROOT

ADDRESS = ("https://", "http://", "mailto:")


def dead(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in pages.links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place) if place else page
        if link.startswith(ADDRESS):
            continue
        if not target.exists() or (anchor and anchor not in pages.anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", pages.pages(), ids=pages.shown)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


PLACES = ("packages/", "tests/", "tools/", "docs/", "schemas/", "benchmarks/", "examples/", ".github/", ".ci/")


@pytest.mark.parametrize("page", pages.pages(), ids=pages.shown)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """Whole paths from the root or from the page's folder, such as `packages/sdk/src`; `*` stands for any name."""
    named = [name for name in pages.inline_code(page) if name.startswith(PLACES) and not set(" <") & set(name)]
    found = {name for name in named for top in (ROOT, page.parent) if list(top.glob(name.rstrip("/")))}

    assert sorted(set(named) - found) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A title, with `code`\n\n```bash\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](other.md) [b](#top) [c](other.md#a-title-with-code) [d](https://example.org)\n`[e](none.md)`\n"
        "[f](none.md) [g](#bottom) [h](other.md#no-heading)\n"
    )

    assert dead(page) == ["none.md", "#bottom", "other.md#no-heading"]
