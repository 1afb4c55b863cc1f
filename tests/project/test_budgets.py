"""The size of things, and who may do what: read from the source, nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tracemark"
MODULES = sorted(PACKAGE.rglob("*.py"))
COMMANDS = sorted((PACKAGE / "cli" / "commands").glob("[!_]*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}

MAY_WRITE_FILES = {
    "durable.py",  # whole or not at all
    "ledger/chain.py",  # the ledger is appended to
    "runner/journal.py",  # a journal grows while a run is under way
    "store/segment.py",  # temporaries, which durable publishes
    "store/draft.py",  # rows wait beside a temporary until it is committed
    "acts/export.py",  # rows are copied to a temporary, renamed when synced
    "acts/interchange.py",  # documents are copied to a temporary, renamed when synced
    "acts/interchange_job.py",  # documents wait in a workspace, or in a folder that is renamed when all are there
    "testing.py",  # damaged copies of samples, in a folder that goes with the test
    "acts/failure_export.py",  # the files of a log are made in a workspace, and copied from there when all are whole
    "acts/failure_folder.py",  # a manifest, in a folder that gets its name when all of it is on disk
    "acts/failure_job.py",  # rows and examples wait in a workspace
    "acts/export_job.py",  # rows wait in a workspace until they are chosen
}
"""Modules that may open files for writing, each for its reason; all others go through `durable`."""

MAY_READ_THE_CLOCK = {"clock.py"}
MAY_HASH = {"digest.py"}
_WRITING_METHODS = {"write_text", "write_bytes"}
_CLOCKS = {"time", "uuid", "random", "secrets", "datetime"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def offenders(rule: Callable[[Path], Iterable[str]], exempt: Collection[str] = ()) -> dict[str, list[str]]:
    """Return what `rule` finds, by module; one test for each module would cost more than what it tests."""
    found = {name_of(path): list(rule(path)) for path in MODULES if name_of(path) not in exempt}
    return {name: faults for name, faults in found.items() if faults}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a whole function, its docstring left out."""
    docstring = 0
    if ast.get_docstring(function) is not None:
        docstring = function.body[0].end_lineno - function.body[0].lineno + 1
    return function.end_lineno - function.lineno + 1 - docstring


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in named if argument.arg not in {"self", "cls"}]


def test_a_module_has_at_most_400_lines() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_a_function_has_at_most_60_lines() -> None:
    def long(path: Path) -> Iterator[str]:
        return (f"{f.name}: {length(f)}" for f in functions(TREES[path]) if length(f) > 60)

    assert offenders(long) == {}


def test_a_function_takes_at_most_six_parameters() -> None:
    def many(path: Path) -> Iterator[str]:
        return (f"{f.name}: {len(parameters(f))}" for f in functions(TREES[path]) if len(parameters(f)) > 6)

    assert offenders(many) == {}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_is_one_function_of_at_most_15_lines(path: Path) -> None:
    (command,) = functions(TREES[path])
    assert command.name == "command"
    assert body_lines(command) <= 15


def test_every_module_and_public_name_has_a_docstring() -> None:
    def public(body: list[ast.stmt], owner: str) -> Iterator[str]:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if node.name.startswith("_") or _is_overload(node):
                continue
            if ast.get_docstring(node) is None:
                yield owner + node.name
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{owner}{node.name}.")

    def bare(path: Path) -> Iterator[str]:
        if not ast.get_docstring(TREES[path]):
            yield "the module"
        yield from public(TREES[path].body, "")

    assert offenders(bare) == {}


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(decorator).endswith(("overload", ".setter")) for decorator in node.decorator_list)


def test_files_are_written_only_where_that_is_somebodys_task() -> None:
    assert offenders(lambda path: writes(TREES[path]), MAY_WRITE_FILES) == {}


def test_the_list_of_writers_names_no_module_that_is_gone() -> None:
    assert {name for name in MAY_WRITE_FILES if not list(writes(TREES[PACKAGE / name]))} == set()


def writes(tree: ast.AST) -> Iterator[str]:
    """Yield each call that opens a file for writing or writes one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in {*_WRITING_METHODS, "open", "fdopen"}:
            continue
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
        text = ast.unparse(node)
        by_mode = any(re.fullmatch(r"[rwaxbt+]+", mode) and set(mode) & set("wax+") for mode in modes)
        by_flag = "O_WRONLY" in text or "O_RDWR" in text
        if called in _WRITING_METHODS or ((by_mode or by_flag) and "os.devnull" not in text):
            yield f"line {node.lineno}: {text}"


def test_only_the_command_line_prints_asks_or_exits() -> None:
    outputs = {"print", "input", "exit", "quit", "sys.exit", "sys.stdout.write", "sys.stderr.write"}

    def prints(path: Path) -> Iterator[str]:
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in outputs:
                yield f"line {node.lineno}: {ast.unparse(node.func)}"
            elif isinstance(node, ast.Raise) and node.exc is not None and "SystemExit" in ast.unparse(node.exc):
                yield f"line {node.lineno}: SystemExit"

    # where the program begins, the command line may not be loaded yet
    exempt = {name_of(path) for path in MODULES if name_of(path).startswith("cli/")} | {"__main__.py"}
    assert offenders(prints, exempt) == {}


def imported(path: Path) -> set[str]:
    """Return the packages that a module imports, without their modules."""
    found = set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_only_the_clock_knows_the_time() -> None:
    # a type may be named: `datetime` is read by its methods, and ruff bans those
    assert offenders(lambda path: imported(path) & (_CLOCKS - {"datetime"}), MAY_READ_THE_CLOCK) == {}


def test_only_the_digest_hashes() -> None:
    assert offenders(lambda path: imported(path) & {"hashlib"}, MAY_HASH) == {}


def test_nothing_catches_every_exception_but_a_boundary() -> None:
    # to the user; to importers, and to modules that entry points name, which may be anybody's; to the module from which
    # the user freezes a harness; and to the program whose calls are recorded, which no fault of the recorder may stop
    boundaries = {
        "cli/main.py",
        "importers/guard.py",
        "registry.py",
        "acts/harness_freeze.py",
        "runner/openai_calls.py",
    }

    def broad(path: Path) -> list[str]:
        found = [
            f"line {node.lineno}"
            for node in ast.walk(TREES[path])
            if isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) == "Exception")
        ]
        return found[1:] if name_of(path) in boundaries else found

    assert offenders(broad) == {}


def test_no_module_is_named_after_nothing() -> None:
    empty = {"utils", "util", "helpers", "common", "core", "misc"}
    assert offenders(lambda path: empty & set(path.relative_to(PACKAGE).with_suffix("").parts)) == {}


def test_a_folder_holds_more_than_one_module() -> None:
    lonely = [
        folder.relative_to(PACKAGE).as_posix()
        for folder in PACKAGE.rglob("*")
        if folder.is_dir() and folder.name != "__pycache__" and len(list(folder.glob("*.py"))) < 2
    ]
    assert lonely == []
