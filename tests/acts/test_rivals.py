"""Which harnesses the traces of the accepted one may be of as well, and which of those can be taken away."""

from __future__ import annotations

import pytest

from tracemark.acts.corpus import Corpus
from tracemark.acts.rivals import rivals
from tracemark.errors import ExportRefusedError

from .conftest import Shop, document, write_version


def named(shop: Shop, *fitting: str) -> list[tuple[str, bool, bool]]:
    found = rivals(Corpus(shop.root), [shop.fingerprint(name) for name in fitting])
    return [(one.words.partition(" ")[0], one.alike, one.spare) for one in found]


def test_what_fits_and_what_is_alike_may_have_made_it_and_what_counts_as_accepted_may_not(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler="  # the same")
    shop.accept()
    assert named(shop) == [("desk_c", True, True)]
    assert named(shop, "desk_a", "desk_b") == [("desk_b", False, False), ("desk_c", True, True)]
    pair = sorted([shop.fingerprint("desk_a"), shop.fingerprint("desk_c")])
    shop.enter("equivalent", {"fingerprints": pair})
    assert named(shop) == []


def test_a_harness_that_made_traces_is_not_to_be_taken_away(shop: Shop) -> None:
    write_version(shop.root, "desk_c", handler="  # the same")
    shop.accept()
    with pytest.raises(ExportRefusedError, match="0 of 5") as refused:
        shop.export()
    assert "take away desk_c" in str(refused.value.hint)
    shop.ingest([document("v-0")], "desk_c", "more")
    assert named(shop) == [("desk_c", True, False)]
    with pytest.raises(ExportRefusedError, match="0 of 6") as refused:
        shop.export()
    assert "take away" not in str(refused.value.hint)
    assert "which claimed takes" in str(refused.value.hint)
    shop.set(("evidence: unique", "evidence: claimed"))
    assert shop.export().rows == 3
