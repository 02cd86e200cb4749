"""README and docs say what is so: their Python runs, their commands run or are parsed, their links lead somewhere.

Names of the hub stand for the real MiniLM, and for random checkpoints of the same layouts.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint
from PIL import Image

import zoo.hub
from benchmarks import jobs, pages
from checks.blocks import PAGES, blocks
from parity.checkpoints import build
from parity.vocabularies import WRITERS
from tests.image_text_checkpoint import (
    write_donut_checkpoint,
    write_florence2_checkpoint,
    write_image_text_checkpoint,
)
from tests.small_pdf import pdf, text
from zoo.apps.cli import main
from zoo.apps.tables import Table
from zoo.apps.tables.batch import extract_pages
from zoo.checkpoint.files import local_checkpoint
from zoo.checkpoint.names import as_name

ROOT = Path(__file__).parent.parent
COLBERT = "colbert-ir/colbertv2.0"
LAYOUT = "microsoft/layoutlmv3-base-finetuned-funsd"
STAND_INS = {
    "google-bert/bert-base-uncased": "bert-base-uncased",
    "studio-ousia/luke-base": "luke-base",
    **{
        f"studio-ousia/luke-large-finetuned-{x}": f"luke-large-finetuned-{x}"
        for x in ("open-entity", "tacred", "conll-2003")
    },
    "colbert-ir/colbertv2.0": "bert-base-uncased",
    "naver/splade-cocondenser-ensembledistil": "bert-base-uncased",
    "cardiffnlp/twitter-roberta-base-sentiment": "twitter-roberta-base-sentiment",
    "sentence-transformers/all-mpnet-base-v2": "all-mpnet-base-v2",
    "dslim/bert-base-NER": "bert-base-NER",
    "deepset/bert-base-cased-squad2": "bert-base-squad2",
    "cross-encoder/ms-marco-MiniLM-L6-v2": "ms-marco-MiniLM-L6-v2",
    "google/vit-base-patch16-224": "vit-base-patch16-224",
    "microsoft/beit-base-finetuned-ade-640-640": "beit-base-finetuned-ade-640-640",
    "facebook/detr-resnet-50": "detr-resnet-50-timm",
    "facebook/mask2former-swin-tiny-coco-instance": "mask2former-swin-tiny-coco-instance",
    "depth-anything/Depth-Anything-V2-Small-hf": "Depth-Anything-V2-Small",
    "facebook/sam-vit-base": "sam-vit-base",
    "usyd-community/vitpose-base-simple": "vitpose-base-simple",
    LAYOUT: "layoutlmv3-funsd",
    "PaddlePaddle/PP-LCNet_x1_0_table_cls_safetensors": "pp-lcnet-table-cls",
    "PaddlePaddle/PP-DocLayoutV3_safetensors": "pp-doclayout-v3",
    "nvidia/segformer-b0-finetuned-ade-512-512": "segformer-b0-finetuned-ade-512-512",
    "microsoft/table-transformer-detection": "table-transformer-detection",
    "microsoft/table-transformer-structure-recognition-v1.1-all": "table-transformer-structure-recognition-v1.1-all",
    "microsoft/trocr-base-printed": "trocr-base-handwritten",
    "google/flan-t5-small": "flan-t5-small",
    "Salesforce/blip-image-captioning-base": "blip-image-captioning-base",
    "google-t5/t5-small": "t5-small",
    "openai/whisper-base": "whisper-base",
    "facebook/wav2vec2-base-960h": "wav2vec2-base-960h",
    "openai/clip-vit-base-patch32": "clip-vit-base-patch32",
    "google/owlv2-base-patch16-ensemble": "owlv2-base-patch16-ensemble",
    "IDEA-Research/grounding-dino-tiny": "grounding-dino-tiny",
    "laion/clap-htsat-unfused": "clap-htsat-unfused",
    "FacebookAI/roberta-large-mnli": "electra-classifier",
}
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CHAT = "meta-llama/Llama-3.2-1B-Instruct"
DOCLING = "ibm-granite/granite-docling-258M"
DONUT = "naver-clova-ix/donut-base-finetuned-cord-v2"
OWN_WRITERS = {CHAT: write_chat_checkpoint, DOCLING: write_image_text_checkpoint, DONUT: write_donut_checkpoint}
OWN_WRITERS["florence-community/Florence-2-base"] = write_florence2_checkpoint
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder that stands for a name of the hub."""
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    pytest.importorskip("jinja2", reason="needs jinja2, for a chat template")
    pytest.importorskip("pypdfium2", reason="needs pypdfium2, which reads PDFs")
    home, made = tmp_path_factory.mktemp("hub"), {}

    def folder(name: str) -> Path:
        if name not in made:
            path = home / name
            made[name] = OWN_WRITERS[name](path) if name in OWN_WRITERS else build(STAND_INS[name], path)
            if name == COLBERT:
                add_projection(path)
            if name == LAYOUT:  # whose tokenizer in transformers takes boxes, too: parity has none
                WRITERS["bpe"](path, 500, 160)
        return made[name]

    return folder


@pytest.fixture
def place(built, minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the pages speak of, and a hub that needs no network."""
    from_hub = zoo.hub.from_hub

    def found(name, *options, **more):
        if name.text in (MINILM, *OWN_WRITERS, *STAND_INS):
            folder = minilm if name.text == MINILM else built(name.text)
            return replace(local_checkpoint(as_name(folder), True), name=name.text, revision=COMMIT)
        return from_hub(name, *options, **more)

    for module in ("zoo.hub", "zoo.lock"):
        monkeypatch.setattr(f"{module}.from_hub", found)
    # Processes of their own would not know the stand-ins.
    monkeypatch.setattr("zoo.apps.cli.table.extract_pages", lambda pages, worker, jobs: extract_pages(pages, worker))
    monkeypatch.setattr("zoo.apps.cli.demo.serve", lambda *_: None)  # which would never end
    if importlib.util.find_spec("starlette") and importlib.util.find_spec("uvicorn"):
        monkeypatch.setattr("zoo.apps.serve.server.serve", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    for name, size in {"cats.png": (64, 48), "page.png": (300, 400), "line.png": (200, 30)}.items():
        Image.effect_noise(size, 50).save(name)
    Path("report.pdf").write_bytes(pdf([text(20, 100, "one"), text(20, 100, "two")]))
    for folder in ("scans", "more"):
        Path(folder).mkdir()
    Image.effect_noise((300, 400), 50).save("scans/page.png")
    Path("more/report.pdf").write_bytes(pdf([text(20, 100, "three")]))
    Path("reviews.csv").write_text("id,review\n1,A cat sits on the mat.\n2,Nothing to add.\n", encoding="utf-8")
    Path("photos").mkdir()
    Image.effect_noise((64, 48), 50).save("photos/cats.png")
    Path("words.json").write_text(json.dumps([{"text": "Run", "box": [10, 10, 30, 20]}]), encoding="utf-8")
    Path("lines.txt").write_text("A cat sits on the mat.\n", encoding="utf-8")
    Path("true.html").write_text("<table><tr><td>Run</td></tr></table>", encoding="utf-8")
    Path("found.json").write_text(
        json.dumps(Table.from_html(Path("true.html").read_text(encoding="utf-8")).to_dict()), encoding="utf-8"
    )
    return tmp_path


def add_projection(folder: Path) -> None:
    """Make a checkpoint one of ColBERT's own library."""
    from safetensors.numpy import load_file, save_file

    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config))
    matrix = np.ones((8, config["hidden_size"]), np.float32)
    save_file(load_file(folder / "model.safetensors") | {"linear.weight": matrix}, folder / "model.safetensors")


def commands(block: str) -> list[list[str]]:
    """The words of each command line of zoo's own, of those after a pipe too."""
    out = []
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        for part in line.split(" | "):
            words = shlex.split(part, comments=True)
            if words[:1] == ["zoo"] or words[:2] == ["python", "-m"]:
                out.append(words[: words.index(">")] if ">" in words else words)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_every_block_runs(page: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In their order, as a reader would; the Python of a page shares its names."""
    pytest.importorskip("transformers", reason="needs transformers: a page compares with it")
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.file is not None:  # which tests/test_adding_a_model.py writes
            continue
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            continue
        for words in commands(block.text):
            if words[:2] == ["zoo", "parity"]:  # too long for here
                assert parsed("parity", words[2:], monkeypatch), words
            elif words[0] == "zoo":
                run(words, monkeypatch, capsys)
            else:
                assert parsed(words[2], words[3:], monkeypatch), words


def run(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    with Path("lines.txt").open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        status = main(words[1:])
    err = capsys.readouterr().err
    assert status == 0 or (words[1] == "table" and "no table found" in err), f"{words}: {err}"  # of random weights


def parsed(module: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if a module's own parser accepts the arguments; the command is not run."""

    class ParsedError(Exception):
        pass

    parse = argparse.ArgumentParser.parse_args

    def stop(self, *args, **kwargs):
        parse(self, *args, **kwargs)
        raise ParsedError

    is_package = getattr(importlib.util.find_spec(module), "submodule_search_locations", None) is not None
    name = f"{module}.__main__" if is_package and importlib.util.find_spec(f"{module}.__main__") else module
    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        with pytest.raises(ParsedError):
            importlib.import_module(name).main(arguments)
    return True


def test_all_blocks_are_found():
    found = {page: [words for block in blocks(page) for words in commands(block.text)] for page in PAGES}
    assert ["zoo", "run", "sentence-transformers/all-MiniLM-L6-v2"] in found[ROOT / "docs" / "getting-started.md"]
    assert sum(map(len, found.values())) > 30
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"^```(?:python|console)", text, re.MULTILINE)) == len(blocks(page))
        assert set(re.findall(r"^```(\w+)", text, re.MULTILINE)) <= {"python", "console", "bash", "js", "mermaid"}, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert not link or link.startswith("https://") or (page.parent / link).exists(), link
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", text):
        other = (page.parent / target).read_text(encoding="utf-8") if target else text
        heads = re.findall(r"^#+ (.*)$", other, re.MULTILINE)
        assert anchor in [re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads], anchor


def test_files_that_pages_name_are_there():
    for page in PAGES:
        for name in re.findall(r"`((?:zoo|parity|tests|benchmarks)/[\w./]+)`", page.read_text(encoding="utf-8")):
            if "distilbert" not in name:  # the model that one page adds
                assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_the_performance_page_is_up_to_date():
    assert pages.main(["--check"]) == 0


def test_the_performance_page_has_the_best_and_the_worst_of_each_job():
    environment = {"cpu": "Intel(R) Xeon(R) (avx2 avx512f amx_tile)", "clock": "cpu"}
    ratios = {"peer": {"ratio": 0.994}, "zoo onnx": {"ratio": 0.1}}  # which is no other library
    rows = [
        {"row": "bert-base 1x16", "ratios": ratios},
        {"row": "bert-base 8x128", "ratios": {"peer": {"ratio": 1.5}, "other": {"ratio": 0.5}}},
        {"row": "whisper-base, 16 tokens written", "ratios": {"peer": {"ratio": 0.996}}},
    ]
    pair = {"what": "decode 128", "ours": "zoo q4_0", "theirs": "llama.cpp q4_0", "ratio": 2.0}
    text = jobs.page(
        {
            "onnx-a.json": {"environment": environment, "rows": rows},
            "quantised-a.json": {"environment": environment, "ratios": [pair, {**pair, "theirs": "zoo q8_0"}]},
            "kills-a.json": {},
        }
    )
    texts = "| Intel, AMX, by CPU | ONNX Runtime | bert-base 8x128 / other | **0.50** | bert-base 8x128 / peer | 1.50 |"
    assert f"{texts}\n\nzoo is faster in 2 of 3 comparisons." in text
    speech = text.partition("## Speech")[2].partition("##")[0]
    assert "whisper-base, 16 tokens written / peer | 1.00 |" in speech
    assert "zoo is faster in 0 of 1 comparisons." in speech
    row = "decode 128, q4_0 / llama.cpp q4_0 | 2.00"
    assert f"| Intel, AMX, by CPU | NumPy | {row} | {row} |" in text
    assert "## Pictures" not in text


def test_the_performance_page_of_other_results(tmp_path, monkeypatch, capsys):
    environment = {
        "date": "2026-01-02T03:04:05",
        "cpu": "a CPU",
        "cores": 4,
        "threads": 2,
        "versions": {"numpy": "2.0"},
    }
    times = {"zoo": {"median_ms": 250.0}, "peer": {"median_ms": 50.04}}
    row = {"row": "a row that loses", "times": times, "ratios": {"peer": {"ratio": 4.996}}}
    near = {"row": "a tie", "times": times, "ratios": {"peer": {"ratio": 0.996}}}
    result = {"environment": environment, "rows": [row, near]}
    (tmp_path / "cpu-2026-01-02.json").write_text(json.dumps(result))
    text = pages.page(tmp_path)
    assert "| a row that loses | 250 | 50.0 | 5.00 |" in text
    assert "| a tie | 250 | 50.0 | 1.00 |" in text
    assert "zoo is faster in 0 of 2 comparisons, and slower in 1." in text
    assert "2026-01-02, a CPU, 4 cores, 2 threads; numpy 2.0 (`cpu-2026-01-02.json`)" in text
    assert "No GPU has been measured" in text
    rates = {"tokens a second": {"one stream": 20.0}, "ratios of streams": {"of one stream": 2.5}}
    (tmp_path / "streams-a-2026-01-02.json").write_text(json.dumps({"environment": environment, **rates}))
    text = pages.page(tmp_path)
    assert "| one stream | 20.0 |" in text
    assert "The streams' rate is 2.50 of one stream." in text
    card = {**environment, "device": "gpu", "card": "a GPU", "driver": "1", "python": "3.11"}
    kernels = {"stage": "kernels", "environment": card, "rows": [row], "not_run": ["rope"]}
    (tmp_path / "gpu-a-kernels-2026-01-02.json").write_text(json.dumps(kernels))
    text = pages.page(tmp_path)
    assert "No GPU has been measured" not in text
    assert "2026-01-02 on one a GPU" in text
    assert "a row that loses | 250 ms | peer: 50 ms | 5.00 |" in text
    assert "not run: rope" in text
    (tmp_path / "speed.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"no table for speed\.json"):
        pages.page(tmp_path)
    monkeypatch.setattr(pages, "PERFORMANCE", tmp_path / "performance.md")
    monkeypatch.setattr(pages, "PAGE", tmp_path / "measurements.md")
    monkeypatch.setattr(pages, "TABLES", tmp_path / "tables.md")
    (tmp_path / "tables.md").write_text("Before" + "".join(pages.FIGURES) + "after")
    assert pages.main(["--check"]) == 1
    assert "run python -m benchmarks.pages" in capsys.readouterr().err
    assert pages.main([]) == pages.main(["--check"]) == 0
