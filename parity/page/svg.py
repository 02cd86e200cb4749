"""matplotlib's SVG made smaller, and styled by the page that it is part of."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

# The properties of a node's style that are kept: sizes, without colours and fonts.
KEPT = {"fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "text-anchor", "font-size"}


def tidy(svg: bytes, ident: str, title: str, description: str, points: dict[str, list[str]]) -> str:
    """matplotlib's SVG for use inside of a page.

    Only ids with references stay.  Styles go, since the page's policy forbids them; ink takes the colour of the text
    around it.  The gid of a group becomes its class.  points: the title of each marker of a group, by gid.
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
