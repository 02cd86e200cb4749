"""Rows that are held out: which they are, how the model does on them, and that the best state is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from zoo.apps.cli import main
from zoo.errors import InputError

torch = pytest.importorskip("torch", reason="training needs torch")

from zoo.apps.train import finetune  # noqa: E402 - torch is there
from zoo.apps.train.curve import write_curve  # noqa: E402
from zoo.apps.train.held_out import split_rows  # noqa: E402
from zoo.apps.train.recipes import spans_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
QUICK = {"batch_size": 8, "learning_rate": 3e-3, "schedule": "constant"}
TEXTS = ["the weather is lovely", "he works in the hospital"]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(count: int) -> list[dict[str, str]]:
    return [{"text": f"{TEXTS[i % 2]} {'today ' * (i % 5)}", "label": ["weather", "work"][i % 2]} for i in range(count)]


def lines(out):
    return [json.loads(line) for line in (out / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_tenth_is_held_out_whatever_the_seed_of_the_run(made, tmp_path, capsys):
    data = jsonl(tmp_path / "a.jsonl", rows_of(40))
    command = ["finetune", str(made("bert-base-uncased")), str(data), "--task", "classify", "--device", "torch:cpu"]
    options = ["--epochs", "4", "--batch-size", "8", "--learning-rate", "3e-3", "-o", str(tmp_path / "out")]
    assert main([*command, *options]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "out")
    assert "on 4 rows of 40 that were held out, by the best state (step " in said.err
    scores = [line for line in lines(tmp_path / "out") if "held_out_loss" in line]
    assert [line["step"] for line in scores] == [5, 10, 15, 18]  # each epoch of 36 rows, and the end
    train, held = split_rows(40, 0.1)
    assert sorted(train + held) == list(range(40))
    # The scores are those of the checkpoint that was written, as zoo computes them on NumPy.
    best = min(scores, key=lambda line: line["held_out_loss"])
    classify, rows = zoo.load(tmp_path / "out"), rows_of(40)
    found = classify([rows[i]["text"] for i in held], top_k=None)
    probabilities = [
        {one.label: one.score for one in labels}[rows[i]["label"]] for labels, i in zip(found, held, strict=True)
    ]
    np.testing.assert_allclose(-np.log(probabilities).mean(), best["held_out_loss"], rtol=1e-3, atol=1e-5)
    right = [labels[0].label == rows[i]["label"] for labels, i in zip(found, held, strict=True)]
    assert np.mean(right) == best["held_out_accuracy"]
    assert 'fill="#c2410c">held out' in (tmp_path / "out" / "run" / "loss.svg").read_text(encoding="utf-8")
    assert not list((tmp_path / "out" / "run").glob("*.pt"))


def test_the_best_state_is_written_and_not_the_last(made, tmp_path, capsys):
    """Other rows have the opposite labels, so that each step makes the model worse on them."""
    data = jsonl(tmp_path / "a.jsonl", rows_of(16))
    swapped = [{**row, "label": {"weather": "work", "work": "weather"}[row["label"]]} for row in rows_of(16)]
    other = jsonl(tmp_path / "b.jsonl", swapped)
    options = {"task": "classify", "device": "torch:cpu", "steps": 12, "settings": QUICK}
    out = finetune(made("bert-base-uncased"), data, tmp_path / "out", eval_data=other, **options)
    losses = {line["step"]: line["held_out_loss"] for line in lines(out) if "held_out_loss" in line}
    assert list(losses) == [2, 4, 6, 8, 10, 12]
    best = min(losses, key=lambda step: losses[step])
    assert best < 12
    assert f"on 16 other rows, by the best state (step {best} of 12)" in capsys.readouterr().err
    shorter = {**options, "steps": best}
    same = finetune(made("bert-base-uncased"), data, tmp_path / "short", held_out=0, **shorter)
    texts = [row["text"] for row in swapped]
    np.testing.assert_allclose(
        zoo.load_model(out)(**_ids(out, texts)), zoo.load_model(same)(**_ids(same, texts)), atol=1e-5
    )
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"On 16 rows that were held out, after step {best}" in card
    assert "![Loss by step](run/loss.svg)" in card
    assert "No rows were held out" in (same / "README.md").read_text(encoding="utf-8")


def _ids(folder, texts):
    batch = zoo.load(folder).tokenizer(texts)
    return {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}


def test_a_stopped_run_ends_with_the_same_scores(made, tmp_path, monkeypatch):
    from zoo.apps.train.held_out import ScoredRun

    data = jsonl(tmp_path / "a.jsonl", rows_of(24))
    options = {"task": "classify", "device": "torch:cpu", "steps": 9, "settings": {**QUICK, "save_every": 4}}
    whole = finetune(made("bert-base-uncased"), data, tmp_path / "whole", **options)
    update = ScoredRun.update

    def killed(self):
        if self.step == 7:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(ScoredRun, "update", killed)
    with pytest.raises(KeyboardInterrupt):
        finetune(made("bert-base-uncased"), data, tmp_path / "stopped", **options)
    monkeypatch.setattr(ScoredRun, "update", update)
    stopped = finetune(made("bert-base-uncased"), data, tmp_path / "stopped", **options)
    scores = [{line["step"]: line for line in lines(out) if "held_out_loss" in line} for out in (whole, stopped)]
    assert scores[0] == scores[1]
    assert len(scores[0]) == 3


def test_tags_have_f1_and_adapters_a_card(made, tmp_path, capsys):
    rows = [{"tokens": ["Ada", "lives", "in", "Paris"], "tags": ["PER", "O", "O", "LOC"]}] * 12
    rows += [{"tokens": ["in", "Paris", "lives", "Ada"], "tags": ["O", "LOC", "O", "PER"]}] * 12
    data = jsonl(tmp_path / "tags.jsonl", rows)
    options = {"task": "tag", "text": "tokens", "label": "tags", "steps": 30, "lora": 4, "device": "torch:cpu"}
    out = finetune(
        made("bert-base-uncased"), data, tmp_path / "out", settings={**QUICK, "learning_rate": 1e-2}, **options
    )
    assert ", f1 1, accuracy 1, on 2 rows of 24" in capsys.readouterr().err
    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'library_name: "peft"' in card
    assert "| f1 | 1 |" in card
    (out / "README.md").write_text("my own words", encoding="utf-8")
    finetune(made("bert-base-uncased"), data, out, settings=QUICK, **{**options, "steps": 2})
    assert (out / "README.md").read_text(encoding="utf-8") == "my own words"


def test_other_tasks_are_scored_too(made, tmp_path):
    pairs = [{"text": f"number {i}", "label": f"the number {i}"} for i in range(20)]
    options = {"device": "torch:cpu", "steps": 2, "settings": QUICK}
    out = finetune(
        made("all-MiniLM-L6-v2"), jsonl(tmp_path / "p.jsonl", pairs), tmp_path / "e", task="embed", **options
    )
    last = [line for line in lines(out) if "held_out_loss" in line][-1]
    assert 0 <= last["held_out_accuracy"] <= 1
    texts = [{"text": f"Once upon a time there were {i} cats"} for i in range(20)]
    out = finetune("stories260k", jsonl(tmp_path / "t.jsonl", texts), tmp_path / "g", **options)
    last = [line for line in lines(out) if "held_out_loss" in line][-1]
    assert last["held_out_perplexity"] == pytest.approx(np.exp(last["held_out_loss"]), rel=1e-3)


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("B-A I-A O B-B", {(0, 2, "A"), (3, 4, "B")}),
        ("B-A B-A I-B", {(0, 1, "A"), (1, 2, "A"), (2, 3, "B")}),
        ("PER PER O LOC", {(0, 2, "PER"), (3, 4, "LOC")}),
        ("I-A O O", {(0, 1, "A")}),
        ("O", set()),
    ],
)
def test_spans_of_words(labels, wanted):
    assert spans_of(labels.split()) == wanted


def test_what_is_refused(made, tmp_path):
    model, out = made("bert-base-uncased"), tmp_path / "out"
    data = jsonl(tmp_path / "a.jsonl", rows_of(20))
    options = {"task": "classify", "device": "torch:cpu", "steps": 1}
    for more, problem in [
        ({"held_out": 1.0}, "held_out is 1, expected a share of the rows"),
        ({"held_out": 0.99}, "nothing is left to train on"),
        ({"eval_data": jsonl(tmp_path / "b.jsonl", [{"text": "a", "label": "rest"}])}, "b.jsonl has the label 'rest'"),
    ]:
        with pytest.raises(InputError, match=problem):
            finetune(model, data, out, **options, **more)


def test_a_plot_of_both_losses(tmp_path):
    write_curve(tmp_path / "a.svg", [3.0, 2.0, 1.0], [(1, 3.5), (3, float("nan")), (3, 1.5)])
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.count("<circle") == 2
    assert ">3.5</text>" in text
