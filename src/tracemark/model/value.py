"""What stored values have in common: frozen, closed, strictly typed, and absent where nothing is known.

Absent and null are different everywhere. A member that may be absent is declared as `Maybe[…] = None`: reading it gives
None when it is absent, and writing null for it is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema

T = TypeVar("T")


class Value(BaseModel):
    """The base of everything that is stored; its validator is built when it is first used, as most commands use few."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class _NotNull:
    """Takes null out of what a member accepts; its default is not concerned."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable", "what may be absent has a type without None"
        inner: CoreSchema = schema["schema"]
        return inner


Maybe = Annotated[T | None, _NotNull()]
"""A member that may be absent (None for the reader), and is never null."""

Digest = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
"""SHA-256 as 64 lower-case hexadecimal digits."""

Fingerprint = Annotated[str, StringConstraints(pattern=r"\Atm1:[0-9a-f]{64}\z")]
"""A harness fingerprint."""
