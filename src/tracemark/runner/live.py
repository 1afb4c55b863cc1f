"""The code and the texts of a loaded harness, as running objects.

A `Live` executes exactly the bytes that the harness's identity was computed from: modules are compiled from memory, and
an import inside them that leads to another file of the harness is answered from memory too. Nothing of the harness is
read from disk again, so an edit during a run changes nothing that runs. Imports of anything else (the standard library,
installed packages) go the usual way.

Invariants:
- each `Live` has modules of its own: two harness versions, or two runs of one, that share module names stay apart;
- modules stand in `sys.modules` under a private name while the `Live` is open, because dataclasses and typing look
  there, and `close` takes them out again;
- which names are the harness's own was decided when it was hashed: exactly the modules of its entries' closures.
"""

from __future__ import annotations

import builtins
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from threading import RLock
from types import CodeType, ModuleType
from typing import Any, TypeVar

from tracemark.errors import ManifestError, UnknownNameError, UsageError
from tracemark.harness.closure import module_name
from tracemark.harness.fingerprint import normal, plain
from tracemark.harness.version import Harness
from tracemark.model.harness import JinjaOptions, PromptTemplate

_SERIAL = count()
_Value = TypeVar("_Value")


class Prompt:
    """One prompt template of a harness, ready to be rendered.

    Args:
        template: its manifest entry.
        render: what turns variables into the text.
        on_render: called with each rendered text.
    """

    def __init__(
        self, template: PromptTemplate, render: Callable[..., str], on_render: Callable[[PromptTemplate, str], None]
    ) -> None:
        self.template = template
        """What the manifest says of it: name, role, position."""
        self._render = render
        self._on_render = on_render

    def render(self, **variables: Any) -> str:
        """Return the text for these variables; those with a declared value are filled in.

        Raises:
            UsageError: when a variable is missing, or one with a declared value is given.
        """
        fixed = sorted(self.template.values.keys() & variables.keys())
        if fixed:
            raise UsageError(
                f"{', '.join(fixed)}: the value is declared in harness.yaml",
                where=self.template.name,
                hint="leave it out",
            )
        text = self._render(**self.template.values, **variables)
        if not isinstance(text, str):
            raise UsageError(
                "the template's code gave no text", where=self.template.name, hint="let its entry return a str"
            )
        self._on_render(self.template, text)
        return text


class Live:
    """The running objects of one harness.

    Args:
        harness: the loaded harness.
    """

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._manifest = harness.manifest
        self._files = harness.files
        self._label = f"harness {harness.identity.fingerprint[4:16]}"
        self._folder = harness.folder
        self._prefix = f"_tracemark_{harness.identity.fingerprint[4:20]}_{next(_SERIAL)}"
        self._keys = harness.modules
        self._namespaces = {above for name in self._keys for above in _parents(name)} - self._keys.keys()
        self._modules: dict[str, ModuleType] = {}
        self._lock = RLock()
        self._builtins = {**vars(builtins), "__import__": self._import}

    def close(self) -> None:
        """Take the private modules out of `sys.modules`; what was handed out goes on working."""
        for name in self._modules:
            sys.modules.pop(f"{self._prefix}.{name}", None)

    def prompt(
        self, name: str, on_render: Callable[[PromptTemplate, str], None] = lambda _template, _text: None
    ) -> Prompt:
        """Return the prompt template `name`.

        Raises:
            UnknownNameError: when the harness has none of that name.
            ManifestError: when it cannot be parsed.
        """
        template = _named(name, {each.name: each for each in self._manifest.prompt_templates}, "prompt template")
        if template.entry is not None:
            return Prompt(template, self._entry(template.entry), on_render)
        try:
            text = self._harness.prompt_text(name)
        except UnicodeDecodeError as error:
            raise ManifestError(f"byte {error.start} is not UTF-8", where=template.file) from None
        return Prompt(template, _renderer(template, text or "", self._files), on_render)

    def tool(self, name: str) -> Callable[..., Any]:
        """Return the callable of the tool `name`, with the manifest's `parameters` bound.

        Raises:
            UnknownNameError: when the harness binds none of that name, or binds it without code.
        """
        binding = _named(name, self._manifest.tool_bindings, "tool")
        if binding.entry is None:
            raise UnknownNameError(f"tool {name!r} has no entry: it runs elsewhere", where="harness.yaml")
        return _bound(self._entry(binding.entry), binding.parameters)

    def handler(self, name: str) -> Callable[..., Any]:
        """Return the callable of the observation handler `name`, with the manifest's `parameters` bound.

        Raises:
            UnknownNameError: when the harness has none of that name.
        """
        handlers = {each.name: each for each in self._manifest.observation_handlers}
        handler = _named(name, handlers, "observation handler")
        return _bound(self._entry(handler.entry), handler.parameters)

    def runtime(self, part: str) -> Callable[..., Any]:
        """Return the callable of `parser`, `context_manager` or `recovery`, with its parameters bound.

        Raises:
            UnknownNameError: when the harness declares no such entry.
        """
        runtime = self._manifest.runtime
        calls = {"parser": runtime.parser, "context_manager": runtime.context_manager, "recovery": runtime.recovery}
        call = _named(part, {name: call for name, call in calls.items() if call is not None}, "runtime entry")
        return _bound(self._entry(call.entry), call.parameters)

    def _entry(self, entry: str) -> Callable[..., Any]:
        place, _, attribute = entry.rpartition(":")
        found: object = self._module(module_name(entry))
        for step in attribute.split("."):
            try:
                found = getattr(found, step)
            except AttributeError:
                raise UnknownNameError(f"{entry!r} leads to nothing: there is no {step!r}", where=place) from None
        if not callable(found):
            raise UnknownNameError(f"{entry!r} is nothing that can be called", where=place)
        return found

    def _knows(self, dotted: str) -> bool:
        return dotted in self._keys or dotted in self._namespaces

    def _module(self, dotted: str) -> ModuleType:
        """Return a module of the harness, loaded after the packages above it."""
        with self._lock:
            module = self._modules.get(dotted)
            if module is None:
                above, _, name = dotted.rpartition(".")
                package = self._module(above) if above else None
                # a package may have loaded its child while it was loaded itself
                module = self._modules.get(dotted) or self._load(dotted)
                if package is not None:
                    setattr(package, name, module)
            return module

    def _load(self, dotted: str) -> ModuleType:
        if not self._knows(dotted):
            raise ModuleNotFoundError(f"No module named {dotted!r} in {self._label}", name=dotted)
        private = f"{self._prefix}.{dotted}"
        module = ModuleType(private)
        key = self._keys.get(dotted)
        is_package = key is None or key.endswith("/__init__.py")
        module.__package__ = private if is_package else private.rpartition(".")[0]
        if is_package:
            module.__path__ = []
        self._modules[dotted] = sys.modules[private] = module
        if key is None:
            return module
        vars(module)["__builtins__"] = self._builtins
        if self._folder is not None and ":" not in key:
            module.__file__ = str(self._folder / key)
        try:
            code = _compiled(self._files[key], f"<{self._label}>/{key}")
            exec(code, vars(module))  # noqa: S102 - running the harness is what a recorder is for
        except BaseException:
            del self._modules[dotted], sys.modules[private]
            raise
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names that Python calls it with
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - as above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Answer an import statement of a module of the harness."""
        if level:
            name = self._absolute(str((globals or {}).get("__package__", "")), name, level)
        top = name.partition(".")[0]
        if not self._knows(top):
            return builtins.__import__(name, globals, locals, fromlist or (), 0)
        module = self._module(name)
        if not fromlist:
            return self._module(top)
        for item in getattr(module, "__all__", ()) if "*" in fromlist else fromlist:
            if not hasattr(module, item) and self._knows(f"{name}.{item}"):
                self._module(f"{name}.{item}")
        return module

    def _absolute(self, package: str, name: str, level: int) -> str:
        parts = package.removeprefix(self._prefix).strip(".").split(".")
        if not parts[0] or level > len(parts):
            raise ImportError("attempted relative import beyond top-level package")
        above = ".".join(parts[: len(parts) - level + 1])
        return f"{above}.{name}" if name else above


def _parents(dotted: str) -> Iterator[str]:
    while "." in dotted:
        dotted = dotted.rpartition(".")[0]
        yield dotted


def _named(name: str, known: Mapping[str, _Value], what: str) -> _Value:
    try:
        return known[name]
    except (KeyError, TypeError):
        # a name that is no text may be none that a mapping can look for
        hint = "one of: " + ", ".join(known) if known else "the harness declares none"
        raise UnknownNameError(f"the harness has no {what} {name!r}", where="harness.yaml", hint=hint) from None


def _bound(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    """Return `function` with arguments that its caller, and so the model, can neither see nor change."""
    if not parameters:
        return function

    def call(*arguments: Any, **named: Any) -> Any:
        taken = sorted(parameters.keys() & named.keys())
        if taken:
            raise TypeError(f"{', '.join(taken)}: bound in harness.yaml")
        return function(*arguments, **named, **parameters)

    return call


def _renderer(template: PromptTemplate, text: str, files: Mapping[str, bytes]) -> Callable[..., str]:
    if template.syntax == "literal":
        return lambda **_variables: text
    if template.syntax == "format":
        return lambda **variables: _format(template.name, text, variables)
    from jinja2 import FunctionLoader, StrictUndefined, TemplateError, Undefined  # noqa: PLC0415 - heavy, rarely used
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415 - as above

    options = template.options or JinjaOptions()
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: plain(files[normal(name)].decode()) if normal(name) in files else None),
        trim_blocks=options.trim_blocks,
        lstrip_blocks=options.lstrip_blocks,
        keep_trailing_newline=options.keep_trailing_newline,
        autoescape=options.autoescape,
        undefined=StrictUndefined if options.undefined == "strict" else Undefined,
    )

    def render(**variables: Any) -> str:
        try:
            return environment.from_string(text).render(**variables)
        except TemplateError as problem:
            hint = "render(…) with a value for each variable that the template uses"
            raise UsageError(f"the template cannot be rendered: {problem}", where=template.name, hint=hint) from None

    return render


def _format(name: str, text: str, variables: Mapping[str, Any]) -> str:
    try:
        return text.format_map(variables)
    except KeyError as problem:
        missing = problem.args[0]
        raise UsageError(
            f"the template cannot be rendered: no value is given for {missing!r}",
            where=name,
            hint=f"render({missing}=…)",
        ) from None
    except (IndexError, AttributeError, TypeError, ValueError) as problem:
        hint = "give each hole what its format asks for; a hole has a name, and text in braces has them doubled"
        raise UsageError(f"the template cannot be rendered: {problem}", where=name, hint=hint) from None


@lru_cache(maxsize=512)
def _compiled(source: bytes, name: str) -> CodeType:
    """Compile once per text; tracebacks show the text that ran, not what the disk holds by then."""
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as problem:
        raise ManifestError(f"the code does not compile: {problem}", where=name) from None
    text = source.decode("utf-8", "replace")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return code
