"""The page of `docs/reference/` on `tracemark.stats`: every public function, what it says of an example, who asks it.

The examples are run and what comes out is written, rounded; who asks is read from the imports.

Invariants:
- a public function without an example, an example of none, and a module that asks and is not in `ASKING` stop the page.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from declared import cell, fields_of, paragraph, texts_below

from tracemark import stats
from tracemark.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tracemark"
MODULES = ("counts", "passing", "compare", "noise", "cost", "intervals", "posterior", "bands")
NEED_SCIPY = (
    "intervals.jeffreys",
    "posterior.cumulative",
    "posterior.quantile",
    "bands.masses",
    "bands.band",
    "bands.zone_probability",
    "bands.in_goldilocks_zone",
)
"""Functions that ask scipy."""
DIGITS = 6
"""Digits of a number in an example: those that every machine agrees on."""
WIDTH = 110

ASKING = {
    "src/tracemark/gates/compare.py": "`gate harness`, `gate model`",
    "src/tracemark/gates/grounds.py": "`check`, `gate log`",
    "benchmarks/simulate_gates.py": "[the simulation of gates](gate-errors.md)",
}
"""Who asks functions of `stats`, by the file that imports them: commands, or a page."""

GIVEN = """\
before = {"desk/a": Counts(4, 2), "desk/b": Counts(4, 3), "desk/c": Counts(4, 0)}
after = {"desk/a": Counts(4, 4), "desk/b": Counts(4, 3), "desk/c": Counts(4, 1)}
uneven = {"desk/a": Counts(4, 2), "desk/b": Counts(5, 2)}
"""
"""What the examples begin with."""

EXAMPLES = {
    "counts.require_possible": ('require_possible(Counts(2, 3), "desk/a")',),
    "counts.require_measured": ('require_measured(Counts(0, 0), "desk/a")',),
    "counts.require_equal": ("require_equal(uneven)", "require_equal(before)"),
    "counts.withheld": ("withheld(before, k=5)", "withheld({})"),
    "counts.attempts_of_each": ("attempts_of_each(before)",),
    "counts.require_draws": ("require_draws(0)",),
    "passing.pass_at": ("pass_at(Counts(20, 13), 5)", "pass_at(Counts(4, 2), 5)"),
    "passing.pass_all": (
        "pass_all(Counts(20, 19), 20, Estimator.COMBINATIONS)",
        "pass_all(Counts(20, 19), 20, Estimator.POWER)",
    ),
    "passing.at_least_once": ("at_least_once(Counts(4, 1))",),
    "passing.mean_rate": ("mean_rate(Counts(4, 3))",),
    "passing.aggregate": (
        "aggregate(before, 2, Measure.ALL_OF_K_COMBINATIONS)",
        "aggregate(before, None, Measure.AT_LEAST_ONCE)",
        "aggregate(uneven, None, Measure.MEAN)",
    ),
    "compare.paired": ("paired(before, after)",),
    "compare.sign_test": ("sign_test(13, 5)",),
    "compare.mcnemar": ("mcnemar(13, 5)",),
    "compare.probability_greater": ("probability_greater(Counts(4, 3), Counts(4, 1))",),
    "noise.noise_floor": ("noise_floor(before, 4)", 'noise_floor({"desk/a": Counts(1, 1)}, 1)'),
    "noise.distribution": ("distribution(before, 4)",),
    "noise.repeated": ("repeated([before, after])", "repeated([before])"),
    "cost.total_cost": ("total_cost([0.5, 0.25, 0.75])", "total_cost([0.5, None, 0.75])"),
    "cost.cost_per_success": ("cost_per_success([0.5, 0.25, 0.75], 2)", "cost_per_success([0.5, 0.25, 0.75], 0)"),
    "cost.cost_per_reliable_task": ("cost_per_reliable_task([0.5] * 12, after)",),
    "intervals.jeffreys": ("jeffreys(Counts(20, 13))", "jeffreys(Counts(20, 20))"),
    "intervals.wilson": ("wilson(Counts(20, 13))", "wilson(Counts(20, 20))"),
    "posterior.cumulative": ("cumulative(Counts(4, 3), 0.5)",),
    "posterior.quantile": ("quantile(Counts(4, 3), 0.5)",),
    "bands.masses": ("masses(Counts(4, 3))",),
    "bands.heaviest": ("heaviest(masses(Counts(4, 3)))",),
    "bands.band": ("band(Counts(4, 3))", "band(Counts(2, 1))"),
    "bands.zone_probability": ("zone_probability(Counts(4, 3))",),
    "bands.in_goldilocks_zone": ("in_goldilocks_zone(Counts(4, 3))", "in_goldilocks_zone(Counts(8, 4))"),
}
"""Expressions by the function that they show."""

_TEXT = """\
# Statistics

<!-- made by docs/generate.py; edit the source instead -->

{about}

Those of which the table says so need scipy: `pip install 'PATH[stats]'`, with the path of this repository. An
evaluation is a mapping of each task to its `Counts`.

| function | says | asked by | needs scipy |
|---|---|---|---|
{table}
What nobody asks is for evaluations of one's own. The examples have numbers of at most {digits} digits, and begin with

```python
{given}```
{modules}"""


def page() -> str:
    """Return the page.

    Raises:
        ValueError: when the examples are not of the public functions, or somebody asks who is not in `ASKING`.
    """
    modules = [import_module(f"{stats.__name__}.{name}") for name in MODULES]
    known = {place(value): value for module in modules for value in public(module) if inspect.isfunction(value)}
    if apart := known.keys() ^ EXAMPLES.keys():
        raise ValueError(f"of these there is a function or an example, and not the other: {', '.join(sorted(apart))}")
    return _TEXT.format(
        about=inspect.getdoc(stats),
        table="".join(_rows(known)),
        digits=DIGITS,
        given=GIVEN,
        modules="".join(map(_of_module, modules)),
    )


def public(module: ModuleType) -> list[Any]:
    """Return the public functions and classes of a module, in the order in which they stand there."""
    found = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
    return sorted(found, key=lambda value: inspect.getsourcelines(value)[1])


def place(value: Any) -> str:
    """Return the name of a function or class with its module's."""
    return f"{value.__module__.rpartition('.')[2]}.{value.__name__}"


def asked() -> dict[str, set[str]]:
    """Return for each function and class of `stats` the files outside it that import it."""
    found: dict[str, set[str]] = {}
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    for path in (one for one in files if not one.is_relative_to(PACKAGE / "stats")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{stats.__name__}."):
                for one in node.names:
                    name = f"{(node.module or '').rpartition('.')[2]}.{one.name}"
                    found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def _called_here() -> Iterator[str]:
    """Yield the names of what `stats` itself calls."""
    for path in (PACKAGE / "stats").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr


def _rows(known: dict[str, Any]) -> Iterator[str]:
    asking, called = asked(), set(_called_here())
    for name, function in known.items():
        files = asking.get(name, set())
        if unknown := files - ASKING.keys():
            raise ValueError(f"who asks {name} is not known: {', '.join(sorted(unknown))}")
        who = ", ".join(said for file, said in ASKING.items() if file in files)
        who = who or ("others here" if name.rpartition(".")[2] in called else "nobody")
        scipy = "yes" if name in NEED_SCIPY else ""
        says = cell(paragraph(inspect.getdoc(function) or "").removeprefix("Return ").rstrip("."))
        yield f"| [`{name}`](#{_anchor(function)}) | {says} | {who} | {scipy} |\n"


def _title(function: Any) -> str:
    arguments = ", ".join(
        str(one.replace(annotation=one.empty)) for one in inspect.signature(function).parameters.values()
    )
    return f"{place(function)}({arguments})"


def _anchor(function: Any) -> str:
    """Return where the heading of a function is to be found: its text without punctuation, with dashes for spaces."""
    kept = "".join(one for one in _title(function).lower() if one.isalnum() or one in "_- ")
    return kept.replace(" ", "-")


def _of_module(module: ModuleType) -> str:
    lines = [f"\n## {module.__name__.rpartition('.')[2]}\n\n{inspect.getdoc(module)}\n"]
    tree = ast.parse(inspect.getsource(module))
    nodes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for value in public(module):
        if inspect.isclass(value):
            node = nodes[value.__name__]
            rows = [(name, text) for name, _, text in fields_of(node)] or list(texts_below(node).items())
            lines.append(f"\n### {place(value)}\n\n{inspect.getdoc(value)}\n\n| member | meaning |\n|---|---|\n")
            lines += [f"| `{name}` | {cell(text)} |\n" for name, text in rows]
        else:
            lines.append(f"\n### {_title(value)}\n\n```text\n{inspect.getdoc(value)}\n```\n\n```pycon\n")
            lines += [f">>> {example}\n{answer(example)}" for example in EXAMPLES[place(value)]]
            lines.append("```\n")
    return "".join(lines)


def answer(expression: str) -> str:
    """Return what an interpreter says to an expression; nothing to None."""
    names: dict[str, Any] = {}
    for name in MODULES:
        module = import_module(f"{stats.__name__}.{name}")
        names |= {value.__name__: value for value in public(module)}
    exec(GIVEN, names)  # noqa: S102
    try:
        value = eval(expression, names)  # noqa: S307
    except UsageError as error:
        return f"UsageError: {error}\n"
    return "" if value is None else f"{shown(value)}\n"


def shown(value: Any) -> str:
    """Return a value as an interpreter shows it, numbers rounded and long ones in several lines."""
    if isinstance(value, float):
        return repr(float(f"{value:.{DIGITS}g}"))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        parts = [f"{name}={shown(member)}" for name, member in value._asdict().items()]
        return _wrapped(f"{type(value).__name__}(", parts, ")")
    if isinstance(value, list):
        return _wrapped("[", [shown(one) for one in value], "]")
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + (",)" if len(value) == 1 else ")")
    if isinstance(value, dict):
        return _wrapped("{", [f"{shown(name)}: {shown(one)}" for name, one in value.items()], "}")
    return repr(value)


def _wrapped(begin: str, parts: list[str], end: str) -> str:
    line = begin + ", ".join(parts) + end
    return line if len(line) <= WIDTH else "\n".join([begin, *(f"    {part}," for part in parts), end])
