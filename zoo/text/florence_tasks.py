"""Florence-2's tasks (Xiao et al. 2023, https://arxiv.org/abs/2311.06242): what a task's token asks, and what the
answer says, with places in pixels, as transformers' Florence2Processor has both.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..errors import InputError, nearest

BINS = 1000  # <loc_N> counts in this many parts of a side
QUESTIONS_ALONE = {
    "<OCR>": "What is the text in the image?",
    "<OCR_WITH_REGION>": "What is the text in the image, with regions?",
    "<CAPTION>": "What does the image describe?",
    "<DETAILED_CAPTION>": "Describe in detail what is shown in the image.",
    "<MORE_DETAILED_CAPTION>": "Describe with a paragraph what is shown in the image.",
    "<OD>": "Locate the objects with category name in the image.",
    "<DENSE_REGION_CAPTION>": "Locate the objects in the image, with their descriptions.",
    "<REGION_PROPOSAL>": "Locate the region proposals in the image.",
}
QUESTIONS_WITH_INPUT = {
    "<CAPTION_TO_PHRASE_GROUNDING>": "Locate the phrases in the caption: {input}",
    "<REFERRING_EXPRESSION_SEGMENTATION>": "Locate {input} in the image with mask",
    "<REGION_TO_SEGMENTATION>": "What is the polygon mask of region {input}",
    "<OPEN_VOCABULARY_DETECTION>": "Locate {input} in the image.",
    "<REGION_TO_CATEGORY>": "What is the region {input}?",
    "<REGION_TO_DESCRIPTION>": "What does the region {input} describe?",
    "<REGION_TO_OCR>": "What text is in the region {input}?",
}
BOXES = ("<OD>", "<DENSE_REGION_CAPTION>")
POLYGONS = ("<REFERRING_EXPRESSION_SEGMENTATION>", "<REGION_TO_SEGMENTATION>")
_LOC = r"<loc_(\d+)>"
OCR_PATTERN = r"(.+?)" + _LOC * 8  # the one that files name
_PLACES = r"(?:<loc_\d+>){4,}"
_BOX = re.compile(_LOC * 4)
_MARKS = r"(?:<loc_\d+>|<sep>|<poly>|</poly>)"
_PHRASE = re.compile(r"^\s*(.*?)(?=</?od>|</?box>|</?bbox>|<loc_)")
_POLYGON_PHRASE = re.compile(r"^\s*(.*?)(?=</?od>|</?box>|</?bbox>|<loc_|<poly>)")
_POLYGON = re.compile(r"((?:<loc_\d+>)+)(?:<sep>|$)")


def question_of(prompt: str) -> str:
    """The question that a prompt with a task's token stands for; another prompt is a question itself."""
    for token, question in QUESTIONS_ALONE.items():
        if token in prompt:
            if prompt != token:
                raise InputError(f"{token} is a prompt by itself, and {prompt!r:.80} has more")
            return question
    token = next((token for token in QUESTIONS_WITH_INPUT if token in prompt), None)
    if token is None:
        return prompt
    return QUESTIONS_WITH_INPUT[token].replace("{input}", prompt.replace(token, "").strip())


def read_places(answer: str, prompt: str, size: tuple[int, int], unwanted: frozenset[str] = frozenset()) -> Any:
    """{task: what the answer says}, where the prompt has a task's token.  size: height and width of the image, in whose
    pixels places are.  unwanted: phrases that are nothing in the image.
    """
    known = (*QUESTIONS_ALONE, *QUESTIONS_WITH_INPUT)
    task = next((token for token in known if token in prompt), None)
    if task is None:
        named = re.match(r"<[A-Za-z_]+>", prompt)
        guess = nearest(named[0], known) if named else ""
        raise InputError(f"the prompt {prompt!r:.80} has no task's token, expected one of {', '.join(known)}{guess}")
    text = re.sub("</?s>|<pad>", "", answer)
    if task == "<OCR_WITH_REGION>":
        found = [(content.strip(), _points(bins, size)) for content, *bins in re.findall(OCR_PATTERN, text)]
        return {task: {"quad_boxes": [points for _, points in found], "labels": [label for label, _ in found]}}
    if task in BOXES or task == "<REGION_PROPOSAL>":
        pairs = _boxes(text, size, is_named=task in BOXES)
        return {task: {"bboxes": [box for box, _ in pairs], "labels": [label for _, label in pairs]}}
    if task == "<CAPTION_TO_PHRASE_GROUNDING>":
        pairs = _boxes(text, size, unwanted=unwanted)
        return {task: {"bboxes": [box for box, _ in pairs], "labels": [label for _, label in pairs]}}
    if task in POLYGONS:
        outlines = _polygons(text, size, is_named=False)
        return {task: {"polygons": [shape for shape, _ in outlines], "labels": [label for _, label in outlines]}}
    if task == "<OPEN_VOCABULARY_DETECTION>":
        outlines = _polygons(text, size) if "<poly>" in text else []
        pairs = [] if "<poly>" in text else _boxes(text, size)
        return {
            task: {
                "bboxes": [box for box, _ in pairs],
                "bboxes_labels": [label for _, label in pairs],
                "polygons": [shape for shape, _ in outlines],
                "polygons_labels": [label for _, label in outlines],
            }
        }
    return {task: re.sub("</?s>", "", answer).strip()}


def _points(bins: Any, size: tuple[int, int]) -> list[int]:
    """Pixels of x, y, x, y, ... : the middle of each part of a side, in float32 as in transformers."""
    height, width = size
    steps = np.float32(width / BINS), np.float32(height / BINS)
    return [int((np.float32(n) + np.float32(0.5)) * steps[i % 2]) for i, n in enumerate(map(int, bins))]


def _boxes(
    text: str, size: tuple[int, int], is_named: bool = True, unwanted: frozenset[str] = frozenset()
) -> list[tuple[list[int], str]]:
    """Boxes, each with the phrase before it; of a phrase with several, in their order."""
    out: list[tuple[list[int], str]] = []
    for part in re.findall(rf"[^<]+{_PLACES}" if is_named else _PLACES, text):
        found = _PHRASE.search(part)
        if found is None or (phrase := found[0].strip()) in unwanted:
            continue
        label = phrase.encode("ascii", "ignore").decode("ascii")
        out += [(_points(box.groups(), size), label) for box in _BOX.finditer(part)]
    return out


def _polygons(text: str, size: tuple[int, int], is_named: bool = True) -> list[tuple[list[list[int]], str]]:
    """Outlines, each a list of polygons, with the phrase before them."""
    out: list[tuple[list[list[int]], str]] = []
    for part in re.findall(rf"[^<]+{_MARKS}{{4,}}" if is_named else rf"{_MARKS}{{4,}}", text):
        found = _POLYGON_PHRASE.search(re.sub(r"^<loc_\d+>", "", part, count=1))
        if found is None:
            continue
        pieces = re.findall("<poly>(.*?)</poly>", part) if "<poly>" in part and "</poly>" in part else [part]
        for piece in pieces:
            bins = [re.findall(_LOC, polygon) for polygon in _POLYGON.findall(piece)]
            if bins:
                out.append(([_points(one[: len(one) // 2 * 2], size) for one in bins], found[0].strip()))
    return out
