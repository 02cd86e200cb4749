"""Published token ids: transformers.js' BERT vectors, llama.cpp's, and transformers' own for XLM-R."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

VECTORS = Path(__file__).parent.parent / "data" / "tokenizer_vectors"

# The vectors whose vocabulary is among the test data; the others of bert.json need vocabularies of their own.
REPOSITORIES = {
    "Xenova/bert-base-uncased": "bert-uncased",
    "Xenova/bert-base-cased": "bert-cased",
    "google-bert/bert-base-cased": "bert-cased",
    "Xenova/bert-base-multilingual-cased-ner-hrl": "bert-multilingual",
    "Xenova/multilingual-e5-small": "xlm-roberta",
    "Xenova/paraphrase-multilingual-MiniLM-L12-v2": "xlm-roberta",
}

# These ids are not reached, by transformers neither: e5-small's own tokenizer.json keeps a space at the end as a token
# of its own, where XLM-R's (which stands in for it here, on the same vocabulary) splits at white space and drops it.
E5_TRAILING_SPACE = {
    "TRAILING_SPACE",
    "ELLIPSIS",
    "TEXT_WITH_ESCAPE_CHARACTERS",
    "TEXT_WITH_ESCAPE_CHARACTERS_2",
    "MIXED_CASE_WITHOUT_ACCENTS",
    "MIXED_CASE_WITH_ACCENTS",
}


@pytest.mark.parametrize(("repository", "name"), REPOSITORIES.items())
def test_transformers_js(load, repository, name):
    tokenizer = load(name)
    cases = json.loads((VECTORS / "bert.json").read_text(encoding="utf-8"))[repository]
    differing = set()
    for case, want in cases.items():
        ids = tokenizer(want["text"], want.get("text_pair")).input_ids[0].tolist()
        if ids != want["ids"]:
            differing.add(case)
        assert tokenizer.decode(want["ids"], skip_special_tokens=False) == want["decoded"], case
    assert differing == (E5_TRAILING_SPACE if repository.endswith("e5-small") else set())


@pytest.mark.parametrize(
    ("vectors", "name"),
    [("bert-bge", "bert-uncased"), ("roberta-bpe", "roberta"), ("roberta-bpe", "roberta-json")],
)
def test_llama_cpp(load, vectors, name):
    path = VECTORS / f"ggml-vocab-{vectors}.gguf.inp"
    texts = path.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    wanted = path.with_suffix(".out").read_text(encoding="utf-8").split("\n")
    assert len(texts) == len(wanted) == 47
    rows = load(name).encode_batch(texts, truncation=False).rows
    assert [row.ids[1:-1] for row in rows] == [[int(number) for number in line.split()] for line in wanted]


def test_xlm_roberta(load):
    cases = json.loads((VECTORS / "xlm_roberta_expected_ids.json").read_text(encoding="utf-8"))
    rows = load("xlm-roberta").encode_batch([case["text"] for case in cases]).rows
    assert [row.ids for row in rows] == [case["ids"] for case in cases]
