"""Text of the assistant that no model wrote in a run."""

from __future__ import annotations

from typing import Any

import pytest

from tracemark.importers import supplied


@pytest.mark.parametrize("measured", [{}, {"reasoning_content": "Hm."}, {"metrics": {"prompt_tokens": 1}}])
def test_a_marked_step_trains_nobody_and_stays_valid(measured: dict[str, Any]) -> None:
    repairs: list[str] = []
    step: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "a", **measured}
    supplied.mark(step, repairs)
    assert step["is_copied_context"] is True
    assert ("llm_call_count" in step) is (not measured)
    assert len(repairs) == 1
