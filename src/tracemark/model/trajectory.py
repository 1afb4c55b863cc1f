"""The trajectory: ATIF v1.8, the one form in which a run's content is stored.

These are the frozen, strict models of the public format (v1.0 to v1.8 in one), with the rules of its RFC that can be
judged from one document. A key that the format does not know is an error; free data lives in `extra` alone.

Invariants:
- what `problems` accepts, every strict reader of ATIF v1.8 accepts;
- strict means typed: `"1"`, `1.0` and `true` are no integers; an absent member and `null` mean the same here, though a
  stored document keeps whichever it had;
- the JSON Schema beside this module (`trajectory.schema.json`, made by `fast_schema`) is narrower than the models. A
  document that it accepts, and whose sequence and links the reader has checked, is accepted by the models; a
  document that it does not accept is judged here. It exists because it answers sooner.

Nothing on the way of an ordinary trace imports this module: it is loaded when a document is unusual.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracemark.model.atif import AGENT_ONLY, is_timestamp
from tracemark.model.fast_schema import made_of
from tracemark.model.faults import faults

_NUMBERS = frozenset({int, float})
_SURROGATE = re.compile("[\ud800-\udfff]")


def _timestamp(text: str) -> str:
    if not is_timestamp(text):
        raise ValueError("not an ISO 8601 time")
    return text


Timestamp = Annotated[str, AfterValidator(_timestamp)]
"""An ISO 8601 time, kept as written."""


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ImageSource(_Model):
    """Where an image lies."""

    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    """Type of the image's bytes."""
    path: str
    """Relative path, absolute path or URL; text of a trace, never opened by this program."""


class AudioSource(_Model):
    """Where a sound lies."""

    media_type: Literal[
        "audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff"
    ]
    """Type of the sound's bytes."""
    path: str
    """Relative path, absolute path or URL; text of a trace, never opened by this program."""
    duration_sec: float | None = Field(default=None, ge=0)
    """Length in seconds; None when not stated."""


class ContentPart(_Model):
    """One piece of a message that is not plain text alone."""

    type: Literal["text", "image", "audio"]
    """What the piece is."""
    text: str | None = None
    """The text of a text part; None in every other."""
    source: ImageSource | AudioSource | None = None
    """The place of an image or a sound; None in a text part."""

    @model_validator(mode="after")
    def _text_or_source(self) -> Self:
        fits = {
            "text": self.text is not None and self.source is None,
            "image": self.text is None and isinstance(self.source, ImageSource),
            "audio": self.text is None and isinstance(self.source, AudioSource),
        }
        if not fits[self.type]:
            raise ValueError(f"a part of type {self.type} needs its own text or source, and nothing else")
        return self


Content = str | list[ContentPart]
"""Plain text, or parts in order."""


class SubagentTrajectoryRef(_Model):
    """A pointer from an observation to the trajectory of a sub-agent."""

    trajectory_id: str | None = None
    """`trajectory_id` of an embedded trajectory; None when only a path is given."""
    session_id: str | None = None
    """The sub-agent's session, for information; None when not stated."""
    trajectory_path: str | None = None
    """File name of a separate document, as its producer wrote it; None when embedded."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("a sub-agent reference needs trajectory_id or trajectory_path")
        return self


class ToolCall(_Model):
    """One call of a tool."""

    tool_call_id: str
    """Names the call within its step; need not be unique."""
    function_name: str
    """The tool's name; may be empty."""
    arguments: dict[str, Any]
    """The arguments by name; `{}` when there are none."""
    extra: dict[str, Any] | None = None
    """Free data, such as the verbatim argument text when it was no object; None when there is none."""


class ObservationResult(_Model):
    """One result that the environment gave."""

    source_call_id: str | None = None
    """`tool_call_id` of a call of the same step; None when the result belongs to no call, or nobody says to which."""
    content: Content | None = None
    """What the agent saw; None when nothing, which differs from the empty text."""
    subagent_trajectory_ref: list[SubagentTrajectoryRef] | None = None
    """Trajectories of the sub-agents that worked on it; None when there were none."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""


class Observation(_Model):
    """What came back after a step."""

    results: list[ObservationResult]
    """Results in order; may be empty."""


class Metrics(_Model):
    """What one step cost."""

    prompt_tokens: int | None = None
    """Tokens sent, cached ones included; None when not recorded, which is not 0."""
    completion_tokens: int | None = None
    """Tokens generated; None when not recorded."""
    cached_tokens: int | None = None
    """Tokens of the prompt that came from a cache; None when not recorded."""
    cost_usd: float | None = None
    """Price in US dollars; None when not recorded."""
    prompt_token_ids: list[int] | None = None
    """The tokens sent; None when not recorded."""
    completion_token_ids: list[int] | None = None
    """The tokens generated; None when not recorded."""
    logprobs: list[float] | None = None
    """Log probability of each generated token; None when not recorded."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""


class FinalMetrics(_Model):
    """What the whole run cost."""

    total_prompt_tokens: int | None = None
    """Sum over the steps; None when not recorded."""
    total_completion_tokens: int | None = None
    """Sum over the steps; None when not recorded."""
    total_cached_tokens: int | None = None
    """Sum over the steps; None when not recorded."""
    total_cost_usd: float | None = None
    """Price in US dollars; None when not recorded."""
    total_steps: int | None = Field(default=None, ge=0)
    """Number of steps that the producer counted; may differ from the steps present."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""


class Agent(_Model):
    """What the producer calls the agent: labels, not an identity."""

    name: str
    """Label; may be empty."""
    version: str
    """Label; may be empty, or a line of terminal noise."""
    model_name: str | None = None
    """The model of steps that name none; None when not stated."""
    tool_definitions: list[dict[str, Any]] | None = None
    """Tool definitions in any wrapper; None when not recorded, which is what most producers do; `[]` proves nothing."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""


class Step(_Model):
    """One message of the conversation, with what followed from it."""

    step_id: int = Field(ge=1)
    """Position in `steps`, counted from 1."""
    timestamp: Timestamp | None = None
    """When, as the producer wrote it; a text without a zone stays without one; None when not recorded."""
    source: Literal["system", "user", "agent"]
    """Who speaks."""
    model_name: str | None = None
    """The model of this step; None means the agent's."""
    reasoning_effort: str | float | None = None
    """Effort asked of the model; None when not stated."""
    message: Content
    """What was said; may be empty, never null."""
    reasoning_content: str | None = None
    """The model's reasoning; None when not recorded, which differs from empty."""
    tool_calls: list[ToolCall] | None = None
    """Calls in order; None or `[]` when there were none."""
    observation: Observation | None = None
    """What came back; None when nothing did."""
    metrics: Metrics | None = None
    """Cost of the step; None when not recorded."""
    is_copied_context: bool | None = None
    """True when the step repeats an earlier document's; such a step is never trained on."""
    llm_call_count: int | None = Field(default=None, ge=0)
    """Model calls behind the step; 0 means no model spoke, and the step is never trained on; None when not recorded."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""

    @model_validator(mode="after")
    def _rules_of_the_source(self) -> Self:
        if self.source != "agent":
            for name in AGENT_ONLY:
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} belongs to agent steps only")
        elif self.llm_call_count == 0 and (self.metrics is not None or self.reasoning_content is not None):
            raise ValueError("llm_call_count is 0, so metrics and reasoning_content must be absent")
        return self

    @model_validator(mode="after")
    def _results_answer_calls_of_this_step(self) -> Self:
        calls = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in calls:
                raise ValueError(f"source_call_id {result.source_call_id!r} is no call of this step")
        return self


class Trajectory(_Model):
    """One run of one task, or a part of one."""

    schema_version: Literal["ATIF-v1.8"]
    """The version of the format; older documents are raised to it when they are read."""
    session_id: str | None = None
    """The run; several documents may share it; None when not recorded."""
    trajectory_id: str | None = None
    """Names the document within its parent; None when not embedded and not named."""
    agent: Agent
    """Labels of the agent."""
    steps: list[Step] = Field(min_length=1)
    """The conversation in order."""
    notes: str | None = None
    """Words of the producer; None when there are none."""
    final_metrics: FinalMetrics | None = None
    """Cost of the run; None when not recorded."""
    continued_trajectory_ref: str | None = None
    """File name of the document that continues this one, as its producer wrote it; None when it is the last."""
    extra: dict[str, Any] | None = None
    """Free data; None when there is none."""
    subagent_trajectories: list[Trajectory] | None = None
    """Trajectories of sub-agents, each with a `trajectory_id` of its own; None when there are none."""

    @model_validator(mode="after")
    def _steps_are_counted_from_one(self) -> Self:
        for index, step in enumerate(self.steps, 1):
            if step.step_id != index:
                raise ValueError(f"step {index} has step_id {step.step_id}")
        return self

    @model_validator(mode="after")
    def _subagents_have_names(self) -> Self:
        names = [child.trajectory_id for child in self.subagent_trajectories or ()]
        if None in names:
            raise ValueError("an embedded trajectory needs a trajectory_id")
        if len(set(names)) != len(names):
            raise ValueError("two embedded trajectories have the same trajectory_id")
        return self


def problems(document: object) -> list[tuple[str, str]]:
    """Return what keeps `document` from being a trajectory: pairs of place (`steps/3/message`) and reason.

    Empty means valid. Lone surrogates are no problem here: JSON can carry them, and so does the store.
    """
    try:
        Trajectory.model_validate(document if _is_unicode(document) else without_surrogates(document))
    except ValidationError as error:
        return [("/".join(map(str, place)) or "document", reason) for place, reason in faults(error, document)]
    return []


def _is_unicode(document: object) -> bool:
    """Return whether no text of `document` can have a lone surrogate: orjson, which writes none, writes it."""
    try:
        orjson.dumps(document)
    except orjson.JSONEncodeError:
        return False
    return True


def fast_schema() -> dict[str, Any]:
    """Return the JSON Schema of the ordinary document, narrower than the models.

    Left out, so that a document that has them is judged by the models: parts in messages, embedded trajectories,
    references to sub-agents, token ids, log probabilities.
    """
    schema = Trajectory.model_json_schema()
    definitions = schema["$defs"]
    text = {"type": "string"}
    optional_text = {"anyOf": [text, {"type": "null"}]}
    step, result = definitions["Step"]["properties"], definitions["ObservationResult"]["properties"]
    step["message"], result["content"] = text, optional_text
    for owner, names in (
        (definitions["Metrics"], ("prompt_token_ids", "completion_token_ids", "logprobs")),
        (definitions["ObservationResult"], ("subagent_trajectory_ref",)),
        (definitions["Trajectory"], ("subagent_trajectories",)),
    ):
        for name in names:
            del owner["properties"][name]
    return made_of(schema, "trajectory.py")


def without_surrogates(value: Any) -> Any:
    """Return `value` with each lone surrogate in its texts replaced, without recursion into `extra` of great depth."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        # a list of numbers has as many as a reply has tokens
        return value if _NUMBERS.issuperset(map(type, value)) else [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            without_surrogates(key): item if key in ("extra", "arguments") else without_surrogates(item)
            for key, item in value.items()
        }
    return value
