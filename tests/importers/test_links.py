"""Documents that are parts of others are found wherever they lie in a source."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemark.importers import links
from tracemark.importers.base import Context

from .conftest import Inbox

Make = Callable[..., dict[str, Any]]


def naming(made: dict[str, Any], **ref: Any) -> dict[str, Any]:
    """Return a document that has one reference to a sub-agent's trajectory."""
    made["steps"][2]["observation"]["results"].append({"subagent_trajectory_ref": [ref]})
    return made


def packed(**files: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in files.items():
            archive.writestr(name, json.dumps(value))
    return buffer.getvalue()


def roles(inbox: Any) -> dict[str, str | None]:
    read = inbox.read()
    assert read.refused == []
    return {item.trajectory["session_id"]: item.run.get("role") for item in read.traces}


WHERE = (
    "zip",
    "zip beside",
    "lines",
    "lines beside",
    "array",
    "gz",
    "in a folder",
    "with a dot",
    "in a folder of a zip",
)


@pytest.mark.parametrize("where", WHERE)
def test_a_sub_agents_document_is_a_part_wherever_it_lies(inbox: Any, document: Make, where: str) -> None:
    path = {"in a folder": "sub/child.json", "with a dot": "./child.json", "in a folder of a zip": "sub/child.json"}
    parent = naming(document(1), trajectory_path=path.get(where, "child.json"), session_id="s-2")
    child, other = document(2, trajectory_id="child"), document(3)
    if where == "zip":
        inbox.write("all.zip", packed(**{"parent.json": parent, "child.json": child, "other.json": other}))
    elif where == "in a folder of a zip":
        inbox.write("all.zip", packed(**{"a/parent.json": parent, "a/sub/child.json": child, "other.json": other}))
    elif where == "lines":
        inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in (child, parent, other)))
    elif where == "array":
        inbox.write("all.json", [child, parent, other])
    else:
        inbox.write("parent.json", parent)
        if where == "zip beside":
            inbox.write("rest.zip", packed(**{"child.json": child, "other.json": other}))
        elif where == "lines beside":
            inbox.write("rest.jsonl", "".join(json.dumps(one) + "\n" for one in (child, other)))
        else:
            inbox.write("other.json", other)
            name = "child.json.gz" if where == "gz" else path[where]
            data = json.dumps(child).encode()
            inbox.write(name, gzip.compress(data) if where == "gz" else data)
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None}


@pytest.mark.parametrize("ref", [{"trajectory_id": "kid"}, {"session_id": "s-2"}, {"trajectory_path": "kid.json"}])
def test_a_line_is_a_part_by_any_of_its_names(inbox: Any, document: Make, ref: dict[str, str]) -> None:
    lines = naming(document(1), **ref), document(2, trajectory_id="kid"), document(3, trajectory_id="other")
    inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in lines))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None}


def test_a_path_leads_into_an_archive_as_if_that_was_unpacked(inbox: Any, document: Make) -> None:
    inbox.write("parent.json", naming(document(1), trajectory_path="child.json"))
    inbox.write(
        "rest.zip", packed(**{"child.json": document(2), "other.json": document(3), "x/child.json": document(4)})
    )
    inbox.write("deep/child.json.gz", gzip.compress(json.dumps(document(5)).encode()))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None, "s-4": None, "s-5": None}


def test_a_file_in_the_archive_of_the_document_that_names_it_goes_before_others_of_its_place(
    inbox: Any, document: Make
) -> None:
    parent = naming(document(1), trajectory_path="run.json")
    inbox.write("a.zip", packed(**{"parent.json": parent, "run.json": document(2)}))
    inbox.write("b.zip", packed(**{"run.json": document(3)}))
    inbox.write("run.json", document(4))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None, "s-4": None}


def test_a_file_that_is_in_no_archive_goes_before_one_that_would_be_unpacked_there(inbox: Any, document: Make) -> None:
    inbox.write("a.zip", packed(**{"parent.json": naming(document(1), trajectory_path="run.json")}))
    inbox.write("b.zip", packed(**{"run.json": document(3)}))
    inbox.write("run.json", document(4))
    assert roles(inbox) == {"s-1": None, "s-3": None, "s-4": "subagent"}


def test_a_path_that_leads_to_a_file_is_no_id(inbox: Any, document: Make) -> None:
    inbox.write("parent.json", naming(document(1), trajectory_path="run.json"))
    inbox.write("run.json", document(2))
    inbox.write("rest.jsonl", "".join(json.dumps(document(n, trajectory_id="run")) + "\n" for n in (3, 4)))
    assert sorted(roles(inbox).items()) == [("s-1", None), ("s-3", None), ("s-4", None)]


@pytest.mark.parametrize("path", ["gone/run.json", "../run.json", "/run.json", "main.json"])
def test_a_path_with_a_folder_in_it_or_to_the_document_itself_is_no_id(inbox: Any, document: Make, path: str) -> None:
    inbox.write("main.json", naming(document(1), trajectory_path=path))
    lines = (document(n, trajectory_id=name) for n, name in ((2, "run"), (3, "run.json"), (4, "main")))
    inbox.write("rest.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert set(roles(inbox).values()) == {None}


@pytest.mark.parametrize("ending", [".gz", ""])
def test_a_packed_file_is_named_with_and_without_the_ending_of_its_packing(
    inbox: Any, document: Make, ending: str
) -> None:
    inbox.write("main.json", naming(document(1), trajectory_path=f"sub/run.json{ending}"))
    for n, folder in ((2, "sub"), (3, "b")):
        inbox.write(f"{folder}/run.json.gz", gzip.compress(json.dumps(document(n)).encode()))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None}


def test_a_packed_document_is_a_part_by_the_name_that_says_so(inbox: Any, document: Make) -> None:
    for n, ending in ((1, ""), (2, ".gz")):
        data = json.dumps(document(n)).encode()
        inbox.write(f"trajectory.summarization-{n}-answers.json{ending}", gzip.compress(data) if ending else data)
    assert set(roles(inbox).values()) == {"subagent"}


def test_a_name_that_is_written_with_escapes_is_read(inbox: Any, document: Make) -> None:
    parent = json.dumps(naming(document(1), trajectory_path="sous-tâche.json"))
    assert "\\u00e2" in parent
    inbox.write("parent.json", parent)
    inbox.write("sous-tâche.json", document(2))
    read = inbox.read()
    assert [child["session_id"] for child in read.only.trajectory["subagent_trajectories"]] == ["s-2"]


def test_a_document_that_is_embedded_in_another_is_a_part_where_it_stands_alone(inbox: Any, document: Make) -> None:
    child = document(2, trajectory_id="kid")
    inbox.write("parent.json", document(1, subagent_trajectories=[child]))
    inbox.write("rest.jsonl", json.dumps(child) + "\n" + json.dumps(document(3)) + "\n")
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None}


def test_a_session_that_parent_and_part_share_makes_the_parent_no_part(inbox: Any, document: Make) -> None:
    parent = naming(document(1), trajectory_path="kid.json", session_id="s-1")
    lines = parent, document(1, trajectory_id="kid", notes="the part"), document(3)
    inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in lines))
    assert [item.run.get("role") for item in inbox.read().traces] == [None, "subagent", None]


def test_names_reach_no_folder_above_or_beside(inbox: Any, document: Make) -> None:
    parent = naming(document(1), trajectory_path="../child.json", session_id="s-1")
    inbox.write("a/parent.json", parent)
    inbox.write("b/child.jsonl", "".join(json.dumps(document(n, trajectory_id="child")) + "\n" for n in (2, 3)))
    assert roles(inbox) == {"s-1": None, "s-2": None, "s-3": None}


Tree = dict[str, dict[str, Any]]
PACKINGS = ("one archive", "archives of folders", "an archive each", "gz", "every second")


def lay(inbox: Any, tree: Tree, packing: str) -> None:
    """Write the files of a tree into a folder, packed in some way."""
    archives: dict[str, dict[str, Any]] = {}
    for number, (place, made) in enumerate(tree.items()):
        if packing == "gz" or (packing == "every second" and number % 2):
            inbox.write(f"{place}.gz", gzip.compress(json.dumps(made).encode()))
        elif packing == "one archive":
            archives.setdefault("all.zip", {})[place] = made
        elif packing == "archives of folders" and "/" in place:
            archives.setdefault(f"{place.partition('/')[0]}.zip", {})[place] = made
        elif packing == "an archive each":
            archives[f"{place}.zip"] = {place.rpartition("/")[2]: made}
        else:
            inbox.write(place, made)
    for name, files in archives.items():
        inbox.write(name, packed(**files))


def all_roles(inbox: Any) -> dict[str, str | None]:
    """Return the roles of all documents, those that are embedded in others included."""
    read = inbox.read()
    assert read.refused == []
    return {item.trajectory["session_id"]: item.run.get("role") for item in read.items}


@pytest.mark.parametrize("packing", ["", *PACKINGS])
def test_an_unrelated_run_of_the_same_file_name_is_whole_however_the_files_are_packed(
    inbox: Any, document: Make, packing: str
) -> None:
    tree = {
        "a/main.json": naming(document(1), trajectory_path="sub/trajectory.json"),
        "a/sub/trajectory.json": document(2),
        "a/c/trajectory.json": document(3),
        "b/trajectory.json": document(4),
        "d/main.json": naming(document(5), trajectory_path="gone/trajectory.json"),
        "d/x/trajectory.json": document(6),
        "e/main.json": document(7, continued_trajectory_ref="part2.json"),
        "e/part2.json": document(8),
        "e/x/part2.json": document(9),
    }
    lay(inbox, tree, packing)
    parts = {"s-2": "subagent", "s-8": "continuation"}
    assert all_roles(inbox) == {f"s-{n}": parts.get(f"s-{n}") for n in range(1, 10)}


FILES = ("main.json", "run.json", "a/main.json", "a/run.json", "a/sub/run.json", "b/run.json")
PATHS = (*FILES, "./run.json", "sub/run.json", "../run.json", "../b/run.json", "gone/run.json", "other.json")
IDS = ("kid", "other", "run", "run.json")
REFERENCES = st.one_of(
    st.fixed_dictionaries({"trajectory_path": st.sampled_from(PATHS)}),
    st.fixed_dictionaries({"trajectory_id": st.sampled_from(IDS)}),
)
DOCUMENTS = st.fixed_dictionaries(
    {"refs": st.lists(REFERENCES, max_size=2)},
    optional={"trajectory_id": st.sampled_from(IDS), "continued_trajectory_ref": st.sampled_from(PATHS)},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.dictionaries(st.sampled_from(FILES), DOCUMENTS, min_size=2), packing=st.sampled_from(PACKINGS))
def test_a_tree_gives_the_same_roles_however_its_files_are_packed(document: Make, drawn: Tree, packing: str) -> None:
    tree = {}
    for number, place in enumerate(sorted(drawn)):
        members = dict(drawn[place])
        refs = members.pop("refs")
        tree[place] = document(number, **members)
        for ref in refs:
            naming(tree[place], **ref)
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as other:
        lay(Inbox(Path(plain)), tree, "")
        lay(Inbox(Path(other)), tree, packing)
        assert all_roles(Inbox(Path(other))) == all_roles(Inbox(Path(plain)))


def named(document: Make, text: str, by: str) -> list[dict[str, Any]]:
    """Return the documents of a graph that is written as `ab bc` (a names b, b names c), in order of their names."""
    made = {name: document(n, trajectory_id=name) for n, name in enumerate(sorted(set(text) - {" "}))}
    for above, below in text.split():
        name = f"{below}.json" if by == "path" else below
        naming(made[above], **{f"trajectory_{by}": name})
    return list(made.values())


CIRCLES = {
    "two": ("ab ba", ""),
    "more": ("ab bc ca", ""),
    "two that meet": ("ab ba bc cb", ""),
    "with something below": ("ab ba bc cd", "cd"),
    "with a document that names one of them": ("ma ab ba", "ab"),
    "with a chain that leads into it": ("ma ab bc cb", "abc"),
    "beside another that has something above it": ("ab ba mx xy yx", "xy"),
}


@pytest.mark.parametrize("circle", CIRCLES)
@pytest.mark.parametrize(
    ("where", "by"),
    [
        ("lines", "id"),
        ("array", "id"),
        ("files", "id"),
        ("zip", "id"),
        ("files", "path"),
        ("zip", "path"),
        ("gz", "path"),
    ],
)
def test_documents_that_are_parts_of_one_another_in_a_circle_are_parts_of_nothing(
    inbox: Any, document: Make, circle: str, where: str, by: str
) -> None:
    text, parts = CIRCLES[circle]
    made = named(document, text, by)
    if where == "lines":
        inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in made))
    elif where == "array":
        inbox.write("all.json", made)
    else:
        packing = {"files": "", "zip": "one archive"}.get(where, where)
        lay(inbox, {f"{one['trajectory_id']}.json": one for one in made}, packing)
    found = {item.trajectory["trajectory_id"]: item.run.get("role") for item in inbox.read().items}
    assert found == {one["trajectory_id"]: "subagent" if one["trajectory_id"] in parts else None for one in made}


def test_a_circle_goes_through_paths_and_ids(inbox: Any, document: Make) -> None:
    inbox.write("a.json", naming(document(1, trajectory_id="a"), trajectory_path="all.jsonl"))
    lines = naming(document(2), trajectory_id="a"), document(3), document(4, trajectory_id="d")
    inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in lines))
    assert roles(inbox) == {"s-1": None, "s-2": None, "s-3": "subagent", "s-4": "subagent"}


def test_a_document_of_a_circle_may_have_got_its_session_from_the_trial_around_it() -> None:
    context = Context(is_part=True, circular=frozenset({("a", None)}))
    assert links.named_role({"trajectory_id": "a", "session_id": "trial"}, context) == (None, None)
    assert links.named_role({"trajectory_id": "b", "session_id": "trial"}, context) == ("subagent", None)


def test_continuations_of_one_another_are_whole(inbox: Any, document: Make) -> None:
    inbox.write("a.json", document(1, continued_trajectory_ref="b.json"))
    inbox.write("b.json", document(2, continued_trajectory_ref="a.json"))
    inbox.write("c.json", document(3, continued_trajectory_ref="d.json"))
    inbox.write("d.json", document(4))
    assert roles(inbox) == {"s-1": None, "s-2": None, "s-3": None, "s-4": "continuation"}


def test_a_document_of_a_circle_that_says_itself_that_it_is_a_part_is_one(inbox: Any, document: Make) -> None:
    agent = {"name": "desk", "version": "1", "extra": {"parent_session_id": "s"}}
    lines = (
        naming(document(1, trajectory_id="a"), trajectory_id="b"),
        naming(document(2, trajectory_id="b", agent=agent), trajectory_id="a"),
    )
    inbox.write("all.jsonl", "".join(json.dumps(one) + "\n" for one in lines))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent"}


def test_no_document_is_lost_in_a_circle_below_one_that_is_refused(inbox: Any, document: Make) -> None:
    top = naming(document(1), trajectory_path="a.json")
    top["steps"][0]["source"] = "narrator"
    inbox.write("top.json", top)
    inbox.write("a.json", naming(document(2), trajectory_path="b.json"))
    inbox.write("b.json", naming(document(3), trajectory_path="a.json"))
    read = inbox.read()
    assert read.codes == ["not-atif"]
    (item,) = read.traces
    assert (item.source["label"], item.run["role"]) == ("a.json", "subagent")
    assert [child["session_id"] for child in item.trajectory["subagent_trajectories"]] == ["s-3"]


@pytest.mark.parametrize("where", ["zip", "in a folder", "gz", "lines"])
def test_a_continuation_is_one_wherever_it_lies(inbox: Any, document: Make, where: str) -> None:
    name = "sub/later.json" if where == "in a folder" else "later.json"
    first, later = document(1, continued_trajectory_ref=name), document(2, trajectory_id="later")
    if where == "zip":
        inbox.write("all.zip", packed(**{"first.json": first, "later.json": later}))
    elif where == "lines":
        inbox.write("all.jsonl", json.dumps(later) + "\n" + json.dumps(first) + "\n")
    else:
        inbox.write("first.json", first)
        data = json.dumps(later).encode()
        inbox.write("later.json.gz" if where == "gz" else name, gzip.compress(data) if where == "gz" else data)
    runs = {item.trajectory["session_id"]: item.run for item in inbox.read().traces}
    assert runs["s-1"]["continued_by"] == name
    assert "role" not in runs["s-1"]
    assert runs["s-2"]["role"] == "continuation"
    assert runs["s-2"]["continues"] == ("all.jsonl" if where == "lines" else "first.json")


def long_text(document: Make, place: int) -> str:
    """Return lines with a reference whose name begins at byte `place`; the last line is what it refers to."""

    def of(size: int) -> str:
        lines = (document(8), document(9, notes="x" * size), naming(document(1), trajectory_path="kid.json"))
        return "".join(json.dumps(line) + "\n" for line in (*lines, document(2, trajectory_id="kid")))

    text = of(place - of(0).index("_trajectory_ref"))
    assert text.index("_trajectory_ref") == place
    return text


@pytest.mark.parametrize("into", [0, 1, 7, 14, 15])
def test_a_reference_is_found_where_two_blocks_meet(inbox: Any, document: Make, into: int) -> None:
    inbox.write("all.jsonl", long_text(document, links._BLOCK - into))
    assert roles(inbox) == {"s-8": None, "s-9": None, "s-1": None, "s-2": "subagent"}


@pytest.mark.parametrize("into", [0, 1, 7, 14, 15])
def test_a_reference_is_found_where_a_file_is_cut_for_several_processes(
    inbox: Any, document: Make, monkeypatch: pytest.MonkeyPatch, into: int
) -> None:
    inbox.write("all.jsonl", long_text(document, 1_200_000))
    monkeypatch.setattr(links, "_RANGE", 1_200_000 + into)
    assert roles(inbox) == {"s-8": None, "s-9": None, "s-1": None, "s-2": "subagent"}


def test_what_is_embedded_is_given_once_more_marked_so(inbox: Any, document: Make) -> None:
    inbox.write("parent.json", naming(document(1), trajectory_path="child.json"))
    inbox.write("child.json", document(2))
    given = {item.trajectory["session_id"]: (item.embedded, item.run.get("role")) for item in inbox.read().items}
    assert given == {"s-1": (False, None), "s-2": (True, "subagent")}


MARKS: dict[str, tuple[dict[str, Any], str]] = {
    "the session of its parent": ({"extra": {"parent_session_id": "s"}}, "subagent"),
    "the number of a summary": ({"extra": {"summarization_index": 1}}, "subagent"),
    "the number of a continuation": ({"extra": {"continuation_index": 1}}, "continuation"),
    "the name of a summary's agent": ({"name": "terminus-2-summarization-answers"}, "subagent"),
    "an ordinary agent": ({"extra": {"continuation_index": 0}}, ""),
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("where", ["alone", "lines", "zip"])
def test_a_document_that_calls_itself_a_part_is_one_wherever_it_lies(
    inbox: Any, document: Make, mark: str, where: str
) -> None:
    members, role = MARKS[mark]
    made = document(1, agent={"name": "desk", "version": "1", **members})
    data = {"alone": json.dumps(made), "lines": f"{json.dumps(made)}\n" * 2, "zip": packed(**{"a.json": made})}[where]
    inbox.write("a.jsonl", data)
    assert {item.run.get("role", "") for item in inbox.read().traces} == {role}


def test_steps_that_were_copied_from_an_earlier_document_make_a_continuation(inbox: Any, document: Make) -> None:
    made = document(1)
    made["steps"][0]["is_copied_context"] = True
    inbox.write("a.json", made)
    assert inbox.read().only.run["role"] == "continuation"


def test_a_link_into_another_given_folder_is_none(inbox: Any, document: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(document(2)))
    inbox.write("a.json", naming(document(1), trajectory_path=str(outside)))
    assert roles(inbox) == {"s-1": None}


def test_an_array_is_cut_into_its_elements_once(inbox: Any, document: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    real = json.JSONDecoder.raw_decode
    monkeypatch.setattr(json.JSONDecoder, "raw_decode", lambda *a, **k: decoded.append("cut") or real(*a, **k))
    parent = naming(document(1), trajectory_id="kid")
    inbox.write("all.json", json.dumps([parent, document(2, trajectory_id="kid"), document(3)], indent=2))
    assert roles(inbox) == {"s-1": None, "s-2": "subagent", "s-3": None}
    assert len(decoded) == 3


@pytest.mark.parametrize("fault", [ValueError("a bug"), OSError(5, "Input/output error"), RecursionError()])
@pytest.mark.parametrize("place", ["expanded", "documents"])
def test_a_fault_in_looking_for_references_does_not_end_the_source(
    inbox: Any, document: Make, monkeypatch: pytest.MonkeyPatch, place: str, fault: Exception
) -> None:
    looked = []

    def failing(*arguments: Any) -> Any:
        looked.append(arguments)
        raise fault

    monkeypatch.setenv("TRACEMARK_WORKERS", "1")
    # files whose first bytes do not show whether they refer to others
    for name, made in (("a", document(1)), ("b", naming(document(2), trajectory_path="a.json"))):
        inbox.write(f"{name}.json", json.dumps({**made, "notes": "n" * 400_000}, indent=1))
    monkeypatch.setattr(links, place, failing)
    read = inbox.read()
    assert looked
    assert read.refused == []
    # a file that could not be looked through may refer to others, and is read for that; one that fails there is alone
    found = ["s-2"] if place == "expanded" else ["s-1", "s-2"]
    assert [item.trajectory["session_id"] for item in read.traces] == found


def test_a_piece_that_could_not_be_looked_through_may_refer(
    inbox: Any, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: Any) -> Any:
        raise ValueError("a bug")

    inbox.write("a.json", document(1))
    (piece,) = (piece for job in inbox.read().plan.jobs for piece in job.pieces)
    assert not links._refers(piece)
    monkeypatch.setattr(links, "expanded", failing)
    assert links._refers(piece)


def test_folders_in_which_nothing_is_named_share_what_is_named_above_them(inbox: Any, document: Make) -> None:
    inbox.write("main.json", naming(document(1), trajectory_id="above"))
    inbox.write("a/run.json", document(2))
    inbox.write("b/same.json", naming(document(3), trajectory_id="above"))
    inbox.write("c/more.json", naming(document(4), trajectory_id="below"))
    inbox.write("c/deep/run.json", document(5))
    pieces = {piece.label: piece.context for job in inbox.read().plan.jobs for piece in job.pieces}
    above, more = pieces["main.json"], pieces["c/more.json"]
    assert (above.parts, more.parts) == ({"above"}, {"above", "below"})
    assert [pieces[label].parts is above.parts for label in ("a/run.json", "b/same.json")] == [True, True]
    assert pieces["a/run.json"].after is above.after
    assert pieces["c/deep/run.json"].parts is more.parts
