"""Options of generation: what a checkpoint says, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.generate import GenerationConfig, generate, stream

NONE, NAN = None, float("nan")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0, expected a whole number of at least 1"),
        ({"max_new_tokens": -3}, "max_new_tokens is -3"),
        ({"max_new_tokens": 2.5}, "max_new_tokens is 2.5"),
        ({"max_new_tokens": True}, "max_new_tokens is True"),
        ({"max_new_tokens": 1 << 70}, "max_new_tokens"),
        ({"temperature": 0}, "temperature is 0.0, expected a number above 0.*do_sample=False"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": NAN}, "temperature is nan, expected a finite number"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"top_p": 0}, "top_p is 0.0, expected a share above 0"),
        ({"top_p": 1.01}, "top_p is 1.01"),
        ({"top_p": NAN}, "top_p is nan"),
        ({"min_p": -0.1}, "min_p is -0.1"),
        ({"top_k": -1}, "top_k is -1, expected a whole number of at least 0"),
        ({"num_beams": 0}, "num_beams is 0"),
        ({"num_return_sequences": 0}, "num_return_sequences is 0"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0.0"),
        ({"length_penalty": NAN}, "length_penalty is nan"),
        ({"early_stopping": "maybe"}, "early_stopping is 'maybe', expected True, False or 'never'"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size is -1"),
        ({"eos_token_id": -1}, "eos_token_id is -1"),
        ({"eos_token_id": [1, "2"]}, "eos_token_id is '2'"),
        ({"stop_strings": ["a", ""]}, "not empty"),
        ({"seed": -1}, "seed is -1"),
        ({"do_sample": 1}, "do_sample is 1"),
    ],
    ids=str,
)
def test_bad_values(options, message):
    with pytest.raises(InputError, match=message):
        GenerationConfig(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_new_tokens": 64},
            "max_new_tokens is 64, but after a prompt of 5 tokens the model's context of 64 has room",
        ),
        ({"max_new_tokens": 10**12}, "room for 59"),
        ({"max_length": 5}, "max_length is 5, and the prompt has 5 tokens already"),
        ({"num_beams": 21}, "num_beams is 21, too many for a vocabulary of 40"),
        ({"num_beams": 2, "num_return_sequences": 3}, "num_return_sequences is 3, but there are 2 beams"),
        ({"num_return_sequences": 2}, "num_return_sequences is 2, but there are 1 beams"),
        ({"num_beams": 2, "do_sample": True}, "sampled beams, is not implemented"),
    ],
    ids=str,
)
def test_what_does_not_go_together(options, message, small):
    with pytest.raises((InputError, UnsupportedError), match=message):
        generate(small, [[5, 6, 7, 8, 9]], GenerationConfig(**options))


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([], "prompts are empty"),
        ([[]], r"prompts\[0\]"),
        ([[1], [1.5]], r"prompts\[1\]"),
        ([[[1]]], r"prompts\[0\]"),
        ([list(range(64))], "the prompt has 64 tokens, and the model's context is 64"),
        ([[40]], "must be in"),
        ([[-1]], "must be in"),
    ],
)
def test_bad_prompts(prompts, message, small):
    with pytest.raises(InputError, match=message):
        generate(small, prompts, GenerationConfig(max_new_tokens=1))


def test_a_stream_has_one_row_and_fails_at_once(small):
    for options in ({"num_beams": 2}, {"num_return_sequences": 2, "do_sample": True}, {"max_new_tokens": 100}):
        with pytest.raises(InputError):
            stream(small, [5], GenerationConfig(**options))


def write(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_generation_config_json(tmp_path):
    stated = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "eos_token_id": [7, 9], "top_k": NONE, "_x": 1}
    folder = write(tmp_path, generation_config=stated, config={"num_beams": 4, "eos_token_id": 3})
    config = GenerationConfig.from_folder(folder)
    assert (config.do_sample, config.temperature, config.top_p, config.top_k) == (True, 0.6, 0.9, 50)
    assert config.eos_token_id == (7, 9)
    assert config.num_beams == 1


def test_config_json_where_there_is_no_other(tmp_path):
    decoder = {"eos_token_id": 2, "pad_token_id": 1, "length_penalty": 2.0, "num_beams": 7}
    folder = write(tmp_path, config={"decoder": decoder, "num_beams": 4, "max_length": 20, "hidden_size": 3})
    config = GenerationConfig.from_folder(folder)
    assert (config.eos_token_id, config.pad_token_id, config.length_penalty, config.num_beams) == ((2,), 1, 2.0, 4)
    assert config.max_length is None


def test_a_bad_file_is_named(tmp_path):
    folder = write(tmp_path, generation_config={"top_p": 7}, config={})
    with pytest.raises(ConfigError, match=r"generation_config\.json: top_p is 7"):
        GenerationConfig.from_folder(folder)


@pytest.mark.parametrize(
    "name", ["penalty_alpha", "num_beam_groups", "diversity_penalty", "guidance_scale", "max_time"]
)
def test_what_is_not_implemented_is_refused(name, small):
    config = GenerationConfig.from_dict({name: 2.5})
    with pytest.raises(UnsupportedError, match=f"{name} = 2.5, which is not implemented"):
        generate(small, [[5]], config)
    with pytest.raises(UnsupportedError, match=f"{name} = 2.5 is not implemented"):
        GenerationConfig().replace(**{name: 2.5})


def test_what_matters_only_for_sampling_is_refused_only_there(small):
    config = GenerationConfig.from_dict({"typical_p": 0.9, "max_new_tokens": 2})
    assert len(generate(small, [[5]], config)[0][0].ids) == 2
    with pytest.raises(UnsupportedError, match=r"typical_p = 0\.9"):
        generate(small, [[5]], config.replace(do_sample=True))


def test_numbers_that_a_file_without_sampling_does_not_mean(small):
    stated = {"temperature": 0.0, "top_p": 0, "top_k": -1, "pad_token_id": -1, "max_new_tokens": 2}
    config = GenerationConfig.from_dict(stated)
    assert len(generate(small, [[5]], config)[0][0].ids) == 2
    with pytest.raises(InputError, match=r"temperature = 0\.0, no value for sampling"):
        generate(small, [[5]], config.replace(do_sample=True))
    generate(small, [[5]], config.replace(do_sample=True, temperature=1.0, top_p=1.0, top_k=0))
    with pytest.raises(ConfigError, match=r"temperature is 0\.0"):
        GenerationConfig.from_dict({"temperature": 0.0, "do_sample": True})


def test_options_of_a_call():
    config = GenerationConfig(max_new_tokens=10)
    assert config.replace(max_length=30).new_tokens(5, 100) == 25
    assert config.replace(max_new_tokens=NONE).new_tokens(5, 100) == 95
    assert config.replace(max_new_tokens=NONE).new_tokens(5, 10**6) == 512
    assert config.replace(eos_token_id=np.array([1, 2, 1])).eos_token_id == (1, 2)
    with pytest.raises(InputError, match=r"max_tokens is not an option.*max_new_tokens"):
        config.replace(max_tokens=3)
    with pytest.raises(InputError, match="temperature is for sampling"):
        config.replace(temperature=0.5)
