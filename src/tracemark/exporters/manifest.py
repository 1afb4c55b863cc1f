"""The manifest and the dataset card of an export.

`manifest.json` is the manifest as indented JSON, policy first, with a last member `digest`: the SHA-256 of the
canonical JSON of all the others, so that an edit shows. `README.md` is the card from which `datasets` learns the
columns: without it, the loader guesses one structure for all rows and fills what a row lacks with nulls, which are then
trained on.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import tracemark
from tracemark import digest
from tracemark.durable import read_regular
from tracemark.errors import IntegrityError, IrregularFileError, NewerFormatError
from tracemark.exporters import sft
from tracemark.exporters.choice import Selected
from tracemark.exporters.select import Terms
from tracemark.findings import Finding
from tracemark.ledger.state import evaluation_digest
from tracemark.model.export import FORMAT, Counts, Equivalence, Exporter, File, HarnessOf, Manifest, Parameters
from tracemark.model.faults import first

NAME = "manifest.json"
"""The manifest's file name."""

CARD = "README.md"
"""The dataset card's file name."""

OBJECTS = ("harness_versions", "params.yaml")
"""What a manifest names by its git object id, relative to the corpus."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the rows were made from."""

    fingerprint: str
    """The accepted fingerprint."""
    label: str | None
    """Its name; None when unknown."""
    components: Mapping[str, str]
    """Its component digests; empty when unknown."""
    corpus: str
    """The corpus digest."""
    objects: Mapping[str, str]
    """See `git_objects`."""
    equivalences: Sequence[Equivalence] = ()
    """The declarations through which other fingerprints count as the accepted one."""
    findings: Sequence[Finding] = ()
    """What weakens the fingerprint, such as `closure-incomplete`."""


def build(selected: Selected, terms: Terms, origin: Origin, files: Mapping[str, File]) -> Manifest:
    """Return the manifest of an SFT export.

    Args:
        selected: what was taken and what was left out.
        terms: under which terms.
        origin: out of which harness and content.
        files: digest and size of every file but the manifest, by name.
    """
    return Manifest(
        policy=terms.policy.value,
        exporter=Exporter(name=sft.NAME, version=sft.VERSION, tracemark=tracemark.__version__),
        harness=_harness(terms, origin),
        outcomes={f"recorded success (grader {name})": count for name, count in selected.graders.items()},
        counts=Counts(
            traces=selected.traces,
            superseded=selected.superseded,
            rows=len(selected.ids),
            excluded={reason.value: count for reason, count in selected.excluded.items()},
            not_trainable=dict(selected.not_trainable),
            models=dict(selected.models),
        ),
        parameters=parameters(terms),
        corpus=origin.corpus,
        objects=dict(origin.objects),
        findings=[finding.as_json() for finding in origin.findings],
        files=dict(files),
        rows=list(selected.ids),
    )


def _harness(terms: Terms, origin: Origin) -> HarnessOf:
    members: dict[str, Any] = {
        "fingerprint": origin.fingerprint,
        "label": origin.label,
        "components": dict(origin.components),
        "equivalents": sorted(terms.accepted - {origin.fingerprint}),
    }
    if origin.equivalences:
        members["equivalences"] = sorted(origin.equivalences, key=lambda declared: declared.entry)
    return HarnessOf.model_validate(members)


def parameters(terms: Terms) -> Parameters:
    """Return what a manifest states of the terms, the policy aside."""
    caps = terms.caps
    return Parameters(
        models=sorted(terms.models),
        evaluation_tasks=len(terms.evaluation),
        evaluation_digest=evaluation_digest(terms.evaluation),
        per_task=caps.per_task,
        total=caps.total,
        minimum=caps.minimum,
        tool_calls=None if caps.tool_calls is None else list(caps.tool_calls),
    )


def states_format(path: Path, form: str) -> bool:
    """Return whether a file says of itself that it is of a format, of any version; what cannot be read does not.

    Args:
        path: the file; it need not be there.
        form: the format with its version, such as `tracemark/export/1`.
    """
    try:
        value = digest.loads(read_regular(path)).value
    except (OSError, IrregularFileError, digest.NotJSONError):
        return False
    return isinstance(value, dict) and str(value.get("format")).startswith(form.rpartition("/")[0] + "/")


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`."""
    members = manifest.model_dump()
    text = json.dumps({**members, "digest": digest.of(members)}, indent=2)
    return text.encode("ascii") + b"\n"


def decode(data: bytes) -> tuple[Manifest, bool]:
    """Read a `manifest.json`; return it, and whether its bytes are those that were written.

    Raises:
        IntegrityError: when it is no manifest.
        NewerFormatError: when another version wrote it.
    """
    try:
        members = digest.loads(data).value
    except digest.NotJSONError as error:
        raise IntegrityError(f"not a JSON value: {error}", where=NAME) from None
    if not isinstance(members, dict):
        raise IntegrityError("not a JSON object", where=NAME)
    members.pop("digest", None)
    found = members.get("format")
    if isinstance(found, str) and found.startswith("tracemark/export/") and found != FORMAT:
        raise NewerFormatError(f"written in format {found[:40]!r}", where=NAME, hint="update tracemark")
    try:
        manifest = Manifest.model_validate(members)
    except ValidationError as error:
        place, reason = first(error, members)
        raise IntegrityError(f"no manifest: {place}: {reason}", where=NAME, hint="export again") from None
    # of bytes, not of values: a reader that takes the first of two equal keys would see another manifest
    return manifest, encode(manifest) == data


def statement(manifest: Manifest) -> dict[str, Any]:
    """Return the value of the annotation that records the export in the store: its terms, its digest, its traces."""
    members = manifest.model_dump()
    return {
        "fingerprint": manifest.harness.fingerprint,
        "manifest": digest.of(members),
        "policy": manifest.policy,
        "traces": list(manifest.rows),
    }


def card(rows: str) -> bytes:
    """Return the dataset card, `README.md`: the columns as `datasets` must be told them, and how to read them.

    The digest of the rows stands among what `datasets` is told, because its cache knows an export by that alone: a new
    export in the same folder, or in another one, would give the rows of an earlier one.

    Args:
        rows: SHA-256 of the file of rows, 64 hexadecimal digits.
    """
    features = "".join(f"  - name: {name}\n    {feature}\n" for name, feature in sft.COLUMNS.items())
    return (
        "---\n"
        "configs:\n"
        "- config_name: default\n"
        f"  data_files: {sft.FILE}\n"
        "dataset_info:\n"
        f"  description: {sft.FILE} with SHA-256 {rows}\n"
        "  features:\n"
        f"{features}"
        "tags:\n"
        "- agent-traces\n"
        "- tool-use\n"
        "---\n"
        "\n"
        "# Conversations of one harness\n"
        "\n"
        f"`{NAME}` says which harness made these traces, how that is known, what was left out and why.\n"
        "`tracemark audit` on this folder compares every row with the store.\n"
        "\n"
        "`load_dataset` on this folder (datasets 5; 4.4 has no `json` feature) reads the columns as declared above.\n"
        "That feature rounds numbers with a fraction; the file itself is exact, one JSON object a line.\n"
        "\n"
        "Every content is one text. Where a log holds a list of text parts, they are put together with nothing\n"
        "between them, as chat templates do.\n"
        "\n"
        "Chat templates render members in the order of the row. Tool definitions stand in the order of the harness's\n"
        "own schema files where the harness binds the same tool, elsewhere in the conventional order. The order in\n"
        "which the model wrote the arguments of a call is not stored; they stand in the order of the tool's\n"
        "properties, those that it does not list last and sorted.\n"
    ).encode()


def git_objects(root: Path, names: Sequence[str] = OBJECTS) -> dict[str, str]:
    """Return the git object ids that `names` would have if they were committed as they stand in the work tree.

    Git is asked for the list of files alone (tracked ones and new ones that it does not ignore); neither its index nor
    its objects are touched. Ids are computed over the bytes on disk.

    Args:
        root: the corpus, anywhere in a work tree.
        names: files and folders relative to it.

    Returns:
        For each name an id of 40 hexadecimal digits, `absent` when it holds nothing, `unversioned` outside git.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(command, cwd=root, env=inherited, capture_output=True, check=False)
    except OSError:
        return dict.fromkeys(names, "unversioned")
    if done.returncode:
        return dict.fromkeys(names, "unversioned")
    listed = [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]
    return {name: _object_id(root, name, listed) or "absent" for name in names}


def _object_id(root: Path, name: str, listed: list[str]) -> str | None:
    if name in listed:
        entry = _leaf(root / name)
        return entry and entry[1]
    tree: dict[str, Any] = {}
    for path in listed:
        if path.startswith(f"{name}/"):
            entry = _leaf(root / path)
            *folders, leaf = path[len(name) + 1 :].split("/")
            if entry is not None:
                branch = tree
                for folder in folders:
                    branch = branch.setdefault(folder, {})
                branch[leaf] = entry
    return _tree_id(tree) if tree else None


def _leaf(path: Path) -> tuple[bytes, str] | None:
    """Return git's mode and the object id of one file; None when it is gone or is no file."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return b"120000", digest.git_object_id("blob", os.fsencode(path.readlink()))
        if not stat.S_ISREG(mode):
            return None
        return (b"100755" if mode & 0o100 else b"100644"), digest.git_object_id("blob", path.read_bytes())
    except OSError:
        return None


def _tree_id(tree: dict[str, Any]) -> str:
    entries = []
    for name, item in tree.items():
        mode, identity = (b"40000", _tree_id(item)) if isinstance(item, dict) else item
        raw = os.fsencode(name)
        # git sorts a folder as if its name ended in a slash
        entries.append((raw + (b"/" if mode == b"40000" else b""), mode + b" " + raw + b"\0" + bytes.fromhex(identity)))
    return digest.git_object_id("tree", b"".join(entry for _, entry in sorted(entries)))
