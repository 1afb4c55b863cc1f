"""What all tests share: hypothesis profiles, the collection of real trace files, and its marker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED_TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"

settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need the shared files where these are absent, and say how many."""
    if SHARED_TRACES.is_dir():
        return
    kept = [item for item in items if "shared_data" not in item.keywords]
    gone = [item for item in items if "shared_data" in item.keywords]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = kept


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of real trace files."""
    return SHARED_TRACES
