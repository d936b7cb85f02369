"""Plain English: docs, docstrings, error messages and help use no odd words, and sentences and lines end in time."""

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HOUSE = Path(__file__).parents[1]
WINGS = ("core_jax", "policy", "engineer", "experiments")
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").glob("*.md")), *sorted((HOUSE / "docs" / "lab").glob("*.md"))]
FILES = sorted(file for wing in WINGS for file in (HOUSE / wing).rglob("*.py"))
# Files of prompts, which stay as the models that they were measured with were asked.
PROMPTS = {"engineer/evidence/text_form.py", "engineer/words.py", "engineer/teachers/llm_prompt.py"}
PROSE = re.compile(r"[A-Za-z,]+ [a-z,]+ [a-z]+")  # a string with three words in a row is read by people
LONGEST_SENTENCE, LONGEST_LINE = 35, 160  # words; letters of a line of a page, tables apart

# Words that are old, mean several things, or make persons of programs.
WRONG = re.compile(
    r"\b(mend(ed|s)?|spoil(t|ed)|robbed|dispos(es|ed)|reckon(ed)?|anew|afresh|whoever|hence|besides|level with"
    r"|taken back|gone back|has its say|means? harm|do(es)? harm|its like|of ours|of our own|no chance in it"
    r"|as if alone"
    r"|(is|are) told|was told|what (became|came) of|came? to nothing|where there is (a|no) way|by chance alone"
    r"|of before|a stranger|the same again)\b"
)
# Words that are often, not always, wrong.
DOUBTFUL = re.compile(
    r"\b(so many|where that|is no [a-z]+|are no [a-z]+|that (there )?(is|are) there|as it (is|was)\b|looked at|goes on"
    r"|made[- ]up|comes? home|at home|in words|kept)\b"
)
ARGUMENTS = re.compile(r"(?m)^(?:Args|Returns|Raises|Yields):\n((?: {4}.*(?:\n|\Z))+)")  # of a docstring
QUESTION = re.compile(r"(What|Whether|How|Which|Who)\b")  # no first word of a docstring, as it names nothing
# Turns of phrase that a native engineer hardly uses. In docstrings of mctx, nanochat and gymnax each occurs at most
# once in 10,000 words; what is counted here needs no context.
TURNS = {
    "that of, those of": re.compile(r"\b([Tt]hat|[Tt]hose) of\b"),
    "arguments explained by of": re.compile(r"(?m)(^\s*(\w+, )*\w+|[.;] \w+): (of|for) \w+"),
    "as for because": re.compile(r", as (?=(it|they|this|that|there|all|each|one|none|nobody)\b)"),
    "where for if": re.compile(
        r"\b(Raises [^.]*|None|null|nothing|empty|error|only|also|0|1) where\b|\bwhere (there|none|no)\b"
    ),
    "of what, than what": re.compile(r"\b(of|than|to|by|in|with|from) what\b"),
    "none": re.compile(r"\b(none|None of)\b"),
}
CONTRACTION = re.compile(r"\b(\w+n't|(it|that|there|what|here|let)'s|(they|you|we)'(re|ll|ve))\b")

CONTRACTIONS = {"docstring": 8, "page": 20}  # in 10,000 words, at least; those projects have 8. A number only rises.
# How often each still occurs. A number only falls.
BUDGETS = {
    "doubtful words in pages": 0,
    "doubtful words in the lab": 32,
    "doubtful words in docstrings": 3,
    "doubtful words in arguments": 0,
    "doubtful words in messages": 0,
    "docstrings that begin with a question": 0,
    "long sentences in pages": 5,
    "long sentences in docstrings": 6,
    "long lines in pages": 0,
    "that of, those of in docstrings": 0,
    "arguments explained by of in docstrings": 0,
    "as for because in docstrings": 0,
    "where for if in docstrings": 0,
    "of what, than what in docstrings": 0,
    "none in docstrings": 0,
    "that of, those of in arguments": 0,
    "arguments explained by of in arguments": 0,
    "as for because in arguments": 0,
    "where for if in arguments": 0,
    "of what, than what in arguments": 0,
    "none in arguments": 0,
    "that of, those of in pages": 0,
    "arguments explained by of in pages": 0,
    "as for because in pages": 0,
    "where for if in pages": 0,
    "of what, than what in pages": 0,
    "none in pages": 4,
    "that of, those of in messages": 0,
    "arguments explained by of in messages": 0,
    "as for because in messages": 0,
    "where for if in messages": 0,
    "of what, than what in messages": 2,
    "none in messages": 5,
}


class Text(NamedTuple):
    """A text of the project.

    kind: page, lab, docstring, argument, message, or template (several lines). where: its line.
    """

    kind: str
    where: str
    text: str
    asks: bool = False  # a function that returns a bool


@functools.cache
def texts() -> list[Text]:
    """All texts that people read."""
    pages = (text for page in PAGES for text in page_texts(page))
    return [*pages, *(text for file in FILES for text in code_texts(file))]


def page_texts(page: Path) -> Iterator[Text]:
    """The paragraphs and cells of a page, without code, addresses of links, and tables made by a script."""
    kind, text = "lab" if page.parent.name == "lab" else "page", page.read_text()
    for pattern in (r"^( *)```.*?^\1```", r"<!-- made: .*?<!-- end -->", r"<!--.*?-->"):
        text = re.sub(pattern, blank, text, flags=re.S | re.M)
    text = re.sub(r"^ {4}\S.*$", "", text, flags=re.M)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "`", text))
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|\|)", text):
        if block.strip(" |\n"):
            yield Text(kind, f"{page.name}:{line}", block)
        line += block.count("\n")


def blank(found: re.Match[str]) -> str:
    """As many empty lines as a match has."""
    return "\n" * found[0].count("\n")


def code_texts(file: Path) -> Iterator[Text]:
    """The docstrings of a file, and its strings: messages, help, titles of charts."""
    place, tree = file.relative_to(HOUSE), ast.parse(file.read_text())
    quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings, read as such
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            returns = getattr(node, "returns", None)
            asks = isinstance(returns, ast.Name) and returns.id == "bool"
            where = f"{place}:{getattr(node, 'lineno', 1)}"
            docstring = ast.get_docstring(node) or ""
            yield Text("docstring", where, strip_code(docstring), asks)
            yield from (Text("argument", where, strip_quoted(text)) for text in ARGUMENTS.findall(docstring))
            yield from (Text("message", where, strip_code(text)) for text in name_texts(node.body))
        elif (
            isinstance(node, ast.Constant)
            and is_prose(node.value)
            and id(node) not in quiet
            and str(place) not in PROMPTS
        ):
            text = str(node.value)
            yield Text("template" if "\n" in text else "message", f"{place}:{node.lineno}", text)


def is_prose(value: object) -> bool:
    """Return True if a constant is a string that people read."""
    return isinstance(value, str) and bool(PROSE.search(value))


def name_texts(body: list[ast.stmt]) -> Iterator[str]:
    """The texts below names, such as the settings of a run, of which they are the help."""
    for name, text in itertools.pairwise(body):
        below = isinstance(name, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr)
        if below and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            yield text.value.value


def strip_code(docstring: str) -> str:
    """A docstring without quoted code and indented lines: formulas, and arguments, which are texts of their own."""
    return strip_quoted(re.sub(r"(?m)^ {4}.*$", "", docstring))


def strip_quoted(text: str) -> str:
    """A text without the code in backquotes."""
    return re.sub(r"`[^`]*`", "`", text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text."""
    yield from re.split(r"(?<=[.!?:])\s+|\n\n", text)


def long_sentences(text: Text) -> Iterator[str]:
    """Sentences with too many words."""
    for sentence in sentences(text.text):
        if len(re.findall(r"[A-Za-z]{2,}|\ba\b", sentence)) > LONGEST_SENTENCE:
            yield f"{text.where}: {' '.join(sentence.split())[:100]}"


def found(pattern: re.Pattern[str], kind: str) -> list[str]:
    """Each place where a pattern is in a text of a kind."""
    hits = ((text, hit) for text in texts() if text.kind == kind for hit in pattern.finditer(text.text))
    return [f"{text.where}: {hit[0]}" for text, hit in hits]


def long_lines() -> list[str]:
    """Lines of prose in pages outside the lab that are too long."""
    pages = [page for page in PAGES if page.parent.name != "lab"]
    lines = [(page, *line) for page in pages for line in enumerate(page.read_text().splitlines(), 1)]
    prose = [(page, number, line) for page, number, line in lines if not line.startswith(("|", "    "))]
    return [f"{page.name}:{number}" for page, number, line in prose if len(line) > LONGEST_LINE]


COUNTED: dict[str, Callable[[], list[str]]] = {
    "doubtful words in pages": lambda: found(DOUBTFUL, "page"),
    "doubtful words in the lab": lambda: found(DOUBTFUL, "lab"),
    "doubtful words in docstrings": lambda: found(DOUBTFUL, "docstring"),
    "doubtful words in arguments": lambda: found(DOUBTFUL, "argument"),
    "doubtful words in messages": lambda: found(DOUBTFUL, "message"),
    "docstrings that begin with a question": lambda: [
        text.where for text in texts() if text.kind == "docstring" and not text.asks and QUESTION.match(text.text)
    ],
    "long sentences in pages": lambda: [hit for text in texts() if text.kind == "page" for hit in long_sentences(text)],
    "long sentences in docstrings": lambda: [
        hit for text in texts() if text.kind in ("docstring", "message") for hit in long_sentences(text)
    ],
    "long lines in pages": long_lines,
    **{f"{name} in docstrings": functools.partial(found, TURNS[name], "docstring") for name in TURNS},
    **{f"{name} in arguments": functools.partial(found, TURNS[name], "argument") for name in TURNS},
    **{f"{name} in pages": functools.partial(found, TURNS[name], "page") for name in TURNS},
    **{f"{name} in messages": functools.partial(found, TURNS[name], "message") for name in TURNS},
}


@pytest.mark.parametrize("kind", CONTRACTIONS)
def test_people_are_written_to_as_people_speak(kind):
    words = sum(len(re.findall(r"[A-Za-z]+", text.text)) for text in texts() if text.kind == kind)
    rate = 10_000 * len(found(CONTRACTION, kind)) / words
    assert rate >= CONTRACTIONS[kind], f"{rate:.1f} contractions in 10,000 words of {kind}s"


@pytest.mark.parametrize("kind", ["page", "lab", "docstring", "argument", "message", "template"])
def test_no_text_has_a_wrong_word(kind):
    wrong = found(WRONG, kind)
    assert not wrong, "say it in plain words:\n" + "\n".join(wrong)


@pytest.mark.parametrize("what", COUNTED)
def test_prose_does_not_get_worse(what):
    places = COUNTED[what]()
    assert len(places) <= BUDGETS[what], f"{len(places)} {what}, at most {BUDGETS[what]}:\n" + "\n".join(places)
