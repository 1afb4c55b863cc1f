"""The manifest: policy first, counts that add up, content and no circumstances; git ids as git itself gives them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import tracemark
from tracemark.errors import IntegrityError, NewerFormatError
from tracemark.exporters import manifest, sft
from tracemark.exporters.choice import choose
from tracemark.exporters.manifest import Origin
from tracemark.exporters.select import Facts, Judged, Terms, judge
from tracemark.findings import finding
from tracemark.ledger.params import Caps
from tracemark.model.export import File, Manifest

ROWS, OTHER_ROWS = "8" * 64, "9" * 64
A, B = ("tm1:" + letter * 64 for letter in "ab")
ORIGIN = Origin(
    fingerprint=A,
    label="desk_a",
    components={"prompt_templates": "1" * 64, "tool_bindings": "2" * 64},
    corpus="c" * 64,
    objects={"harness_versions": "d" * 40, "params.yaml": "e" * 40, "dvc.yaml": "absent"},
    findings=(finding("closure-incomplete", "desk_a: handlers/observe.py", "a dynamic import"),),
)


def build(**changes: Any) -> Manifest:
    traces = [
        Facts(
            id=f"{n:064x}", fingerprint=A, status="success", tool_calls=3, evidence="recorded", task=f"t{n}", grader="g"
        )
        for n in range(3)
    ] + [Facts(id="f" * 64, fingerprint=B, status="success", tool_calls=3)]
    terms = Terms(accepted=frozenset({A}), caps=Caps(minimum=1), **changes)
    judged = Judged(superseded=2)
    for one in traces:
        judged.note(one, judge(one, terms, list, lambda: None))
    selected = choose(judged, terms.caps)
    return manifest.build(selected, terms, ORIGIN, {sft.FILE: File(sha256="9" * 64, bytes=10)})


def test_the_policy_stands_first() -> None:
    assert next(iter(json.loads(manifest.encode(build())))) == "policy"
    assert build().policy == "unique"


def test_the_counts_add_up_and_every_reason_is_there() -> None:
    counts = build().counts
    assert counts.traces == 4 == counts.rows + sum(counts.excluded.values())
    assert counts.superseded == 2
    assert counts.excluded["other-harness"] == 1
    assert counts.excluded["outcome"] == 0
    assert counts.models == {"unknown": 3}


def test_success_is_called_recorded_and_never_verified() -> None:
    assert build().outcomes == {"recorded success (grader g)": 3}
    assert b"verified" not in manifest.encode(build()) + manifest.card(ROWS)


def test_it_repeats_what_weakens_the_fingerprint() -> None:
    assert [found["code"] for found in build().findings] == ["closure-incomplete"]


def test_it_names_harness_content_parameters_and_version() -> None:
    built = build()
    assert (built.harness.label, built.harness.fingerprint, built.harness.equivalents) == ("desk_a", A, [])
    assert built.corpus == "c" * 64
    assert built.objects["dvc.yaml"] == "absent"
    assert built.parameters.tool_calls == [2, 60]
    assert built.exporter.tracemark == tracemark.__version__
    assert built.rows == [f"{n:064x}" for n in range(3)]


def test_equivalent_fingerprints_are_listed() -> None:
    terms = Terms(accepted=frozenset({A, B}))
    built = manifest.build(choose(Judged(), terms.caps), terms, ORIGIN, {})
    assert built.harness.equivalents == [B]


def test_the_same_export_has_the_same_bytes() -> None:
    assert manifest.encode(build()) == manifest.encode(build())


def test_it_reads_back_as_it_was() -> None:
    assert manifest.decode(manifest.encode(build())) == (build(), True)


def test_an_edited_member_shows() -> None:
    data = manifest.encode(build()).replace(b'"rows": 3', b'"rows": 4')
    _, whole = manifest.decode(data)
    assert not whole


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"\xff", b'{"format": "tracemark/export/1"}', b'{"format": 1}']
)
def test_what_is_no_manifest_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        manifest.decode(data)


def test_a_manifest_of_a_newer_version_is_told_apart() -> None:
    with pytest.raises(NewerFormatError):
        manifest.decode(b'{"format": "tracemark/export/2"}')


def test_the_statement_for_the_store_names_manifest_and_traces() -> None:
    stated = manifest.statement(build())
    assert stated["manifest"] == json.loads(manifest.encode(build()))["digest"]
    assert stated["traces"] == build().rows


def test_the_card_declares_every_column_and_the_one_data_file() -> None:
    _, head, _ = manifest.card(ROWS).decode().split("---\n", 2)
    meta = YAML(typ="safe", pure=True).load(head)
    assert meta["configs"] == [{"config_name": "default", "data_files": "sft.jsonl"}]
    features = {feature.pop("name"): feature for feature in meta["dataset_info"]["features"]}
    assert list(features) == list(sft.COLUMNS)
    assert features["messages"] == features["tools"] == {"list": "json"}
    assert features["tracemark_trace_id"] == {"dtype": "string"}


def test_the_card_tells_datasets_which_rows_these_are_so_that_its_cache_knows_them_apart() -> None:
    heads = [manifest.card(rows).decode().split("---\n", 2)[1] for rows in (ROWS, OTHER_ROWS)]
    assert [YAML(typ="safe", pure=True).load(head)["dataset_info"]["description"].split()[-1] for head in heads] == [
        ROWS,
        OTHER_ROWS,
    ]


def test_the_card_says_that_text_parts_were_put_together() -> None:
    assert "text parts, they are put together" in " ".join(manifest.card(ROWS).decode().split())


def test_the_card_says_which_order_members_have_and_that_the_models_own_is_not_stored() -> None:
    text = " ".join(manifest.card(ROWS).decode().split())
    assert "in the order of the harness's own schema files" in text
    assert "The order in which the model wrote the arguments of a call is not stored" in text


# --- git object ids ---------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "author",
        "GIT_AUTHOR_EMAIL": "author@example.invalid",
        "GIT_COMMITTER_NAME": "author",
        "GIT_COMMITTER_EMAIL": "author@example.invalid",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus in a folder of a repository, with names that sort differently as files and as folders."""
    git(tmp_path, "init", "-q", "-b", "main")
    root = tmp_path / "corpus"
    for name in ("a/harness.yaml", "a/prompts/system.md", "a.b/harness.yaml", "a-b/é.md", "a/tool.sh"):
        file = root / "harness_versions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (root / "harness_versions/a/tool.sh").chmod(0o755)
    (root / "harness_versions/a/link").symlink_to("tool.sh")
    (root / "params.yaml").write_text("accepted: {}\n")
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    return root


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def test_ids_of_the_work_tree_are_those_that_git_gives_once_it_is_committed(corpus: Path) -> None:
    names = ("harness_versions", "params.yaml", "missing.yaml")
    before = manifest.git_objects(corpus, names)
    commit(corpus)
    assert manifest.git_objects(corpus, names) == before
    assert before == {
        "harness_versions": git(corpus, "rev-parse", "HEAD:corpus/harness_versions"),
        "params.yaml": git(corpus, "rev-parse", "HEAD:corpus/params.yaml"),
        "missing.yaml": "absent",
    }


def test_asking_touches_neither_the_index_nor_the_objects(corpus: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted((corpus.parent / ".git").rglob("*")) if p.is_file()}

    before = everything()
    manifest.git_objects(corpus)
    assert everything() == before


def test_an_uncommitted_edit_changes_the_id_and_an_ignored_file_does_not(corpus: Path) -> None:
    commit(corpus)
    before = manifest.git_objects(corpus)
    (corpus / "harness_versions/a/__pycache__").mkdir()
    (corpus / "harness_versions/a/__pycache__/x.pyc").write_text("x")
    assert manifest.git_objects(corpus) == before
    (corpus / "harness_versions/a/prompts/system.md").write_text("edited")
    after = manifest.git_objects(corpus)
    assert after["harness_versions"] != before["harness_versions"]
    assert after["params.yaml"] == before["params.yaml"]


def test_a_deleted_file_does_not_count_before_git_knows_of_it(corpus: Path) -> None:
    commit(corpus)
    (corpus / "params.yaml").unlink()
    (corpus / "harness_versions/a/tool.sh").unlink()
    found = manifest.git_objects(corpus)
    commit(corpus)
    assert found["params.yaml"] == "absent"
    assert found["harness_versions"] == git(corpus, "rev-parse", "HEAD:corpus/harness_versions")


def test_outside_git_everything_is_unversioned(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("{}\n")
    assert set(manifest.git_objects(tmp_path).values()) == {"unversioned"}
