"""From matplotlib's SVG to one that a page can hold, and dress."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

# Of a node's style, what says where and how wide, and not in which colour or font.
KEPT = {"fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "text-anchor", "font-size"}


def tidy(svg: bytes, ident: str, title: str, description: str, points: dict[str, list[str]]) -> str:
    """matplotlib's SVG for use inside of a page.

    Without ids but those that are referred to, without styles (which the page's policy forbids), with the colour of
    its surroundings for ink.  Groups have their gid as class.  points: by gid, the title of each of its markers.
    """
    root = ET.fromstring(svg)
    for parent in root.iter():
        parent.tag = parent.tag.rpartition("}")[2]
        for child in list(parent):
            if child.tag.endswith(("metadata", "style")):
                parent.remove(child)
    for node in root.iter():
        _attributes(node)
    for parent in root.iter():
        for child in [child for child in parent if child.tag in ("g", "defs") and not len(child)]:
            parent.remove(child)
    for group in root.iter("g"):
        if texts := points.get(group.get("class", "")):
            for use, text in zip(group.findall("g/use"), texts, strict=True):
                ET.SubElement(use, "title").text = text
    labels = {"role": "img", "aria-labelledby": f"{ident}-title", "aria-describedby": f"{ident}-text"}
    root.attrib = {"viewBox": root.attrib["viewBox"], **labels}
    for tag, end, text in (("desc", "text", description), ("title", "title", title)):
        node = ET.Element(tag, id=f"{ident}-{end}")
        node.text = text
        root.insert(0, node)
    return ET.tostring(root, encoding="unicode")


def _attributes(node: ET.Element) -> None:
    node.attrib = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
    style = dict(re.findall(r"([\w-]+): ([^;]+)", node.attrib.pop("style", "")))
    for name in ("fill", "stroke"):
        if style.get(name, "none") != "none":
            style[name] = "currentColor"
    node.attrib |= {name: value for name, value in style.items() if name in KEPT}
    if node.tag == "g" and "id" in node.attrib:
        ident = node.attrib.pop("id")
        if not re.fullmatch(r".*_\d+|matplotlib.*", ident):
            node.set("class", ident)
    for name in ("d", "transform", "x", "y"):
        if name in node.attrib:
            node.set(name, _shorter(node.attrib[name]))
    if node.tag != "text":
        node.text = None
    node.tail = None


def _shorter(numbers: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.1f}", " ".join(numbers.split()))
