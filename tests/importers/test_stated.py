"""What a `batch.yaml` adds to a record, and what of it a record overrules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracemark.importers.stated import fill_from_batch, overruled

from .conftest import Inbox

Make = Callable[..., dict[str, Any]]


def filled(run: dict[str, Any], batch: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Any, Any]]]:
    fill_from_batch(run, batch)
    return run, list(overruled(run, batch))


def test_a_batch_fills_only_what_the_record_leaves_open() -> None:
    run, left = filled({"domain": "mine", "model": {"name": "m"}}, {"domain": "theirs", "split": "train"})
    assert run == {"domain": "mine", "split": "train", "model": {"name": "m"}}
    assert left == [("domain", "theirs", "mine")]


@pytest.mark.parametrize(
    ("said", "stated", "joined"),
    [
        (None, {"name": "x", "revision": "7"}, {"name": "x", "revision": "7"}),
        ({"revision": "1"}, {"name": "x", "revision": "1"}, {"name": "x", "revision": "1"}),
        ({"name": "", "server": "s"}, {"name": "x"}, {"name": "x", "server": "s"}),
        ({"name": "m"}, {"name": "m", "revision": "7"}, {"name": "m", "revision": "7"}),
        ({"name": "m"}, {"server": "s"}, {"name": "m", "server": "s"}),
    ],
)
def test_what_a_batch_says_of_the_model_of_a_record_is_added(said: Any, stated: Any, joined: Any) -> None:
    run = {} if said is None else {"model": said}
    assert filled(run, {"model": stated}) == ({"model": joined}, [])


@pytest.mark.parametrize(
    ("said", "stated", "left"),
    [
        ({"name": "m"}, {"name": "x", "revision": "7"}, [("model", "x@7", "m")]),
        ({"name": "m", "revision": "1"}, {"name": "m", "revision": "7"}, [("model.revision", "7", "1")]),
        # these are called the same, and only one of them was taken apart
        ({"name": "m@7"}, {"name": "m", "revision": "7"}, []),
        ({"name": "m", "revision": "7"}, {"name": "m@7"}, []),
        ({"name": "m"}, {"name": "m@7"}, [("model", "m@7", "m")]),
    ],
)
def test_the_model_of_a_record_stands_as_it_is_beside_another_of_a_batch(said: Any, stated: Any, left: Any) -> None:
    assert filled({"model": dict(said)}, {"model": stated}) == ({"model": said}, left)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("tiny", {"name": "tiny"}),
        ("tiny@1", {"name": "tiny@1"}),
        ("{name: tiny, revision: '1'}", {"name": "tiny", "revision": "1"}),
    ],
)
def test_the_text_of_a_batch_is_a_name_as_a_whole(inbox: Inbox, document: Make, text: str, model: Any) -> None:
    inbox.write("batch.yaml", f"model: {text}\n")
    made = document()
    made["agent"].pop("model_name", None)
    inbox.write("a.json", made)
    assert inbox.read().only.run["model"] == model
