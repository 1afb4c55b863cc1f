"""Our importers keep the contract that third parties' importers have to keep."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers import detect
from tracemark.testing import ImporterContract

from .make_golden import SAMPLES

_TESTS = [name for name in dir(ImporterContract) if name.startswith("test_")]


@pytest.mark.parametrize("law", _TESTS)
@pytest.mark.parametrize("name", detect.IMPORTERS.names())
def test_the_contract_is_kept(name: str, law: str) -> None:
    members: dict[str, Any] = {"importer": detect.importer(name), "samples": SAMPLES / name}
    kept = type("Kept", (ImporterContract,), members)()
    getattr(kept, law)()
