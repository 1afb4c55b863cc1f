"""The harnesses of a corpus: its folders, and the snapshots of what no folder holds any more."""

import shutil

import pytest

from tracemark.harness import folder, snapshot
from tracemark.harness import known as known_module
from tracemark.harness.folder import HarnessFolder
from tracemark.harness.known import known_with_findings


@pytest.fixture
def root(tmp_path):
    return tmp_path


def stored(root, harness):
    path = root / "traces/harnesses" / f"{harness.fingerprint.removeprefix('tm1:')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(snapshot.to_bytes(harness))
    return path


def known(root):
    return known_with_findings(root, root / "harness_versions", root / "traces" / "harnesses")


def test_a_snapshot_answers_when_the_folder_is_gone(root, desk):
    harness = desk.load()
    stored(root, harness)
    desk.write("prompts/system.md", "Edited since.")
    (edited, kept), findings = known(root)
    assert (edited.fingerprint, findings) == (desk.fingerprint(), [])
    assert (kept.folder, kept.identity) == (None, harness.identity)


def test_a_snapshot_of_what_a_folder_holds_is_not_known_twice_and_what_is_broken_is_said(root, desk, other):
    assert known(root / "nowhere") == ([], [])
    harness = desk.load()
    stored(root, harness)
    path = stored(root, harness)
    path.with_name("0" * 64 + ".json").write_bytes(path.read_bytes())
    path.with_name("1" * 64 + ".json").write_bytes(b"{")
    other.write("tools/refund.json", "{")
    found, findings = known(root)
    assert [each.folder for each in found] == [desk.path]
    assert [(finding.code, finding.where) for finding in findings] == [
        ("schema-invalid", "harness_versions/other/tools/refund.json"),
        ("snapshot-unreadable", f"traces/harnesses/{'0' * 64}.json"),
        ("snapshot-unreadable", f"traces/harnesses/{'1' * 64}.json"),
    ]


def test_each_of_two_folders_with_one_fingerprint_is_known(root, desk):
    shutil.copytree(desk.path, desk.path.with_name("copy"))
    stored(root, desk.load())
    found, findings = known(root)
    assert [(each.folder.name, each.fingerprint) for each in found] == [
        (name, desk.fingerprint()) for name in sorted(["copy", desk.path.name])
    ]
    assert findings == []


def test_a_folder_that_lost_its_manifest_is_named_and_one_of_leftovers_is_not(root, desk, other):
    other.remove("harness.yaml")
    other.write("../gone/__pycache__/x.pyc", "")
    found, findings = known(root)
    assert [each.folder for each in found] == [desk.path]
    assert [(finding.code, finding.where) for finding in findings] == [
        ("manifest-file-missing", "harness_versions/other/harness.yaml")
    ]


def test_a_link_out_of_the_versions_is_named_and_never_walked(root, desk, monkeypatch):
    outside = root / "elsewhere"
    outside.mkdir()
    (outside / "notes.txt").touch()
    (desk.path.parent / "away").symlink_to(outside)
    (desk.path.parent / "again").symlink_to(desk.path.name)
    walked = []
    monkeypatch.setattr(
        HarnessFolder,
        "names",
        lambda self, base, folder, names=HarnessFolder.names: (
            walked.append(self.path.name),
            names(self, base, folder),
        )[1],
    )
    found, findings = known(root)
    assert [each.folder.name for each in found] == ["again", desk.path.name]
    assert [(one.code, one.where) for one in findings] == [("version-linked", "harness_versions/away/")]
    assert "away" not in walked


def test_what_editors_put_beside_the_versions_is_none_of_them(root, desk):
    (desk.path.parent / ".#notes.md").symlink_to("somebody@somewhere.4711:1700000000")
    (desk.path.parent / ".idea").mkdir()
    (desk.path.parent / ".idea" / "workspace.xml").touch()
    (desk.path.parent / "notes.md").symlink_to("nowhere")
    found, findings = known(root)
    assert [each.folder for each in found] == [desk.path]
    assert [(one.code, one.where) for one in findings] == [("version-linked", "harness_versions/notes.md/")]


def test_of_a_folder_without_a_manifest_no_more_is_looked_at_than_one_file(root, desk, monkeypatch):
    stray = desk.path.parent / "stray"
    for number in range(5):
        (stray / f"d{number}").mkdir(parents=True)
    (stray / "a.txt").touch()
    (stray / "out").symlink_to("/")
    listed = []
    monkeypatch.setattr(folder, "listed", lambda path, real=folder.listed: (listed.append(path), real(path))[1])
    assert HarnessFolder(stray).holds_anything()
    assert listed == [stray.resolve()]


def test_folders_in_one_another_without_end_are_a_problem_of_that_version_alone(root, desk, other):
    deep = other.path
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file.txt").touch()
    found, findings = known(root)
    assert [each.folder for each in found] == [desk.path]
    assert [(one.code, one.where) for one in findings] == [("folder-too-deep", "harness_versions/other/d")]


def test_a_folder_of_versions_that_nobody_may_list_is_named(root, desk, monkeypatch):
    def shut(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(known_module, "_folders", shut)
    found, findings = known(root)
    assert found == []
    assert [(one.code, one.where, one.message) for one in findings] == [
        ("folder-unreadable", "harness_versions/", "it cannot be listed: Permission denied")
    ]
