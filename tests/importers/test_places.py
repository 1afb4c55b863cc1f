"""A document's path leads to the same file however that is packed."""

from __future__ import annotations

import pytest

from tracemark.importers.places import folder_of, names_of, place_of, targets, unpacked_place, upwards
from tracemark.importers.records import Piece


def piece(path: str, member: str = "", packed: str = "", root: str = "/given") -> Piece:
    return Piece(path, "", "atif", "document", packed=packed, member=member, root=root)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".bz2", ".xz"])
def test_a_packed_file_stands_where_the_plain_one_would(ending: str) -> None:
    assert place_of(piece(f"/given/a/run.json{ending}")) == "/given/a/run.json"


def test_a_file_in_an_archive_stands_in_it_and_beside_it() -> None:
    made = piece("/given/a/all.zip", "b/run.json", "zip")
    assert place_of(made) == "/given/a/all.zip/b/run.json"
    assert unpacked_place(made) == "/given/a/b/run.json"
    assert folder_of(made) == "/given/a/b"
    assert unpacked_place(piece("/given/a/all.zip", "./c/../b/run.json", "zip")) == "/given/a/b/run.json"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("x.json", "/given/a/x.json"),
        ("x.json.gz", "/given/a/x.json"),
        ("./sub/../x.json", "/given/a/x.json"),
        ("sub/x.json", "/given/a/sub/x.json"),
        ("../x.json", "/given/x.json"),
        ("../../x.json", ""),
        ("../../given-else/x.json", ""),
        ("/given/x.json", ""),
        ("run.json", ""),
        ("../a/run.json.gz", ""),
    ],
)
def test_a_path_leads_to_a_file_within_what_was_given_and_never_to_the_document_itself(path: str, target: str) -> None:
    assert targets(piece("/given/a/run.json"), path) == (target, target)


def test_a_path_in_an_archive_leads_to_a_file_in_it_or_to_one_beside_it() -> None:
    made = piece("/given/all.zip", "a/run.json", "zip")
    assert targets(made, "../x.json") == ("/given/all.zip/x.json", "/given/x.json")
    assert targets(piece("/given/b/all.zip", "run.json", "zip"), "../x.json") == ("", "/given/x.json")


def test_what_was_given_is_the_folder_of_a_file_that_was_given_alone() -> None:
    assert targets(piece("/given/run.json", root=""), "../x.json") == ("", "")
    assert targets(piece("/given/run.json", root="/given/"), "x.json") == ("/given/x.json", "/given/x.json")
    assert targets(piece("/given/run.json", root="/"), "../x.json") == ("/x.json", "/x.json")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("kid.json", ["kid.json", "kid"]),
        ("./kid.json.gz", ["kid.json", "kid"]),
        ("kid", ["kid"]),
        (".json", [".json"]),
        ("sub/kid.json", []),
        ("../kid.json", []),
    ],
)
def test_a_name_without_a_folder_may_be_an_id(path: str, names: list[str]) -> None:
    assert names_of(path) == names


def test_a_folder_comes_before_those_above_it() -> None:
    assert list(upwards("/a/b")) == ["/a/b", "/a", "/"]
