"""The pages of the site that are not files of docs/: mkdocs calls the hooks below (mkdocs.yml).

    pip install -e . --group docs && mkdocs serve
    python -m checks.site evidence REPORT.json ...    # docs/evidence.json, from reports of `zoo parity --all`

README, CONTRIBUTING, SECURITY, CHANGELOG and examples/README.md become pages, and links between files become links
between pages.  The page of families is made of the registry, of docs/evidence.json and of benchmarks/results.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Extension = object
else:
    try:
        from griffe import Extension
    except ImportError:  # the extra docs
        Extension = object

ROOT = Path(__file__).parent.parent
EVIDENCE = ROOT / "docs" / "evidence.json"
# File of the repository -> page of the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
FILES = (
    "zoo/data/page.png",
    "LICENSE",
    "deploy/kubernetes.yaml",
    *(f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")),
)
MERMAID = ROOT / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"  # `npm install --no-save mermaid@11`
GUIDES = "Guides by job"  # a heading in mkdocs.yml
# Beginning of a benchmark's row, or the whole name of its file before the date -> model_type.
FAMILY_OF_ROW = {
    "bert-base": "bert",
    "minilm": "bert",
    "roberta-base": "roberta",
    "vit-base": "vit",
    "beit-base": "beit",
    "table-structure": "table-transformer",
    "trocr": "vision-encoder-decoder",
    "llama": "llama",
}
DEVICES = {"numpy": "NumPy", "torch:cpu": "torch", "onnx": "ONNX Runtime"}


def on_config(config: Any) -> None:
    """Diagrams are drawn by the site's own copy of mermaid, where there is one."""
    if MERMAID.is_file():
        config.extra_javascript.append("mermaid.min.js")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and files that are not in docs/."""
    File = importlib.import_module("mkdocs.structure.files").File

    def add(name: str, **source: Any) -> None:
        files.append(File.generated(config, name, **source))

    for source, name in PAGES.items():
        add(name, content=(ROOT / source).read_text(encoding="utf-8"))
    for name in FILES:
        add(name.replace("zoo/data/", ""), abs_src_path=str(ROOT / name))
    if MERMAID.is_file():
        add("mermaid.min.js", abs_src_path=str(MERMAID))
    add("evidence.md", content=families_page())
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the repository lead to their pages; a search finds the guides before longer pages."""
    if getattr(page, "parent", None) is not None and page.parent.title == GUIDES:
        page.meta["search"] = {"boost": 4}
    sources = {name: source for source, name in PAGES.items()}
    folder = (ROOT / sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")).parent

    def move_link(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if not found[1] or ":" in found[1] or not target.is_relative_to(ROOT):
            return found[0]
        name = target.relative_to(ROOT).as_posix()
        name = "index.md" if name == "docs/README.md" else PAGES.get(name, name)
        return f"]({name.removeprefix('docs/').removeprefix('zoo/data/')}{found[2]})"

    return re.sub(r"\]\(([^)#\s]*)((?:#[^)]*)?)\)", move_link, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Diagrams scroll on narrow screens (site.css)."""
    return re.sub(r'<pre class="mermaid">.*?</pre>', r'<div class="diagram">\g<0></div>', html, flags=re.DOTALL)


OPTION = re.compile(r"(?:^|(?<=[.:])  )((?:[a-z_]\w*)(?:,(?: or)? [a-z_]\w*)*): ", re.MULTILINE)


class Options(Extension):
    """The arguments that a docstring explains, "device: ...  dtype: ...", are a list on the page."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring and not obj.is_module:
            obj.docstring.value = OPTION.sub(r"\n\n- `\1`: ", obj.docstring.value)


def evidence(reports: list[Path]) -> dict[str, Any]:
    """For each device and family: how many checkpoints were compared, the worst with its error, and the date."""
    from zoo.registry import architectures

    out: dict[str, Any] = {}
    kind = architectures()
    for path in reports:
        report = json.loads(path.read_text(encoding="utf-8"))
        date = time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))
        for case in report["cases"]:
            device = "numpy" if case["backend"] == "numpy" and case["device"] == "cpu" else case["device"]
            device = "torch:cpu" if case["backend"] == "torch" else device
            device = out.setdefault(device, {"date": date, "versions": report["versions"], "families": {}})
            errors = [s["relative_l2"] for s in case["stages"] if s["relative_l2"] is not None]
            one = device["families"].setdefault(kind[case["architecture"]], {"checkpoints": 0, "hold": 0, "worst": 0.0})
            one["checkpoints"] += 1
            one["hold"] += case["holds"]
            if errors and max(errors) >= one["worst"]:
                # A checkpoint in a folder is known by the end of its path: the rest is of the machine that ran it.
                one |= {"worst": max(errors), "of": "/".join(Path(case["name"]).parts[-2:])}
    return out


def ratios_by_family() -> Mapping[str, list[tuple[float, str]]]:
    """For each family zoo's time over transformers', and the row with its engine and processor."""
    if str(ROOT) not in sys.path:  # mkdocs begins elsewhere
        sys.path.append(str(ROOT))
    from benchmarks.jobs import ENGINES
    from parity.specs import SPECS

    found: dict[str, list[tuple[float, str]]] = {}
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        engine = ENGINES.get(path.name.partition("-")[0], "")
        for name, ratio, spec in _ratios(result):
            label = next((b for b in FAMILY_OF_ROW if name.startswith(b) or path.name.startswith(b)), None)
            family = SPECS[spec].model_type if spec in SPECS else FAMILY_OF_ROW[label] if label else None
            if family and "backbone" not in name:
                found.setdefault(family, []).append((ratio, f"{name}, {engine}" if engine else name))
    return found


def _ratios(result: Mapping[str, Any]) -> Iterator[tuple[str, float, str | None]]:
    for row in result.get("rows", []):
        if "transformers" in row.get("ratios", {}):
            yield row["row"], row["ratios"]["transformers"]["ratio"], row.get("spec")
    for one in result.get("ratios", []):
        if one["theirs"].startswith("transformers"):
            yield f"{one['what']}, {one['ours']} / {one['theirs']}", one["ratio"], None


def families_page() -> str:
    """The page: a row for each family, proof by device and speed; then the classes of each."""
    from zoo.registry import FAMILIES

    proof = json.loads(EVIDENCE.read_text(encoding="utf-8"))
    speed = ratios_by_family()
    rows, classes = [], []
    for name, family in sorted(FAMILIES.items()):
        cells = [_proof(proof.get(device, {}), name) for device in DEVICES]
        times = sorted(speed.get(name, []))
        ends = [f"{time:.2f} {row}" for time, row in (*times[:1], *times[1:][-1:])]
        cells += [*ends, "", ""][:2]
        cells += [", ".join(gguf_names(name))]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        heads = ", ".join(f"`{architecture}`" for architecture in family.architectures)
        tasks = ", ".join(dict.fromkeys(task for head in family.heads if (task := family.task_of(head))))
        classes.append(f"| {name} | `{family.module}` | {heads} | {tasks} |")
    dates = "; ".join(
        f"{DEVICES[name]} {one['date']}, transformers {one['versions']['transformers']}" for name, one in proof.items()
    )
    return f"""# Families: proof and speed

Every family is compared with transformers in float32, stage by stage, on small random checkpoints in the layout of the
real ones, one for each head and variant. ✓ 7 means that all seven hold, with the largest relative L2 of any stage,
which may be 1e-5 ([the rule](parity.md#the-rule)). Compared: {dates}. The figures are [a file](evidence.json), made by
`zoo parity --all --json` for each device; [parity.md](parity.md#at-full-size) has those of full-size checkpoints.

Every family runs on NumPy, ONNX Runtime, OpenVINO and torch, in float32 and with weights of 16 bits; what a family
refuses its section in [families.md](families.md) says. Speed is zoo's time over transformers', the best and the worst
row that was measured; below 1 zoo is faster. [measurements.md](measurements.md) has all of them. GGUF: what llama.cpp
calls the family in files that zoo reads.

| family | {" | ".join(DEVICES.values())} | best | worst | GGUF |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

## Classes

| family | module | classes | tasks |
|---|---|---|---|
{chr(10).join(classes)}
"""


def gguf_names(model_type: str) -> list[str]:
    """llama.cpp's names of the architectures that are read as this family."""
    from zoo.weights.gguf.config import EXPERT_MODEL_TYPES, MODEL_TYPES
    from zoo.weights.gguf.names import NAMES

    return [name for name in NAMES if model_type in (MODEL_TYPES.get(name, name), EXPERT_MODEL_TYPES.get(name))]


def _proof(device: Mapping[str, Any], name: str) -> str:
    one = device.get("families", {}).get(name)
    if one is None:
        return "not recorded"
    sign = "✓" if one["hold"] == one["checkpoints"] else f"✗ {one['hold']} of"
    error = f"{one['worst']:.1e}".replace("-0", "\N{NON-BREAKING HYPHEN}")
    return f"{sign} {one['checkpoints']},\N{NO-BREAK SPACE}{error}"


def main() -> int:
    if sys.argv[1:2] != ["evidence"] or not sys.argv[2:]:
        print(__doc__, file=sys.stderr)
        return 2
    found = evidence([Path(name) for name in sys.argv[2:]])
    EVIDENCE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
