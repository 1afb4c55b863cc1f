"""Observations rendered again: what a handler's declared `template` makes of the raw output that a source holds.

A source that keeps both what a tool gave and what the model was shown lets a handler be checked without running it. The
template is that of a declared harness, never of a trace; still nobody has to trust it, since it may have come with a
batch. So what can be rendered is small: text, variables, conditions, loops that are not nested, slices, comparisons,
sums, and those filters and methods of texts below that make little of much. It runs in Jinja's immutable sandbox, with
bounds on the template, on the raw output and on all text that it makes.

Invariants:
- time and memory are bounded by the limits below, whatever template and output say; no clock decides, so that a
  verdict never depends on how busy a machine is;
- no file is read, nothing is included, and no code of a harness or a trace is called;
- a template that asks for a variable which the source does not hold gives nothing, be it by `is defined` or `default`,
  and so does one that fails or exceeds a limit: from that nothing follows, neither for nor against the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from tracemark.harness.includes import TemplateSyntaxFault

if TYPE_CHECKING:
    from jinja2 import Environment, Template, nodes

MAXIMUM_TEMPLATE = 8_192
"""Characters of a template that is rendered."""

MAXIMUM_RAW = 1_048_576
"""Characters of text in the raw output of one observation that is rendered; numbers and names count 16 each."""

MAXIMUM_WORK = 33_554_432
"""Characters that one rendering may write: its result, what filters, methods, slices and sums give (64 for each item of
a list), and the rounds of its loops, each as long as the raw output."""

_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What the constructs of a template may raise, beside what Jinja raises itself; too deep a value is among them."""

_ROUNDS = "rounds"
_MADE = "made"
_SCALAR = 16
_ITEM = 64
_ARGUMENT = 64
_DEPTH = 64
# a number that says how much is written: places behind the point, columns of indentation
_AMOUNTS = frozenset(("round", "tojson"))
_MOST = 16

# in lines, since a list would take a line for each
_NODES = frozenset(
    "Template Output TemplateData Const Name If CondExpr For Assign Getattr Getitem Slice Compare Operand And Or Not"  # noqa: SIM905
    " Filter Test Call Add Sub Neg Pos Div FloorDiv Tuple List Keyword".split()
)
_FILTERS = frozenset(
    "abs capitalize count d default e escape first float int items join last length list lower replace reverse round"  # noqa: SIM905
    " safe string sum title tojson trim truncate upper".split()
)
_METHODS = frozenset(
    "endswith get items keys lower lstrip rstrip split splitlines startswith strip upper values".split()  # noqa: SIM905
)
_TESTS = frozenset(
    "boolean defined divisibleby eq equalto even false float ge gt in integer le lower lt mapping ne none number odd"  # noqa: SIM905
    " sequence string true undefined upper".split()
)


class NotRenderedError(Exception):
    """An observation could not be rendered again; the message says why."""


class Rerendering:
    """The `template` of one handler.

    Args:
        text: the template, in Jinja with the options that Jinja has by default.

    Raises:
        TemplateSyntaxFault: when it does not parse.
        NotRenderedError: when it uses what is not rendered here; the message names it.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAXIMUM_TEMPLATE:
            raise NotRenderedError(f"the template is longer than {MAXIMUM_TEMPLATE} characters")
        self._work = _Work()
        self._template = _compiled(text, self._work)

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return the observation that the template gives.

        Args:
            variables: the raw output: values as JSON has them, by the name under which the template asks for them.

        Raises:
            NotRenderedError: when a variable is missing, when it fails, or when it exceeds a limit.
        """
        from jinja2 import TemplateError  # noqa: PLC0415 - loaded long since, with the template

        self._work.begin(variables)
        pieces = []
        try:
            for piece in self._template.generate(dict(variables)):
                self._work.spend(len(piece))
                pieces.append(piece)
        except (TemplateError, *_FAILURES) as error:
            raise NotRenderedError(f"{type(error).__name__}: {str(error)[:200]}") from None
        return "".join(pieces)


class _Work:
    """How much one rendering has written."""

    def __init__(self) -> None:
        self._size = 0
        self._done = 0

    def begin(self, variables: Mapping[str, Any]) -> None:
        """Begin a rendering."""
        self._size, self._done = _size_of(variables), 0
        if self._size > MAXIMUM_RAW:
            raise NotRenderedError("the raw output is too long")

    def spend(self, characters: int) -> None:
        """Count what was written."""
        self._done += characters
        if self._done > MAXIMUM_WORK:
            raise NotRenderedError("it writes too much")

    def made(self, value: Any) -> Any:
        """Return a value, counted if it is a text or a list."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, list):
            self.spend(len(value) * _ITEM + sum(len(item) for item in value if isinstance(item, str)))
        return value

    def rounds(self, values: Any) -> Any:
        """Return what a loop goes through, its rounds counted."""
        self.spend(len(values) * self._size)
        return values

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter or test of which the result is counted, and which is given no missing value.

        What a template makes of a value that is missing is what it made of one that is not recorded.
        """
        from jinja2 import Undefined  # noqa: PLC0415 - heavy, see `_sandbox`

        @wraps(function)
        def guarded(*arguments: Any, **named: Any) -> Any:
            if any(isinstance(value, Undefined) for value in arguments):
                raise NotRenderedError("a value that it asks for is undefined")
            return self.made(function(*arguments, **named))

        return guarded

    def guard_replace(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the filter `replace`, which makes much of little: what it would write is counted before it does."""

        @wraps(function)
        def guarded(context: Any, value: Any, old: str, new: str, count: int | None = None) -> Any:
            text = str(value)
            self.spend(len(text) + text.count(str(old)) * len(str(new)))
            return function(context, text, old, new, count)

        return guarded


def _sandbox(work: _Work) -> Environment:
    # jinja2 is slow to import, and few harnesses have such a template
    from jinja2 import StrictUndefined  # noqa: PLC0415
    from jinja2.filters import do_replace  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"+"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if not (isinstance(left, str | int | float) and isinstance(right, str | int | float)):
                raise NotRenderedError("only texts and numbers are added")
            return work.made(super().call_binop(context, operator, left, right))

    sandbox = Sandbox(undefined=StrictUndefined, autoescape=False)
    sandbox.filters = {name: work.guard(sandbox.filters[name]) for name in _FILTERS}
    sandbox.filters |= {_ROUNDS: work.rounds, _MADE: work.made, "replace": work.guard_replace(do_replace)}
    tests: dict[str, Any] = sandbox.tests
    sandbox.tests = {name: work.guard(tests[name]) for name in _TESTS}
    sandbox.globals = {}
    return sandbox


def _compiled(text: str, work: _Work) -> Template:
    from jinja2 import TemplateSyntaxError  # noqa: PLC0415 - heavy, see `_sandbox`

    sandbox = _sandbox(work)
    try:
        tree = sandbox.parse(text)
        _require_simple(tree)
        code = sandbox.compile(_counting(tree))
    except TemplateSyntaxError as error:
        raise TemplateSyntaxFault(error.message or "does not parse", error.lineno) from None
    except RecursionError:
        raise TemplateSyntaxFault("is nested too deeply") from None
    return sandbox.template_class.from_code(sandbox, code, sandbox.globals)


def _counting(tree: nodes.Template) -> nodes.Template:
    """Return a template in which the rounds of loops, and what methods and slices give, are counted."""
    from jinja2 import nodes  # noqa: PLC0415 - as above
    from jinja2.visitor import NodeTransformer  # noqa: PLC0415

    def counted(node: Any, name: str) -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    class Counting(NodeTransformer):
        def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - Jinja looks it up by this name
            self.generic_visit(node)
            node.iter = counted(node.iter, _ROUNDS)
            return node

        def visit_Call(self, node: nodes.Call) -> nodes.Filter:  # noqa: N802
            self.generic_visit(node)
            return counted(node, _MADE)

        def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
            self.generic_visit(node)
            return counted(node, _MADE) if isinstance(node.arg, nodes.Slice) else node

    Counting().visit(tree)
    return tree


def _require_simple(tree: nodes.Template) -> None:
    """Make sure that a template uses nothing but what is rendered here.

    Raises:
        NotRenderedError: when it does; the message names the first such thing.
    """
    pending: list[tuple[nodes.Node, bool, int]] = [(tree, False, 0)]
    while pending:
        node, looped, depth = pending.pop()
        reason = _objection(node, looped)
        if reason is None and depth > _DEPTH:
            reason = "nesting"
        if reason is not None:
            raise NotRenderedError(f"line {node.lineno}: {reason} is not rendered")
        inside = looped or type(node).__name__ == "For"
        pending += [(child, inside, depth + 1) for child in node.iter_child_nodes()]


def _objection(node: Any, looped: bool) -> str | None:
    """Return in words what of a node is not rendered; None when all of it is."""
    kind = type(node).__name__
    if kind not in _NODES:
        return f"`{kind}`"
    if kind == "For" and (looped or node.recursive):
        return "a loop in a loop"
    if kind == "Assign" and type(node.target).__name__ != "Name":
        return "an assignment to several names"
    if kind in ("Tuple", "List") and getattr(node, "ctx", "load") == "load" and not all(map(_is_small, node.items)):
        return "a list of what is computed"
    if kind == "Filter":
        return _objection_to(node, "filter", _FILTERS)
    if kind == "Test":
        return _objection_to(node, "test", _TESTS)
    if kind == "Call" and (type(node.node).__name__ != "Getattr" or node.node.attr not in _METHODS):
        return "a call"
    return None


def _objection_to(node: Any, what: str, allowed: frozenset[str]) -> str | None:
    if node.name not in allowed:
        return f"the {what} `{node.name}`"
    arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
    if what == "filter" and (node.dyn_args or node.dyn_kwargs or not all(_is_small(one) for one in arguments)):
        return f"the filter `{node.name}` with a computed or long argument"
    if what == "filter" and node.name in _AMOUNTS and not all(map(_is_few, arguments)):
        return f"the filter `{node.name}` with a number above {_MOST}"
    return None


def _is_small(node: Any) -> bool:
    """Return whether an expression is a constant so short that repeating it makes little of much."""
    kind = type(node).__name__
    if kind == "Neg":
        return _is_small(node.node)
    return kind == "Const" and (not isinstance(node.value, str) or len(node.value) <= _ARGUMENT)


def _is_few(node: Any) -> bool:
    """Return whether a small argument is no number that makes a filter write much."""
    if type(node).__name__ == "Neg":
        return _is_few(node.node)
    return not isinstance(node.value, int | float) or -_MOST <= node.value <= _MOST


def _size_of(variables: Mapping[str, Any]) -> int:
    """Return how much text a raw output holds; counting stops where it is too much.

    Raises:
        NotRenderedError: when it is nested so deeply that its indentation would be long.
    """
    size, pending = 0, [(name, value, 0) for name, value in variables.items()]
    while pending and size <= MAXIMUM_RAW:
        name, value, depth = pending.pop()
        size += len(name) + _SCALAR
        if depth > _DEPTH:
            raise NotRenderedError("the raw output is nested too deeply")
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            pending += [(inner, item, depth + 1) for inner, item in value.items()]
        elif isinstance(value, list):
            pending += [("", item, depth + 1) for item in value]
    return size
