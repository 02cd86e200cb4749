"""This module writes elements of HTML."""


def tag(name: str, inner: str, style: str = "", group: str = "") -> str:
    """Return an element with a style and a class, where these are not empty."""
    look = f' class="{group}"' if group else ""
    look += f' style="{style}"' if style else ""
    return f"<{name}{look}>{inner}</{name}>"


def div(inner: str, style: str = "", group: str = "") -> str:
    return tag("div", inner, style, group)


def span(inner: str, style: str = "") -> str:
    return tag("span", inner, style)


def element(name: str, **attributes: float | str) -> str:
    """Return an empty element of SVG; numbers are rounded, and an underscore stands for a hyphen."""
    said = (f'{k.replace("_", "-")}="{v if isinstance(v, str) else f"{v:.0f}"}"' for k, v in attributes.items())
    return f"<{name} {' '.join(said)}/>"
