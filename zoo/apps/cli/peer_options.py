"""Commands and options that users of other programs type by habit: what zoo has in their place, for messages."""

from __future__ import annotations

from collections.abc import Collection

from ...errors import ZooError
from ...task_kinds import find_tasks

_INPUT = "give it as INPUT, without an option"
COMMANDS = {
    **dict.fromkeys(("pull", "download", "install"), "zoo run, chat and serve download what they need when they start"),
    **dict.fromkeys(("list", "ls", "models"), "use zoo families, which lists what zoo runs"),
    "show": "use zoo info NAME",
    **dict.fromkeys(("rm", "delete", "prune"), "downloads are in the Hub's cache, which the command hf cache manages"),
    "search": "use zoo embed; docs/search.md shows how vectors are searched",
    **dict.fromkeys(("complete", "completion"), 'use zoo run NAME "a text"'),
    **dict.fromkeys(("transcribe", "whisper"), "use zoo run NAME speech.mp3"),
    **dict.fromkeys(("extract", "tables", "pdf", "read-pdf"), "use zoo table FILE"),
    "train": "use zoo finetune NAME FILE --task TASK -o FOLDER",
    **dict.fromkeys(("convert", "quantize", "quantise"), "use zoo export NAME OUT"),
    **dict.fromkeys(("server", "start", "api"), "use zoo serve NAME"),
    **dict.fromkeys(("ui", "gui", "web"), "use zoo demo"),
    **dict.fromkeys(("test", "eval", "verify"), "use zoo parity NAME"),
    "benchmark": "use zoo bench NAME",
    "version": "use zoo --version",
    **dict.fromkeys(("repl", "interactive"), "use zoo chat NAME"),
}
# An option -> what to do instead; where this begins with an option's name, the command has to have that one.
OPTIONS = {
    **dict.fromkeys(("--model", "-m", "--model-id", "--repo-id"), "give its NAME first, without an option"),
    **dict.fromkeys(("--prompt", "-p", "--text", "--input", "-i", "--query", "--audio", "--file"), _INPUT),
    **dict.fromkeys(("--documents", "--passages"), "give them after the query, without an option"),
    **dict.fromkeys(("-n", "--n-predict", "--max-tokens", "--predict", "--num-predict"), "--max-new-tokens N"),
    **dict.fromkeys(("--max-model-len", "--ctx-size", "-c", "--num-ctx", "--n-ctx"), "--context N"),
    **dict.fromkeys(("--max-num-seqs", "--parallel", "-np"), "--max-rows N"),
    "--max-concurrent-requests": "--max-queue N",
    **dict.fromkeys(("--n-gpu-layers", "-ngl", "--gpu-layers", "--gpus"), "--device cuda"),
    "-t": "--threads N",
    **dict.fromkeys(("-mm", "--clip-model-path", "--mm-proj"), "--mmproj FILE"),
    **dict.fromkeys(("--quantization", "--quantize", "--load-in-8bit", "--load-in-4bit"), "--weights int8 or int4"),
    **dict.fromkeys(("--output-format", "-f", "--csv", "--html", "--markdown", "--md"), "--format LIST"),
    **dict.fromkeys(("--output-dir", "--out", "--output-file", "--outfile"), "--output, or -o"),
    **dict.fromkeys(("--xlsx", "--excel"), "--output FILE.xlsx"),
    **dict.fromkeys(("--flavor", "--flavour", "--lattice", "--stream"), "a model finds the tables: leave it out"),
    "--top-n": "--top-k N",
    "--batch-size": "batches are made by the length of the inputs: leave it out",
    "--served-model-name": "a model is served under its NAME",
}


def other_command(name: str) -> str:
    """The end of a message about a command that zoo does not have: ": use ...", or ""."""
    if name in COMMANDS:
        return f": {COMMANDS[name]}"
    try:
        task = find_tasks(name)[0].name
    except ZooError:
        return ""
    return f": use zoo run NAME INPUT --task {task}"


def other_option(name: str, known: Collection[str]) -> str:
    """The end of a message about an option that a command does not have; known: those that it has."""
    instead = OPTIONS.get(name, "")
    if instead.startswith("--"):
        return f": use {instead}" if instead.replace(",", " ").split()[0] in known else ""
    return f": {instead}" if instead else ""
