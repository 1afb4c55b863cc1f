"""The values of a harness manifest, `harness.yaml` in format `tracemark/harness/1`.

A manifest says which texts and which code write an agent's prompts, bind its tools and turn tool results into
observations. Nothing here reads a file: a path is a text that somebody else resolves. An unknown key is an error in
every mapping, so that a misspelt member never changes a harness silently.

Labels (`name`, `description`) and places (`roots`, `packages`, `ignore`) are no identity; every other member is hashed
within the part it stands in, defaults filled in. A member that is None says nothing and is not hashed, so that an
optional member added later leaves old fingerprints alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator

from tracemark.model.value import Value

COMPONENTS = ("prompt_templates", "tool_bindings", "observation_handlers", "runtime")
"""The four components of a harness, in the order and spelling used everywhere."""

MANIFEST_FORMAT = "tracemark/harness/1"
"""The `format` that every manifest of this version states."""

MANIFEST_NAME = "harness.yaml"
"""The file that makes a folder a harness version."""

DERIVED = "entry"
"""What `schema` says of a tool with an entry whose schema is made from the signature of that entry."""

ORDERED = ("prompt_templates", "observation_handlers")
"""The components in which the order of the parts counts."""

Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"),
]
"""The name of a part: 1 to 200 characters on one line, without spaces around it."""

Entry = Annotated[
    str,
    StringConstraints(
        max_length=500, pattern=r"^[^:\x00-\x1f\x7f]+:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
    ),
]
"""Where code begins: `path/in/folder.py:attribute` or `package.module:attribute`; the attribute may be dotted."""

PathText = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A path with forward slashes, relative to the harness folder."""


class _Value(Value):
    model_config = ConfigDict(protected_namespaces=())


class JinjaOptions(_Value):
    """How a Jinja environment treats a template's white space and its unknown variables; these change the text."""

    trim_blocks: bool = False
    """Whether the first newline after a block is removed."""
    lstrip_blocks: bool = False
    """Whether white space before a block is removed."""
    keep_trailing_newline: bool = False
    """Whether a newline at the end of the template stays."""
    autoescape: bool = False
    """Whether values are escaped for HTML."""
    undefined: Literal["default", "strict"] = "default"
    """What a variable without a value gives: nothing, or an error."""


class PromptTemplate(_Value):
    """One text that the harness puts before the agent's first reply, or anywhere in a run."""

    name: Name
    """The part's name, unique among the prompt templates."""
    file: PathText | None = None
    """The file that holds the template; exactly one of `file`, `text` and `entry` is given."""
    text: str | None = None
    """The template itself, written in the manifest."""
    entry: Entry | None = None
    """Code that makes the text."""
    syntax: Literal["literal", "format", "jinja"] = "literal"
    """How variables stand in it: not at all, as in `str.format`, or as in Jinja. Means nothing for an entry."""
    role: Literal["system", "developer", "user", "assistant"] = "system"
    """The role of the message that holds the text."""
    position: Literal["first", "any"] = "first"
    """`first`: the n-th such template of a role and agent is the n-th message of that role, where one that renders to
    no text and messages of templates of position `any` are not counted; `any`: it may stand anywhere, or nowhere."""
    agent: Name | None = None
    """The agent that gets it, where a harness runs several; None means the main agent."""
    variables: dict[Name, Literal["constant", "task", "run"]] = Field(default_factory=dict)
    """What each variable depends on: on nothing, on the task, or on the single run."""
    values: dict[Name, str] = Field(default_factory=dict)
    """The value of variables that are constant, where it is declared; hashed, and usable for comparison."""
    options: JinjaOptions | None = None
    """The environment's options; defaults are filled in where the syntax is `jinja`, None elsewhere."""

    @model_validator(mode="before")
    @classmethod
    def _fill_options(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("syntax") == "jinja" and data.get("options") is None:
            return {**data, "options": {}}
        return data

    @model_validator(mode="after")
    def _one_source(self) -> PromptTemplate:
        if sum(source is not None for source in (self.file, self.text, self.entry)) != 1:
            raise ValueError("exactly one of `file`, `text` and `entry` must be given")
        if self.options is not None and self.syntax != "jinja":
            raise ValueError("`options` belong to `syntax: jinja`")
        for name in self.values:
            if self.variables.get(name) != "constant":
                raise ValueError(f"`values` holds {name!r}, which `variables` does not call constant")
        return self


class ToolBinding(_Value):
    """One tool that the agent may call, with the schema it is shown and the code behind it."""

    definition: PathText | dict[str, Any] = Field(alias="schema")
    """The member `schema`: a JSON file, the schema itself in any provider's wrapper, or `entry` (the default where
    there is one): made from the entry's signature. Reading a folder writes such a schema out."""
    entry: Entry | None = None
    """The code that runs; None when the tool runs elsewhere."""
    mutates: bool = False
    """Whether a call can change the state of the environment."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Arguments bound to the entry that the model does not see."""


class ObservationHandler(_Value):
    """One step that turns the raw result of a tool into what the model sees; steps run in the order of the list."""

    name: Name
    """The part's name, unique among the handlers."""
    entry: Entry
    """The code that runs."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Arguments bound to the entry."""
    max_characters: Annotated[int, Field(ge=0)] | None = None
    """No observation is longer, in characters; None says nothing. Can only contradict."""
    prefix: str | None = None
    """Every observation begins so; None says nothing. Can only contradict."""
    suffix: str | None = None
    """Every observation ends so; None says nothing. Can only contradict."""
    template: str | None = None
    """A Jinja template that gives the observation from the raw output which a source stores; None says nothing."""


class EntryCall(_Value):
    """Code that runs, with arguments bound to it."""

    entry: Entry
    """The code that runs."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Arguments bound to the entry."""


class Limits(_Value):
    """Where a run is stopped. None means that no limit is declared."""

    steps: Annotated[int, Field(ge=0)] | None = None
    """Steps of the agent in a run."""
    turns: Annotated[int, Field(ge=0)] | None = None
    """Turns of a conversation with a user in a run."""
    parallel_calls: Annotated[int, Field(ge=0)] | None = None
    """Tool calls in one reply."""
    stop_strings: tuple[str, ...] | None = None
    """Texts that end a reply."""

    @field_validator("stop_strings", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class Runtime(_Value):
    """What else of the harness decides how a run goes."""

    parser: EntryCall | None = None
    """Reads the model's reply."""
    context_manager: EntryCall | None = None
    """Cuts or summarises what the model sees."""
    recovery: EntryCall | None = None
    """Acts when a reply or a call fails."""
    limits: Limits = Field(default_factory=Limits)
    """Where a run is stopped."""
    environment: dict[Name, str] = Field(default_factory=dict)
    """Variables of the process that the harness's code reads, with their values."""
    packages: dict[Name, str] = Field(default_factory=dict)
    """Third-party packages that the code imports, by the name it imports, with their versions."""
    offered: Literal["all", "subset"] = "all"
    """Whether every run is offered all bound tools."""

    @field_validator("parser", "context_manager", "recovery", mode="before")
    @classmethod
    def _bare_entry(cls, value: Any) -> Any:
        return {"entry": value} if isinstance(value, str) else value


class Manifest(_Value):
    """A whole `harness.yaml`. Order counts for prompt templates and handlers; tools are a mapping."""

    format: Literal["tracemark/harness/1"]
    """The format of the file."""
    name: Name | None = None
    """A label; None means the folder's name."""
    description: str | None = None
    """A label."""
    prompt_templates: tuple[PromptTemplate, ...] = ()
    """The texts, in order."""
    tool_bindings: dict[Name, ToolBinding] = Field(default_factory=dict)
    """The tools by name."""
    observation_handlers: tuple[ObservationHandler, ...] = ()
    """The handlers, in the order in which they run."""
    runtime: Runtime = Field(default_factory=Runtime)
    """Everything else."""
    roots: tuple[PathText, ...] = ()
    """Folders where imports are looked up after the harness folder, relative to it; may lie outside."""
    packages: tuple[PathText, ...] = ()
    """First-party packages (each the package's own folder), relative to the harness folder; may lie outside."""
    ignore: tuple[PathText, ...] = ()
    """Patterns of files in the folder that do not count."""

    @field_validator(*ORDERED, "roots", "packages", "ignore", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def entries(self) -> dict[tuple[str, str], str]:
        """Return the entry of each part that has one, by (component, part), in the order of the manifest."""
        found: dict[tuple[str, str], str | None] = {}
        for prompt in self.prompt_templates:
            found["prompt_templates", prompt.name] = prompt.entry
        for name, tool in self.tool_bindings.items():
            found["tool_bindings", name] = tool.entry
        for handler in self.observation_handlers:
            found["observation_handlers", handler.name] = handler.entry
        for part in ("parser", "context_manager", "recovery"):
            call: EntryCall | None = getattr(self.runtime, part)
            found["runtime", part] = call.entry if call else None
        return {place: entry for place, entry in found.items() if entry is not None}


_KEYS: dict[tuple[str, ...], type[Value]] = {
    (): Manifest,
    ("prompt_templates", "*"): PromptTemplate,
    ("prompt_templates", "*", "options"): JinjaOptions,
    ("tool_bindings", "*"): ToolBinding,
    ("observation_handlers", "*"): ObservationHandler,
    ("runtime",): Runtime,
    ("runtime", "limits"): Limits,
    ("runtime", "parser"): EntryCall,
    ("runtime", "context_manager"): EntryCall,
    ("runtime", "recovery"): EntryCall,
}


def known_keys(place: tuple[str | int, ...]) -> list[str]:
    """Return the keys that the mapping at `place` may hold, in the order of the format; empty for a free mapping.

    Args:
        place: keys and list positions from the manifest's top; names of tools and positions are taken as any.
    """
    path = tuple("*" if depth == 1 and place[0] != "runtime" else str(part) for depth, part in enumerate(place))
    model = _KEYS.get(path)
    return [field.alias or name for name, field in model.model_fields.items()] if model else []
