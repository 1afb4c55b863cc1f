"""A snapshot suffices, for ever, to compute a fingerprint again."""

import copy
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemark import digest
from tracemark.errors import IntegrityError, NewerFormatError
from tracemark.harness import snapshot
from tracemark.harness.loading import load
from tracemark.harness.match import Content, Matcher


@pytest.fixture
def full(desk):
    """A harness that uses everything a snapshot can hold."""
    desk.write("logo.bin", b"\xff\xfe")
    desk.write("crlf.md", "a\r\nb\n")
    desk.write("prompts/rules.j2", "Rule one.")
    desk.write("../../lib/shared.py", "X = open('x')\n")
    desk.replace("logic/helper.py", "def find", "import shared\n\n\ndef find")
    desk.replace("harness.yaml", "text: Be brief.", "text: '{% include \"prompts/rules.j2\" %}', syntax: jinja")
    desk.replace("harness.yaml", "limit: 50", "limit: null, deep: {none: null, big: 123456789012345678901234567890}")
    desk.write("harness.yaml", (desk.path / "harness.yaml").read_text() + "roots: [../../lib]\n")
    return desk


def test_a_snapshot_is_canonical_json_and_a_line_feed(full):
    raw = snapshot.to_bytes(full.load())
    assert raw.endswith(b"}\n")
    assert digest.canonical(digest.load_canonical(raw)) + b"\n" == raw


def test_a_snapshot_reads_back_to_the_same_harness(full):
    harness = full.load()
    again = snapshot.from_bytes(snapshot.to_bytes(harness))
    assert again.folder is None
    assert (again.name, again.identity, again.files, again.manifest) == (
        harness.name, harness.identity, harness.files, harness.manifest,
    )  # fmt: skip
    assert (again.closures, again.includes, again.unassigned) == (
        harness.closures,
        harness.includes,
        harness.unassigned,
    )
    assert (again.findings, again.incomplete) == (harness.findings, harness.incomplete)
    assert again.findings
    assert snapshot.to_bytes(again) == snapshot.to_bytes(harness)


def test_a_snapshot_needs_no_folder(full, tmp_path):
    harness = full.load()
    raw = snapshot.to_bytes(harness)
    shutil.rmtree(tmp_path / "harness_versions")
    assert snapshot.from_bytes(raw).identity == harness.identity


def test_parts_keep_the_order_of_the_manifest(desk):
    assert list(snapshot.from_bytes(snapshot.to_bytes(desk.load())).identity.parts["prompt_templates"]) == [
        "system",
        "style",
    ]


def test_a_schema_written_out_in_the_manifest_keeps_the_order_of_its_members(tmp_path):
    folder = tmp_path / "ordered"
    folder.mkdir()
    schema = {
        "name": "ask",
        "description": "Ask.",
        "parameters": {"type": "object", "properties": {"zeta": {"type": "string"}, "alpha": {"type": "string"}}},
    }
    manifest = {"format": "tracemark/harness/1", "tool_bindings": {"ask": {"schema": schema}}}
    (folder / "harness.yaml").write_text(json.dumps(manifest))
    harness = load(folder)
    again = snapshot.from_bytes(snapshot.to_bytes(harness))
    assert again.identity == harness.identity
    shown = json.dumps(harness.tool_schema("ask"))
    assert list(json.loads(shown)["parameters"]["properties"]) == ["zeta", "alpha"]
    assert json.dumps(again.tool_schema("ask")) == shown


def test_a_schema_that_is_there_twice_and_differs_is_refused(tmp_path):
    folder = tmp_path / "ordered"
    folder.mkdir()
    manifest = {"format": "tracemark/harness/1", "tool_bindings": {"ask": {"schema": {"name": "ask"}}}}
    (folder / "harness.yaml").write_text(json.dumps(manifest))
    written = snapshot.write(load(folder))
    written["schemas"]["ask"] = '{"name":"tell"}'
    with pytest.raises(IntegrityError, match="there twice"):
        snapshot.read(written)


def test_no_path_of_this_machine_is_in_a_snapshot(full, tmp_path):
    assert str(tmp_path).encode() not in snapshot.to_bytes(full.load())


def test_text_stays_readable_and_other_bytes_are_base64(full):
    files = snapshot.write(full.load())["files"]
    assert files["prompts/system.md"] == {"text": "You serve {shop} on {day}.\nBe exact.\n"}
    assert files["crlf.md"] == {"text": "a\r\nb\n"}
    assert files["logo.bin"] == {"base64": "//4="}


def changes(value, path=()):
    """Paths of every member and element within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from changes(item, (*path, key))


LABELS = {"findings", "incomplete", "schemas"}


@given(st.data())
def test_whatever_is_taken_out_of_a_snapshot_is_missed(make_desk, tmp_path_factory, data):
    written = snapshot.write(make_desk(tmp_path_factory.mktemp("desk")).load())
    labels = [("manifest", member) for member in ("name", "description", "roots", "packages", "ignore")]
    paths = [p for p in changes(written) if p[0] not in LABELS and p[:2] not in labels and p[0] != "algorithm"]
    path = data.draw(st.sampled_from(paths))
    damaged = copy.deepcopy(written)
    inner = damaged
    for step in path[:-1]:
        inner = inner[step]
    taken = inner.pop(path[-1])
    if path[0] == "manifest" and taken in ({}, [], False, "literal", "system", "first", "all"):
        return
    with pytest.raises(IntegrityError):
        snapshot.read(damaged)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Be exact", b"Be vague"),
        (b'"fingerprint":"tm1:', b'"fingerprint":"tm2:'),
        (b'"steps":30', b'"steps":31'),
        (b'"mutates":true', b'"mutates":false'),
        (b'"base64":"//4="', b'"base64":"//0="'),
        (b'"base64":"//4="', b'"base64":"%"'),
        (b'"logic.base":"logic/base.py"', b'"logic.base":"logic/tools.py"'),
        (b'"format":"tracemark/harness/1"', b'"format":"tracemark/harness/9"'),
    ],
)
def test_a_changed_snapshot_is_found_out(full, old, new):
    raw = snapshot.to_bytes(full.load())
    assert old in raw
    with pytest.raises(IntegrityError):
        snapshot.from_bytes(raw.replace(old, new))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"{}", b'{"format":"tracemark/trace/1"}'])
def test_what_is_no_snapshot_is_refused(raw):
    with pytest.raises(IntegrityError):
        snapshot.from_bytes(raw)


@given(
    st.dictionaries(
        st.sampled_from(["manifest", "files", "closures", "fingerprint", "components", "parts", "includes"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=3), v, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_members_of_any_kind_are_refused_without_a_traceback(members):
    with pytest.raises(IntegrityError):
        snapshot.read({**members, "format": snapshot.FORMAT})


@pytest.mark.parametrize("place", ["closures", "unassigned"])
def test_two_files_of_one_path_are_damage(full, place):
    written = snapshot.write(full.load())
    written["files"] |= {"x.py": {"text": "1"}, "root:x.py": {"text": "2"}}
    if place == "closures":
        written["closures"]["logic/tools.py:look_up"] |= {"x": "x.py", "other": "root:x.py"}
    else:
        written["unassigned"] = ["x.py", "root:x.py"]
    with pytest.raises(IntegrityError, match=r"two files have the path 'x\.py'"):
        snapshot.read(written)


class Whatever:
    """Equal to everything: in place of the digests that a snapshot claims, it makes any of them right."""

    def __init__(self, *_claimed):
        self.fingerprint = "forged"

    def __eq__(self, other):
        return True

    __hash__ = None


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(10**20, 10**21)
    | st.sampled_from(
        ["", "x.py", "root:x.py", "\ud800", "logic/tools.py:look_up", "system", "{% if %}", "{", "jinja"]
    ),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from(["x", "text", "base64", "schema", "file"]), v),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.booleans())
def test_a_snapshot_changed_anywhere_is_refused_or_can_be_used(full, monkeypatch, data, forged):
    damaged = snapshot.write(full.load())
    damaged["files"] |= {"x.py": {"text": "1"}, "root:x.py": {"text": "2"}}
    for _ in range(data.draw(st.integers(1, 3))):
        member = data.draw(st.sampled_from(sorted(damaged)))
        path = data.draw(st.sampled_from([p for p in changes(damaged) if p[0] == member]))
        inner = damaged
        for step in path[:-1]:
            inner = inner[step]
        how = data.draw(st.sampled_from(["set", "remove", "add"]))
        if how == "remove" and len(damaged) > 1:
            del inner[path[-1]]
        elif how == "add" and isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["x", "x.py", "root:x.py", "system", "hint"]))] = data.draw(ODD)
        else:
            inner[path[-1]] = data.draw(ODD)
    with monkeypatch.context() as patch:
        if forged:
            patch.setattr(snapshot, "Identity", Whatever)
        try:
            harness = snapshot.read(damaged)
        except (IntegrityError, NewerFormatError):
            return
    matcher = Matcher(harness)
    assert hash(matcher.compared) is not None
    matcher.excludes(Content(messages=[("system", "x", 1)], observations=[(1, "y")]))
    again = snapshot.from_bytes(snapshot.to_bytes(harness))
    assert again.identity == harness.identity


def test_a_newer_snapshot_says_so():
    with pytest.raises(NewerFormatError):
        snapshot.from_bytes(b'{"format":"tracemark/harness-snapshot/2"}')


def test_a_snapshot_is_plain_json(full):
    value = json.loads(snapshot.to_bytes(full.load()))
    assert value["format"] == "tracemark/harness-snapshot/1"
    assert value["algorithm"] == "tracemark-harness/1"
    assert value["closures"]["logic/tools.py:look_up"] == {
        "logic.helper": "logic/helper.py", "logic.tools": "logic/tools.py", "shared": "root:shared.py",
    }  # fmt: skip
    assert load(full.path).fingerprint == value["fingerprint"]
