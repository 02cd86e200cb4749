"""`zoo finetune`: each task learns a small thing, and what it leaves is a checkpoint."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

import zoo
from zoo.apps.cli import main
from zoo.errors import InputError, NotFoundError, UnsupportedError, ZooError

torch = pytest.importorskip("torch", reason="training needs torch")

from zoo.apps.train import finetune  # noqa: E402 - torch is there

QUICK = {"batch_size": 8, "learning_rate": 3e-3, "schedule": "constant"}


@pytest.fixture
def words(tmp_path):
    """Texts whose label is whether they are about the weather."""
    path = tmp_path / "words.csv"
    rows = [(f"the weather is lovely {'today ' * i}", "weather") for i in range(4)]
    rows += [(f"he works in the hospital {'now ' * i}", "work") for i in range(4)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("what", "about"), *rows])
    return path


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_a_classifier_of_texts(words, made, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["finetune", str(made("bert-base-uncased")), str(words), "--text", "what", "--label", "about"]
    options = ["--task", "classify", "-o", str(out), "--steps", "25", "--batch-size", "8", "--learning-rate", "3e-3"]
    assert main([*command, *options, "--device", "torch:cpu"]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    classify = zoo.load(out)  # on NumPy
    assert classify("the weather is lovely", top_k=1)[0].label == "weather"
    assert classify("he works in the hospital", top_k=1)[0].label == "work"
    assert (out / "run" / "loss.svg").is_file()
    assert not (out / "run" / "state.pt").exists()
    transformers = pytest.importorskip("transformers", reason="needs transformers, which shall read it")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(out)
    assert theirs.config.id2label == {0: "weather", 1: "work"}
    row = classify.tokenizer("the weather is lovely")
    logits = theirs(torch.tensor(row.input_ids)).logits.detach()
    np.testing.assert_allclose(zoo.load_model(out)(row.input_ids), logits, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_tags_of_words(made, tmp_path):
    rows = [{"tokens": ["Ada", "lives", "in", "Paris"], "tags": ["PER", "O", "O", "LOC"]}] * 4
    rows += [{"tokens": ["in", "Paris", "lives", "Ada"], "tags": ["O", "LOC", "O", "PER"]}] * 4
    data = jsonl(tmp_path / "tags.jsonl", rows)
    out = finetune(
        made("bert-base-uncased"),
        data,
        tmp_path / "out",
        task="tag",
        text="tokens",
        label="tags",
        steps=30,
        settings=QUICK,
        device="torch:cpu",
    )
    found = zoo.load(out)("Ada lives in Paris", aggregation="first")
    assert {(entity.text, entity.label) for entity in found} == {("Ada", "PER"), ("Paris", "LOC")}


def test_embeddings_of_pairs(made, tmp_path):
    subjects = ("weather", "hospital", "water", "town")
    rows = [{"a": f"the {word} today", "b": f"where is {word} now"} for word in subjects]
    data = jsonl(tmp_path / "pairs.jsonl", rows)
    source = made("all-MiniLM-L6-v2")
    out = finetune(
        source,
        data,
        tmp_path / "out",
        text="a",
        label="b",
        steps=25,
        settings={**QUICK, "batch_size": 4},
        device="torch:cpu",
    )

    def apart(embed):
        similar = embed.similarity([row["a"] for row in rows], [row["b"] for row in rows])
        return float(np.diag(similar).mean() - similar[~np.eye(4, dtype=bool)].mean())

    assert apart(zoo.load(out)) > max(0.3, apart(zoo.load(source)) + 0.1)


def test_images_in_folders_and_a_stopped_run(made, tmp_path):
    for name, grey in (("dark", 20), ("light", 230)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(4):
            noise = np.random.default_rng(i).integers(-15, 16, (40, 40, 3))
            Image.fromarray((noise + grey).astype(np.uint8)).save(tmp_path / "images" / name / f"{i}.png")
    with pytest.warns(UserWarning, match="drawn at random"):
        out = finetune(
            made("vit-base-patch16-224"),
            tmp_path / "images",
            tmp_path / "out",
            task="classify",
            steps=15,
            settings=QUICK,
            device="torch:cpu",
        )
    classify = zoo.load(out)
    assert classify(np.full((40, 40, 3), 25, np.uint8), top_k=1)[0].label == "dark"
    assert classify(np.full((40, 40, 3), 225, np.uint8), top_k=1)[0].label == "light"


def test_lines_and_what_they_say(made, tmp_path):
    for i in range(2):
        Image.fromarray(np.full((24, 60, 3), 60 + 140 * i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "lines.csv").write_text("file,says\n0.png,No\n1.png,weather\n", encoding="utf-8")
    out = finetune(
        made("trocr-small-printed"),
        tmp_path / "lines.csv",
        tmp_path / "out",
        text="file",
        label="says",
        steps=30,
        settings={**QUICK, "batch_size": 2},
        device="torch:cpu",
    )
    log = [json.loads(line)["loss"] for line in (out / "run" / "log.jsonl").read_text().splitlines()]
    assert log[-1] < 4
    assert zoo.load(out).model.config.decoder.vocab_size > 0


def test_stories_with_an_adapter_as_peft_reads_it(tmp_path):
    data = jsonl(tmp_path / "stories.jsonl", [{"text": "Zoe sat on the red roof and sang all day long."}] * 4)
    out = finetune(
        "stories260k",
        data,
        tmp_path / "adapter",
        steps=40,
        lora=4,
        settings={**QUICK, "learning_rate": 2e-2},
        device="torch:cpu",
    )
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {path.name for path in out.iterdir()}
    assert not (out / "config.json").exists()
    adapted = zoo.load("stories260k", adapter=out)  # on NumPy
    assert adapted("Zoe sat", max_new_tokens=12, do_sample=False) != zoo.load("stories260k")(
        "Zoe sat", max_new_tokens=12, do_sample=False
    )
    ids = adapted.tokenizer("Zoe sat on the red roof").input_ids
    logits = adapted.model(ids)
    np.testing.assert_allclose(logits, zoo.load_model("stories260k", adapter=out, device="torch:cpu")(ids), atol=1e-4)
    zoo.save(adapted, tmp_path / "merged")
    np.testing.assert_allclose(zoo.load_model(tmp_path / "merged")(ids), logits, atol=1e-5)
    peft = pytest.importorskip("peft", reason="needs peft, whose layout it is")
    import transformers

    zoo.save(zoo.load_model("stories260k"), tmp_path / "base")
    base = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    theirs = peft.PeftModel.from_pretrained(base, str(out))
    np.testing.assert_allclose(logits, theirs(torch.tensor(ids)).logits.detach(), atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_a_classifier_with_an_adapter_and_its_head(words, made, tmp_path):
    source = made("bert-base-uncased")
    out = finetune(
        source,
        words,
        tmp_path / "out",
        task="classify",
        text="what",
        label="about",
        steps=30,
        lora=4,
        settings={**QUICK, "learning_rate": 2e-2},
        device="torch:cpu",
    )
    classify = zoo.load(source, task="classify", adapter=out)
    assert classify("the weather is lovely", top_k=1)[0].label == "weather"
    assert classify("he works in the hospital", top_k=1)[0].label == "work"


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_a_run_that_was_stopped_ends_as_one_that_was_not(words, made, tmp_path, monkeypatch):
    from zoo.apps.train import Run

    options = {"task": "classify", "text": "what", "label": "about", "steps": 6, "device": "torch:cpu"}
    options["settings"] = {**QUICK, "save_every": 2}
    whole = finetune(made("bert-base-uncased"), words, tmp_path / "whole", **options)
    own = Run.update
    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", lambda self: own(self) if self.step < 5 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            finetune(made("bert-base-uncased"), words, tmp_path / "stopped", **options)
    other = {**options, "settings": {**options["settings"], "seed": 1}}
    with pytest.raises(InputError, match="differs in seed"):
        finetune(made("bert-base-uncased"), words, tmp_path / "stopped", **other)
    stopped = finetune(made("bert-base-uncased"), words, tmp_path / "stopped", **options)
    name = "model.safetensors"
    assert (stopped / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_labels_are_looked_up_once(made, tmp_path, monkeypatch):
    from zoo.config import Config

    asked, own = [], Config.label2id.fget
    monkeypatch.setattr(Config, "label2id", property(lambda self: asked.append(1) or own(self)))
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"t,l{i}\n" for i in range(300)))
    finetune(made("bert-base-uncased"), data, tmp_path / "out", task="classify", steps=1, device="torch:cpu")
    assert len(asked) < 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("what,abot\na,b\n", r"row 1 has no column 'about', only what, abot; did you mean 'abot'"),
        ("what,about\na,same\nb,same\n", r"the column 'about' has only the label 'same'"),
        ("what,about\na,b\nc\n", r"row 2 does not have 2 fields"),
        ("what,about\n,b\nd,c\n", r"row 1 has '' in the column 'what', expected a text"),
        ("what,about\n", r"has no rows"),
        ("", r"has no rows"),
        ("what,about\n\xff", r"not UTF-8"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_data_that_is_none(content, message, made, tmp_path):
    (tmp_path / "data.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        finetune(
            made("bert-base-uncased"),
            tmp_path / "data.csv",
            tmp_path / "out",
            task="classify",
            text="what",
            label="about",
            device="torch:cpu",
        )
    assert not (tmp_path / "out").exists()


def test_other_bad_data(made, tmp_path):
    model = made("bert-base-uncased")
    options = {"task": "tag", "text": "tokens", "label": "tags", "device": "torch:cpu"}
    (tmp_path / "a.jsonl").write_text('{"tokens": []}\n{')
    with pytest.raises(InputError, match=r"line 2 is not JSON"):
        finetune(model, tmp_path / "a.jsonl", tmp_path / "out", **options)
    with pytest.raises(InputError, match=r"row 1 has 2 words and 1 label, expected as many"):
        finetune(
            model, jsonl(tmp_path / "b.jsonl", [{"tokens": ["a", "b"], "tags": ["O"]}]), tmp_path / "out", **options
        )
    with pytest.raises(InputError, match=r"expected a folder of images for each label"):
        finetune(made("vit-base-patch16-224"), tmp_path, tmp_path / "out", device="torch:cpu")
    with pytest.raises(NotFoundError, match="no such file or folder"):
        finetune(model, tmp_path / "none.csv", tmp_path / "out", **options)
    with pytest.raises(UnsupportedError, match="cannot be trained for the task 'fill-mask', only for classify, embed"):
        finetune(model, tmp_path / "none.csv", tmp_path / "out")
    (tmp_path / "lines.csv").write_text("image,text\nnone.png,No\n")
    with pytest.raises(InputError, match=r"1 of 1 images do not exist"):
        finetune(made("trocr-small-printed"), tmp_path / "lines.csv", tmp_path / "out", device="torch:cpu")


@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_a_run_that_diverged_leaves_no_checkpoint(words, made, tmp_path):
    settings = {"learning_rate": 50.0, "clip": 0.0, "warm_up": 0.0, "batch_size": 8}
    options = {"task": "classify", "text": "what", "label": "about", "device": "torch:cpu", "settings": settings}
    broken = shutil.copytree(made("bert-base-uncased"), tmp_path / "broken")
    from safetensors.numpy import load_file

    tensors = load_file(broken / "model.safetensors")
    tensors[
        "bert.embeddings.LayerNorm.gamma"
        if "bert.embeddings.LayerNorm.gamma" in tensors
        else "bert.embeddings.LayerNorm.weight"
    ][:] = np.nan
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    with pytest.warns(UserWarning, match="NaN or infinity"), pytest.raises(ZooError, match="loss of step 0 is nan"):
        finetune(broken, words, tmp_path / "out", **options)
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_a_data_set_of_the_hub(monkeypatch):
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    from zoo.apps.train.data import read_rows

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    asked = []

    def load(name, split):
        asked.append((name, split))
        return datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read_rows("hub:org/name:test") == [{"text": "a", "label": "yes"}, {"text": "b", "label": "no"}]
    read_rows("hub:org/name")
    assert asked == [("org/name", "test"), ("org/name", "train")]
    monkeypatch.undo()
    with pytest.raises(NotFoundError, match="hub:org/name"):
        read_rows("hub:org/name")  # the tests' hub is off
