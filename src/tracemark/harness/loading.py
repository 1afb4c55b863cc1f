"""Read a harness version from its folder.

Every file is read once, and the digests are made of the bytes that stay in memory.

Invariants:
- a folder with a problem that leaves the fingerprint in doubt gives no harness, and all its problems at once;
- a finding (a warning) leaves the fingerprint as it is; `incomplete` names the parts whose closure is not certain;
- closed world: every file of the folder belongs to a part, is ignored, or counts as `unassigned` in `runtime`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tracemark.errors import LISTED, ManifestError
from tracemark.findings import Finding, finding
from tracemark.harness import closure, includes, manifest
from tracemark.harness.fingerprint import Place, Sources, identify, normal, plain, schema, schema_repairs
from tracemark.harness.folder import PACKAGE, ROOT, HarnessFolder, RefusedFileError
from tracemark.harness.names import RENAME, reserved
from tracemark.harness.signature import SignatureError, schema_of
from tracemark.harness.tools import ToolSchemaError
from tracemark.harness.version import Harness
from tracemark.model.harness import DERIVED, MANIFEST_NAME, ORDERED, Manifest, ToolBinding


@dataclass(frozen=True)
class Examined:
    """What reading a folder gave."""

    harness: Harness | None
    """The harness; None when something prevents a fingerprint."""
    problems: tuple[Finding, ...]
    """What prevents it, all of severity error; empty when there is a harness."""
    findings: tuple[Finding, ...]
    """What is uncertain, with or without a harness."""


def load(folder: Path) -> Harness:
    """Read a harness version from its folder.

    Args:
        folder: the folder that holds `harness.yaml`.

    Raises:
        ManifestError: when the manifest, or a file it names, is not usable; the message lists every problem.
    """
    examined = examine(folder)
    if examined.harness is None:
        raise manifest_error(folder, examined.problems)
    return examined.harness


def manifest_error(folder: Path, problems: tuple[Finding, ...]) -> ManifestError:
    """Return one error for all the problems of a folder."""
    first = problems[0]
    message = first.message
    if len(problems) > 1:
        lines = [f"{problem.where}: {problem.message}" for problem in problems]
        message = LISTED.join([f"{len(problems)} problems", *lines])
    return ManifestError(message, where=f"{folder}/{first.where}", hint=first.hint)


def examine(folder: Path) -> Examined:
    """Read a harness version from its folder and return everything wrong with it in place of raising.

    Args:
        folder: the folder that holds `harness.yaml`.
    """
    return _Loading(HarnessFolder(folder)).run()


def assemble(folder: HarnessFolder, described: Manifest) -> Examined:
    """Make a harness of a manifest that stands in no file, and say everything wrong with it in place of raising.

    Args:
        folder: where the files are looked up, its bases added; `roots` and `packages` of the manifest are not read.
        described: the manifest.
    """
    return _Loading(folder).assemble(described, manifest.Reading(described))


class _Loading:
    """One reading of one folder."""

    def __init__(self, folder: HarnessFolder) -> None:
        self.folder = folder
        self.problems: list[Finding] = []
        self.findings: list[Finding] = []
        self.incomplete: dict[str, list[str]] = {}
        self.closures: dict[str, dict[str, str]] = {}
        self.includes: dict[Place, tuple[str, ...]] = {}

    def run(self) -> Examined:
        read = self._manifest()
        if read is None:
            return self._failed()
        self._bases(*read)
        examined = self.assemble(*read)
        if examined.harness is None:
            return examined
        return replace(examined, harness=replace(examined.harness, seen=self.folder.seen))

    def assemble(self, described: Manifest, places: manifest.Reading) -> Examined:
        """Read the files that a manifest names, and identify what they make."""
        self._prompts(described, places)
        self._schemas(described, places)
        self._entries(described, places)
        described = self._derived(described, places)
        self._templates(described, places)
        unassigned = self._closed_world()
        if self.problems:
            return self._failed()
        sources = Sources(self.folder.files, self.closures, self.includes, unassigned)
        harness = Harness(
            name=described.name or self.folder.bases[0].folder.name,
            folder=self.folder.path,
            manifest=described,
            files=dict(sorted(self.folder.files.items())),
            closures=self.closures,
            includes=self.includes,
            unassigned=unassigned,
            identity=identify(described, sources),
            findings=tuple(dict.fromkeys(self.findings)),
            incomplete={component: tuple(parts) for component, parts in self.incomplete.items()},
        )
        return Examined(harness, (), harness.findings)

    def _failed(self) -> Examined:
        return Examined(None, tuple(dict.fromkeys(self.problems)), tuple(dict.fromkeys(self.findings)))

    def _manifest(self) -> tuple[Manifest, manifest.Reading] | None:
        try:
            raw = self.folder.read(self.folder.bases[0], MANIFEST_NAME)
        except RefusedFileError:
            message = "there is no readable harness.yaml in this folder"
            hint = f"a harness version is a folder with a file {MANIFEST_NAME}"
            self.problems.append(finding("manifest-file-missing", MANIFEST_NAME, message, hint))
            return None
        # its members are hashed, not its bytes
        del self.folder.files[MANIFEST_NAME]
        reading = manifest.read(raw)
        self.problems += reading.problems
        label = self.folder.bases[0].folder.name
        if reading.manifest and reading.manifest.name is None and (reason := reserved(label)):
            message = f"`name` is missing, and the name of the folder, {label!r}, cannot stand in for it: it {reason}"
            self.problems.append(finding("manifest-invalid", MANIFEST_NAME, message, RENAME))
        return (reading.manifest, reading) if reading.manifest else None

    def _bases(self, described: Manifest, places: manifest.Reading) -> None:
        self.folder.ignore = described.ignore
        for member, prefix in (("roots", ROOT), ("packages", PACKAGE)):
            for index, text in enumerate(getattr(described, member)):
                if problem := self.folder.add_base(text, prefix):
                    self._placed([problem], places.where((member, index)))

    def _prompts(self, described: Manifest, places: manifest.Reading) -> None:
        for index, prompt in enumerate(described.prompt_templates):
            if prompt.file is not None:
                self._member(prompt.file, places.where(("prompt_templates", index, "file")))

    def _schemas(self, described: Manifest, places: manifest.Reading) -> None:
        for name, tool in described.tool_bindings.items():
            if tool.definition == DERIVED and tool.entry is not None:
                continue
            where = places.where(("tool_bindings", name, "schema"))
            if isinstance(tool.definition, str):
                if not self._member(tool.definition, where):
                    continue
                where = normal(tool.definition)
            try:
                reduced = schema(tool, self.folder.files)
                repairs = schema_repairs(tool, self.folder.files)
            except ToolSchemaError as error:
                self.problems.append(finding("schema-invalid", where, f"tool {name!r}: {error}"))
            except ValueError as error:
                self.problems.append(finding("schema-invalid", where, f"tool {name!r}: no JSON: {error}"))
            else:
                if reduced["name"] != name:
                    message = f"the schema names the tool {reduced['name']!r}, the manifest {name!r}"
                    self.problems.append(finding("schema-invalid", where, message, "give both one name"))
                for repair in repairs:
                    self.problems.append(finding("schema-invalid", where, f"tool {name!r}: {repair}"))

    def _entries(self, described: Manifest, places: manifest.Reading) -> None:
        runtime = described.runtime
        reader = closure.ClosureReader(self.folder, runtime.packages, runtime.environment)
        for (component, part), entry in described.entries().items():
            found = reader.read(entry)
            where = places.where(_entry_place(described, component, part))
            named = normal(entry.partition(":")[0])
            for problem in found.problems:
                self._placed([problem], where if problem.where in (MANIFEST_NAME, named) else problem.where)
            self.findings += found.findings
            self.closures[entry] = found.modules
            if found.incomplete:
                self.incomplete.setdefault(component, []).append(part)

    def _derived(self, described: Manifest, places: manifest.Reading) -> Manifest:
        """Return the manifest with the schemas written out that are left to the signatures of entries."""
        tools: dict[str, ToolBinding] = {}
        for name, tool in described.tool_bindings.items():
            if tool.definition != DERIVED or tool.entry is None:
                continue
            # an entry without a file is a problem that has been told
            key = self.closures[tool.entry].get(closure.module_name(tool.entry), "")
            if key.endswith(".py"):
                try:
                    made = schema_of(self.folder.files[key], tool.entry.rpartition(":")[2], name, tool.parameters)
                except SignatureError as error:
                    where = places.where(("tool_bindings", name, "schema"))
                    message = f"tool {name!r}: no schema can be made of {tool.entry!r}: {error}"
                    self.problems.append(finding("schema-invalid", where, message, "write the schema out"))
                else:
                    tools[name] = tool.model_copy(update={"definition": made})
        return described.model_copy(update={"tool_bindings": {**described.tool_bindings, **tools}})

    def _templates(self, described: Manifest, places: manifest.Reading) -> None:
        for index, prompt in enumerate(described.prompt_templates):
            if prompt.syntax != "jinja" or prompt.entry is not None:
                continue
            where = places.where(("prompt_templates", index, "text"))
            text = prompt.text
            if prompt.file is not None:
                where = normal(prompt.file)
                text = self._decoded(where)
            if text is not None:
                found = includes.collect(self.folder, plain(text), where, prompt.options)
                self._included(found, ("prompt_templates", prompt.name))
        for index, handler in enumerate(described.observation_handlers):
            if handler.template is not None:
                where = places.where(("observation_handlers", index, "template"))
                found = includes.collect(self.folder, plain(handler.template), where, None)
                self._included(found, ("observation_handlers", handler.name))

    def _included(self, found: includes.Includes, place: Place) -> None:
        self.problems += found.problems
        self.findings += found.findings
        if found.files:
            self.includes[place] = tuple(sorted(found.files))
        parts = self.incomplete.setdefault(place[0], []) if found.findings else []
        if found.findings and place[1] not in parts:
            parts.append(place[1])

    def _decoded(self, key: str) -> str | None:
        if key not in self.folder.files:
            return None
        try:
            return self.folder.files[key].decode("utf-8")
        except UnicodeDecodeError:
            message = f"the template {key!r} is not UTF-8, so what it brings in cannot be known"
            self.problems.append(finding("source-unparsable", key, message))
            return None

    def _closed_world(self) -> tuple[str, ...]:
        listing = self.folder.walk()
        self.problems += listing.problems
        unassigned = tuple(path for path in listing.files if path not in self.folder.files)
        for path in unassigned:
            if self._member(path, path):
                message = f"{path!r} belongs to no part and counts into `runtime` as unassigned"
                self.findings.append(finding("unassigned-file", path, message))
        return unassigned

    def _member(self, text: str, where: str) -> bool:
        try:
            self.folder.member(text)
        except RefusedFileError as error:
            self._placed([error.problem], where)
            return False
        return True

    def _placed(self, problems: list[Finding], where: str) -> None:
        self.problems += [finding(problem.code, where, problem.message, problem.hint) for problem in problems]


def _entry_place(described: Manifest, component: str, part: str) -> manifest.Place:
    if component in ORDERED:
        names = [each.name for each in getattr(described, component)]
        return (component, names.index(part), "entry")
    return (component, part, "entry")
