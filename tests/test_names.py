"""Rules for names: functions are verbs or say what they return, constants have a noun, comments on them stand alone.

What broke them when they were made is in data/names_allowed.txt, one line each, and no line may be added:
`python tests/test_names.py` takes out the lines that have nothing left to allow.
"""

from __future__ import annotations

import ast
import functools
import io
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ALLOWED = Path(__file__).parent / "data" / "names_allowed.txt"
MAX_ALLOWED = 238


def words(text: str) -> set[str]:
    return set(text.split())


IRREGULAR = words("""
    become begun bent bitten blown born bought bound broken brought built caught chosen come dealt done drawn driven
    dug eaten fallen fed felt flown forgotten found fought frozen given gone got grown heard held hidden hung kept
    known laid lain led left lent lost made meant met overridden paid rebuilt rewritten ridden risen rung said seen
    sent shaken shot shown shrunk sold sought spent spoken spread spun stolen stood struck stuck sung sunk swept taken
    taught thought thrown told torn undone understood unknown unmade unread unseen unbroken woken won worn wound woven
    written
    """)
NOT_PARTICIPLES = {"bed", "embed", "exceed", "feed", "need", "proceed", "red", "seed", "shed", "speed"}
STATES = words("""
    absent absolute across after ahead alike all alone along apart around away before below beneath beside best better
    between blank both coarse dynamic each earlier elsewhere endless enough equal even every everything everywhere
    exact faint far farther fast fatal few fewer final flat for foreign full good half harmless high higher idle
    in incomparable instead large last later least legible likely lone long longer loose low lower many
    meanwhile missing most narrow native near nearer neutral next nobody none nothing nowhere often old once one
    only opposite optional or other others ours out outside over own plain present quiet ragged random rare ready
    relative rest right same sharp short shorter small smooth some soon spare sparse special standard straight strange
    strong sure tall theirs thin tidy tight tiny together under uncertain uneven unlike unready unsure unusual upright
    upwards usual what whole wide who with within without worst wrong
    """)
# Nouns that need another one: room for what, the pace of what, a share of what?
VAGUE = {"form", "grace", "pace", "part", "patience", "room", "share", "times", "turn", "worth"}
# With these before it a participle is a question's answer (`is_closed`) or what is done to something (`add_scaled`).
OPENERS = words("""
    is has are was can needs stays raise
    add check compare compile copy count drop find from keep list load read refuse release return run save start warn
    write
    """)
# A comment that begins so ends the sentence of a name ("MAX_PAGES  # of a document") and says nothing without it.
CONTINUATIONS = {"of", "that", "so", "which", "whose", "such", "than", "as", "and", "or", "beyond", "from"}
ALLOWED_NAMES = {
    "closed",  # a file's own attribute in Python
    "from_pretrained",  # transformers' name
    "UNKNOWN",  # llama.cpp's and sentencepiece's types of tokens
    "UNUSED",
    "TINY",  # configs of the tiny models that a parity Spec takes as `tiny`
    "_TINY",
    "SMALL",
    "_SMALL",
    "connection_lost",  # asyncio's callbacks
    "connection_made",
    "data_received",
}


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (len(word) > 3 and word.endswith("ed") and word not in NOT_PARTICIPLES)


def is_state(word: str) -> bool:
    """True for a participle, an adjective or an adverb."""
    return is_participle(word) or word in STATES


def is_superlative(word: str) -> bool:
    return word.endswith("est") and word not in {"digest", "request", "test"}


def names_a_state(function: str) -> bool:
    """True for `parted`, `whole`, `images_written`; not for `split_rows`, `is_written`, `written_rows`."""
    if function in ALLOWED_NAMES or (function.startswith("__") and function.endswith("__")):
        return False
    words = function.strip("_").lower().split("_")
    return is_state(words[0]) if len(words) == 1 else is_participle(words[-1]) and words[0] not in OPENERS


def lacks_a_noun(constant: str) -> bool:
    """True for `FEW`, `KEPT`, `ROOM`, `OF_A_TOKEN`; not for `FEW_ROWS`."""
    if constant in ALLOWED_NAMES:
        return False
    words = constant.strip("_").lower().split("_")
    return words[0] == "of" or (
        len(words) == 1 and (is_state(words[0]) or is_superlative(words[0]) or words[0] in VAGUE)
    )


def assigned(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module or a class gives values to."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def offences(source: str) -> Iterator[tuple[str, str]]:
    """(kind, name) of what breaks the rules in a module, kinds: function, constant, comment."""
    tree = ast.parse(source)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and names_a_state(node.name):
            yield "function", node.name
        for statement in node.body if isinstance(node, ast.Module | ast.ClassDef) else []:
            names = assigned(statement)
            if isinstance(node, ast.Module):
                yield from (("constant", name) for name in names if name.isupper() and lacks_a_noun(name))
            words = comments.get(statement.lineno, "").lstrip("# ").replace(",", "").split()
            if names and words and words[0] in CONTINUATIONS:
                yield "comment", names[0]


@functools.cache
def offences_by_room() -> Counter[str]:
    """Lines "room kind name", room: the folder of the file."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return Counter(
        f"{Path(path).parent.as_posix()} {kind} {name}"
        for path in listed.splitlines()
        if not path.startswith("tests/") and (ROOT / path).is_file()
        for kind, name in offences((ROOT / path).read_text(encoding="utf-8"))
    )


def allowed() -> Counter[str]:
    return Counter(ALLOWED.read_text(encoding="utf-8").splitlines())


def test_names_say_what_they_are():
    assert sorted((offences_by_room() - allowed()).elements()) == []


def test_the_list_of_allowed_names_only_shrinks():
    assert sorted((allowed() - offences_by_room()).elements()) == [], "run python tests/test_names.py"
    assert allowed().total() <= MAX_ALLOWED


if __name__ == "__main__":
    left = sorted((allowed() & offences_by_room()).elements())
    ALLOWED.write_text("".join(f"{line}\n" for line in left), encoding="utf-8")
    print(f"{len(left)} lines are left: set MAX_ALLOWED to that")
