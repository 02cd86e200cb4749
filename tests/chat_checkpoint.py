"""A small random Llama with a byte-level tokenizer and a chat template, as the instruct checkpoints of Llama 3 are."""

from __future__ import annotations

import json
from pathlib import Path

SPECIALS = [
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eom_id|>", "<|eot_id|>", "<|python_tag|>"),
]
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("Ċ", "Ċ"), ("<", "|"), ("|", ">"), ("e", "o"), ("eo", "t"), ("Ã", "©")]
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
TEMPLATE = """\
{{- bos_token }}
{#- What a template of Llama 3 does, and what other templates do. #}
{%- set ns = namespace(turns=0) %}
{%- macro head(role) %}{{ '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' }}{% endmacro %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- head('system') }}
{{- 'Today Date: ' ~ strftime_now('%d %b %Y') ~ '\\n\\n' }}
{%- if tools is not none %}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
{%- endif %}
{{- system_message + '<|eot_id|>' }}
{%- if documents %}
    {%- for document in documents %}
        {{- loop.index ~ '. ' ~ document.title ~ ': ' ~ document['text'] ~ '\\n' }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- set ns.turns = ns.turns + 1 %}
    {%- if message.role == 'tool' %}
        {{- head('ipython') }}
        {{- message.content if message.content is string else message.content | tojson }}
        {{- '<|eot_id|>' }}
        {%- continue %}
    {%- endif %}
    {%- if 'tool_calls' in message %}
        {%- if message.tool_calls | length != 1 %}
            {{- raise_exception('This model only supports single tool-calls at once!') }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- head('assistant') + '{"name": "' + call.name + '", "parameters": ' + call.arguments | tojson + '}' }}
        {{- '<|eom_id|>' }}
        {%- continue %}
    {%- endif %}
    {{- head(message['role']) }}
    {%- generation %}
    {{- message['content'] | trim }}
    {%- endgeneration %}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- head('assistant') }}
{%- endif %}
"""


def write_chat_tokenizer(folder: Path, template: object = TEMPLATE) -> int:
    """tokenizer.json and tokenizer_config.json; the size of the vocabulary."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for pair in MERGES:
        vocab["".join(pair)] = len(vocab)
    made = Tokenizer(models.BPE(vocab, MERGES, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    begin = (SPECIALS[0], made.token_to_id(SPECIALS[0]))
    made.post_processor = processors.TemplateProcessing(
        single=f"{begin[0]} $A", pair=f"{begin[0]} $A $B", special_tokens=[begin]
    )
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    stated = {"bos_token": SPECIALS[0], "eos_token": "<|eot_id|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    config = {**stated, "clean_up_tokenization_spaces": True, "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return made.get_vocab_size()


def write_chat_checkpoint(folder: Path, template: object = TEMPLATE) -> Path:
    """A checkpoint whose answers are noise, of letters and broken characters."""
    from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
    from zoo.saving import save_model

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    vocab = write_chat_tokenizer(folder, template)
    config = {**sizes, "vocab_size": vocab, "num_key_value_heads": 2, "max_position_embeddings": 512}
    config = {**config, "model_type": "llama", "bos_token_id": vocab - 7, "eos_token_id": vocab - 2}
    save_model(LlamaForCausalLM.from_config(LlamaConfig.from_dict(config)), folder)
    ends = {"eos_token_id": [vocab - 6, vocab - 3, vocab - 2], "do_sample": True, "temperature": 0.6, "top_p": 0.9}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    return folder
