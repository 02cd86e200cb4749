"""Training: a run that was stopped ends as one that was not; what is exported is what was trained."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="needs the extra train")
transformers = pytest.importorskip("transformers", reason="needs the extra train")
pytest.importorskip("scipy", reason="needs the extra train")

from safetensors.torch import load_file  # noqa: E402

import zoo  # noqa: E402 - what is above decides whether what is below can be imported
from training import evaluate, lines, tables, text  # noqa: E402
from training.detector import Detector, Structure, best_along  # noqa: E402
from training.detr import Example, generalised_iou, iou  # noqa: E402
from training.export import export, export_run, start  # noqa: E402
from training.loop import Examples, Run, read_state  # noqa: E402
from training.reader import IDS, VOCABULARY, Reader, grown, read  # noqa: E402
from zoo.errors import InputError  # noqa: E402

SMALL = {"width": 32, "layers": 1, "decoder_layers": 1, "feed_forward": 32}


def reader():
    torch.manual_seed(0)
    recipe = Reader(steps=8, grow=2, **SMALL)
    recipe.batch, recipe.fresh, recipe.together, recipe.pool = 4, 2, 2, 12
    return recipe


def structure():
    torch.manual_seed(0)
    stages = (0, 32, 3, 3), (3, 48, 3, 4)
    recipe = Structure(steps=8, stages=stages, stem=8, channels=[8, 8, 16], depths=[1, 1, 1], **SMALL)
    recipe.batch, recipe.fresh, recipe.pool = 4, 2, 6
    return recipe


def detect():
    torch.manual_seed(0)
    recipe = Detector(steps=8, stages=((0, 64, 0, 0),), stem=8, channels=[8, 8, 16], **SMALL)
    recipe.batch, recipe.fresh, recipe.pool = 2, 1, 3
    return recipe


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("recipe", [reader, structure, detect])
def test_a_stopped_run_ends_as_an_unbroken_one(recipe, tmp_path):
    whole = Run(recipe(), tmp_path / "whole")
    losses = [whole.update() for _ in range(6)]
    first = Run(recipe(), tmp_path / "parts")
    again = [first.update() for _ in range(2)]
    first.save()
    again += [Run(recipe(), tmp_path / "parts").update()]  # killed before it saved
    second = Run(recipe(), tmp_path / "parts")
    again[2:] = [second.update() for _ in range(4)]
    np.testing.assert_allclose(again, losses, rtol=1e-5)
    for name, value in whole.average.items():
        torch.testing.assert_close(second.average[name], value, rtol=1e-4, atol=1e-5)


def test_a_run_of_something_else_is_refused(tmp_path):
    Run(reader(), tmp_path).save()
    with pytest.raises(InputError, match="another run"):
        Run(structure(), tmp_path)
    with pytest.raises(InputError, match="another run"):
        Run(reader(), tmp_path, seed=1)


def test_the_state_of_an_older_run_is_resumed(tmp_path):
    """One of before these runs used zoo's loop."""
    new = Run(reader(), tmp_path / "new")
    for _ in range(2):
        new.update()
    new.save()
    state = read_state(new.path)
    old = {**state.pop("identity"), "modules": state.pop("tensors"), "rng": state.pop("rng")[0]}
    old |= {k: state[k] for k in ("step", "stage", "side", "begun", "cpu", "average", "optimiser")}
    (tmp_path / "old").mkdir()
    torch.save(old, tmp_path / "old" / "state.pt")
    resumed = Run(reader(), tmp_path / "old")
    assert resumed.step == 2
    np.testing.assert_allclose(resumed.update(), new.update(), rtol=1e-5)


def test_training_lowers_the_loss_and_logs(tmp_path):
    recipe = reader()
    recipe.steps = 60
    run = Run(recipe, tmp_path, count=4)
    run.train()
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert logged[-1]["evaluated"] == 60
    assert 0 <= logged[-1]["exact_lines"] <= 1
    before, after = Run(reader(), tmp_path / "new"), recipe
    batch = Examples(before.recipe, 0).batch(0)
    assert after.loss(batch, random.Random(0), 0)[0] < before.recipe.loss(batch, random.Random(0), 0)[0]


def exported(recipe, tmp_path):
    run = Run(recipe, tmp_path / "run")
    for _ in range(4):
        run.update()
    run.save()
    export(recipe.name, read_state(run.path), tmp_path / "out")
    recipe.modules.load_state_dict(run.average)
    recipe.modules.half().float().eval()  # as in the file: so early, two tokens may be as likely but for the rounding
    assert f"python -m training {recipe.name}" in (tmp_path / "out" / "README.md").read_text()
    return str(tmp_path / "out")


def test_an_exported_reader_reads_alike_in_zoo_transformers_and_training(tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.tasks.read.MIN_CONFIDENCE", 0.0)  # zoo alone reads uncertain lines again
    recipe = reader()
    recipe.batch, recipe.fresh = 16, 16
    folder = exported(recipe, tmp_path)
    some = [lines.line(random.Random(i), 12).pixels for i in range(4)]
    pictures = [np.repeat(lines.pad(p)[..., None], 3, 2) for p in some]
    task = zoo.load(folder)
    found = [one.text for one in task(pictures)]
    assert found == [one.text for one in task([np.repeat(p[..., None], 3, 2) for p in some])]  # zoo pads by itself
    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder).float().eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = processor(images=[Image.fromarray(p) for p in pictures], return_tensors="pt").pixel_values
    with torch.no_grad():
        theirs = tokenizer.batch_decode(model.generate(given), skip_special_tokens=True)
    assert found == theirs
    assert [t.strip() for t in read(recipe.model, some)] == [t.strip() for t in found]
    assert tokenizer.decode(tokenizer("Ä b $1,0%").input_ids, skip_special_tokens=True) == "Ä b $1,0%"


def test_a_reader_goes_on_with_more_characters():
    fewer = VOCABULARY - len(text.ADDED + text.SCIENTIFIC)
    weights = {"frames.bias": torch.randn(fewer), "model.encoder.layernorm.weight": torch.randn(8)}
    weights["model.decoder.output_projection.weight"] = torch.randn(fewer, 8)
    found = grown(weights)
    assert found["frames.bias"].shape == (VOCABULARY,)
    logits, like = found["model.decoder.output_projection.weight"], IDS["–"]
    assert torch.equal(logits[:fewer], weights["model.decoder.output_projection.weight"])
    assert torch.equal(logits[IDS["−"]], 0.8 * logits[like])
    assert torch.equal(logits[IDS["ț"]], 0.8 * logits[IDS["t"]])
    assert torch.equal(found["model.encoder.layernorm.weight"], weights["model.encoder.layernorm.weight"])
    assert all(torch.equal(a, grown(found)[name]) for name, a in found.items())


@pytest.mark.parametrize("recipe", [structure, detect])
def test_an_exported_detector_sees_alike_in_zoo_transformers_and_training(recipe, tmp_path):
    recipe = recipe()
    folder = exported(recipe, tmp_path)
    side = recipe.side(len(recipe.stages) - 1) if recipe.name == "detect" else 48
    grey = np.random.default_rng(0).integers(0, 256, (side, side), np.uint8)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    given = processor(images=Image.fromarray(np.repeat(grey[..., None], 3, 2)), return_tensors="pt").pixel_values
    assert given.shape == (1, 3, side, side)
    theirs = transformers.TableTransformerForObjectDetection.from_pretrained(folder).float().eval()
    ours = zoo.load(folder).model(given.permute(0, 2, 3, 1).contiguous().numpy())
    with torch.no_grad():
        reference = theirs(given)
        logits, boxes = recipe.run(grey[None])[1][-1]
    for a, b, c in ((ours.logits, reference.logits, logits), (ours.pred_boxes, reference.pred_boxes, boxes)):
        np.testing.assert_allclose(a, b.numpy(), atol=1e-4)
        np.testing.assert_allclose(a, c.numpy(), atol=2e-2)  # weights in float16, and grey in three channels


def test_pages_without_tables_teach_that_there_is_none():
    recipe = detect()
    pixels = np.full((64, 64), 255, np.uint8)
    nothing = [Example(pixels, np.zeros((0, 5), np.float32))] * 2
    loss, logs = recipe.loss(nothing, random.Random(0), 0)
    loss.backward()
    assert logs["place"] == 0
    assert logs["kind"] > 0


def test_a_feature_in_a_table_is_told_how_far_that_reaches():
    recipe = detect()
    box = torch.tensor([0.5, 0.25, 0.8, 0.3])
    target = np.concatenate([[0], box.numpy()]).astype(np.float32)[None]
    centres = (torch.arange(4) + 0.5) / 4
    places = torch.stack(torch.meshgrid(centres, centres, indexing="xy"), -1)
    memory = torch.cat([box - torch.cat([places, torch.zeros(4, 4, 2)], -1), torch.ones(4, 4, 28)], -1)
    with torch.no_grad():
        recipe.reach.weight.copy_(torch.eye(4, 32))
        recipe.reach.bias.zero_()
    assert recipe._reach_loss(memory[None], places, [target]) < 1e-5
    assert recipe._reach_loss(memory[None] + 0.1, places, [target]) > 1
    assert recipe._reach_loss(memory[None], places, [np.zeros((0, 5), np.float32)]) == 0


def test_a_perfect_reader_and_structure_score_one(tmp_path, monkeypatch):
    table = tables.table(random.Random(4), 5, 7)
    true = evaluate.truth(table)
    assert true.shape == (table.rows, table.columns)
    assert true.header_rows == table.heads
    assert evaluate.grits(true, true, "con").f == 1.0


def test_training_begins_with_what_was_exported(tmp_path):
    folder = Path(exported(structure(), tmp_path))
    old, new = Run(structure(), tmp_path / "run"), Run(structure(), tmp_path / "new")
    start(new, folder)
    assert (new.step, new.stage) == (old.step, old.stage) == (4, old.recipe.stage(3))
    assert new.side == new.recipe.side(new.stage)  # what an export says that pictures are resized to
    for name, value in old.average.items():
        if value.is_floating_point():
            torch.testing.assert_close(new.average[name], value, rtol=1e-3, atol=1e-3)  # it was float16
            assert torch.equal(new.recipe.modules.state_dict()[name], new.average[name])
    rates = [new.rate(step) for step in (4, 5)]
    assert rates == [new.recipe.rate / 100, new.recipe.rate / 50]  # the optimiser begins anew
    new.update()
    new.save()
    assert Run(structure(), tmp_path / "new").begun == 4
    with pytest.raises(InputError, match="expected"):
        start(Run(reader(), tmp_path / "other"), folder)
    short = structure()
    short.steps = 4
    with pytest.raises(InputError, match="4 steps"):
        start(Run(short, tmp_path / "short"), folder)
    with pytest.raises(InputError, match="not written by"):
        start(Run(reader(), tmp_path / "none"), tmp_path)


def test_the_mean_of_two_runs_is_exported(tmp_path):
    first = Run(structure(), tmp_path / "run")
    first.save()
    export_run("structure", tmp_path / "run", tmp_path / "first")
    with torch.no_grad():
        for value in first.average.values():
            value.mul_(3)
    first.save()
    export_run("structure", tmp_path / "run", tmp_path / "mean", tmp_path / "first")
    one, mean = (load_file(tmp_path / name / "model.safetensors") for name in ("first", "mean"))
    for name, value in one.items():
        if "classifier.bias" not in name:  # not the header's share of it
            torch.testing.assert_close(mean[name].float(), 2 * value.float(), rtol=2e-3, atol=1e-5)
    assert "mean of these weights" in (tmp_path / "mean" / "README.md").read_text()


def test_distances_and_overlaps():
    assert [text.distance(a, b) for a, b in (("", "abc"), ("kitten", "sitting"), ("same", "same"))] == [3, 3, 0]
    a = np.array([[0.5, 0.5, 0.4, 0.4]])
    b = np.array([[0.5, 0.5, 0.4, 0.2], [0.9, 0.9, 0.1, 0.1]])
    np.testing.assert_allclose(iou(a, b), [[0.5, 0.0]], atol=1e-6)
    same = torch.tensor(a)
    torch.testing.assert_close(generalised_iou(same, same), torch.ones(1, dtype=torch.float64), rtol=1e-5, atol=1e-5)
    rows = np.array([[0.5, 0.2, 1, 0.2], [0.5, 0.25, 1, 0.2], [0.5, 0.4, 1, 0.2]])
    assert sorted(best_along(rows, np.array([0.9, 0.8, 0.7]), 1)) == [0, 2]
