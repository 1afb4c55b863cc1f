"""The page on statistics has every public function, with an example that is run and with who asks it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tracemark import stats
from tracemark.stats import posterior

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "statistics.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> Any:
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("stats_page", DOCS / "stats_page.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


def test_every_module_is_on_the_page(script: Any) -> None:
    files = {path.stem for path in Path(str(stats.__file__)).parent.glob("*.py")}
    assert files == {"__init__", *script.MODULES}
    assert re.findall(r"^## (\w+)$", PAGE, re.MULTILINE) == list(script.MODULES)


def test_a_function_without_an_example_and_an_asker_whom_nobody_named_stop_the_page(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert script.page() == PAGE
    examples = dict(script.EXAMPLES)
    examples["noise.gone"] = examples.pop("noise.repeated")
    with monkeypatch.context() as other:
        other.setattr(script, "EXAMPLES", examples)
        with pytest.raises(ValueError, match=r"noise\.gone, noise\.repeated"):
            script.page()
    monkeypatch.setattr(script, "ASKING", {})
    with pytest.raises(ValueError, match=r"who asks passing\.aggregate is not known: src/tracemark/gates/compare\.py"):
        script.page()


def test_what_is_said_to_need_scipy_needs_it_and_nothing_else_does(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(posterior, "import_module", missing)
    needing = {name for name, (first, *_) in script.EXAMPLES.items() if "scipy" in script.answer(first)}
    # its example asks another function for what it takes
    assert needing == {*script.NEED_SCIPY, "bands.heaviest"}


def test_links_of_the_table_lead_to_headings() -> None:
    headings = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    linked = re.findall(r"\]\(#([^)]+)\)", PAGE)
    assert len(linked) > 20
    assert set(linked) <= anchors
