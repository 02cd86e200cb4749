"""Small PDFs, written by hand: nothing but PDFium reads them."""

from __future__ import annotations

from collections.abc import Sequence

FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def text(x: float, y: float, words: str, size: float = 12) -> str:
    """Content that shows words with their base line's left end at (x, y), in points from the lower left corner."""
    return f"BT /F1 {size} Tf {x} {y} Td ({words}) Tj ET\n"


def line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"{x0} {y0} m {x1} {y1} l S\n"


def stream(content: str, entries: str = "") -> bytes:
    """An object of `pdf` with content, such as a form; entries: of its dictionary."""
    data = content.encode("latin-1")
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(data), entries.encode(), data)


def pdf(
    pages: Sequence[str],
    extra: str = "",
    catalog: str = "",
    size: tuple[float, float] = (300, 200),
    fonts: str = "",
    resources: str = "",
    objects: Sequence[bytes] = (),
) -> bytes:
    """Pages of `size` points; extra: of each page's dictionary, such as "/Rotate 90"; catalog: of the document's.

    fonts: of each page, beside F1; resources: beside fonts.  They may refer to `objects`, numbered from 100.
    """
    bodies = {1: f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode()}
    for i, content in enumerate(pages):
        bodies[3 + 2 * i] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {4 + 2 * i} 0 R "
            f"/Resources << /Font << /F1 {FONT} {fonts} >> {resources} >> {extra} >>"
        ).encode()
        bodies[4 + 2 * i] = stream(content)
    bodies |= {100 + i: body for i, body in enumerate(objects)}
    kids = " ".join(f"{3 + 2 * i} 0 R" for i in range(len(pages)))
    bodies[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number in sorted(bodies):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, bodies[number])
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \n"
    out += b"".join(
        b"%d 1\n%010d 00000 n \n" % (number, place) for number, place in zip(sorted(bodies), places, strict=True)
    )
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (max(bodies) + 1, start)
    return bytes(out)
