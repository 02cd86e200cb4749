"""A new reader finds how to do ten jobs: from README, by links, in at most three clicks; the page shows the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
START, MOST = ROOT / "README.md", 3
# The job -> the page that says how to do it, and what must stand there to copy.
JOBS = {
    "the tables of a PDF as a spreadsheet": ("docs/tables.md", "zoo table report.pdf"),
    "search in my own texts": ("docs/search.md", "zoo.load("),
    "chat with a GGUF file on this machine": ("docs/chat.md", "zoo chat"),
    "sort texts or images into classes": ("docs/tasks.md", "zoo.load("),
    "read the text in an image": ("docs/ocr.md", "zoo-read"),
    "a result for each row of a large file": ("docs/batch.md", "zoo map"),
    "train on my own labels": ("docs/finetuning.md", "zoo finetune"),
    "a server that OpenAI's clients can call": ("docs/serving.md", "zoo serve"),
    "replace sentence-transformers in a program": ("docs/from-sentence-transformers.md", "SentenceTransformer"),
    "deploy without a network": ("docs/deploy.md", "zoo lock"),
}


def links(page: Path) -> set[Path]:
    """The pages of the repository that a page links to."""
    found = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in found if "://" not in link}


@pytest.fixture(scope="module")
def clicks() -> dict[Path, int]:
    """The least number of clicks from README to each page."""
    found, last = {START: 0}, {START}
    while last:
        count = found[next(iter(last))] + 1
        last = {to for page in last for to in links(page) if to not in found}
        found |= dict.fromkeys(last, count)
    return found


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_found_in_three_clicks(clicks: dict[Path, int], job: str) -> None:
    page, shown = JOBS[job]
    assert clicks.get(ROOT / page, MOST + 1) <= MOST
    assert shown in (ROOT / page).read_text(encoding="utf-8")


def test_every_page_is_found(clicks: dict[Path, int]) -> None:
    far = {page.name for page in (ROOT / "docs").glob("*.md") if clicks.get(page, MOST + 1) > MOST}
    assert far <= {"api.md"}  # which the site makes of docstrings, and has in its menu
