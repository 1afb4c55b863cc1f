"""The layers hold, and the list of layers is the list of packages."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tracemark"


def contract(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser[f"importlinter:contract:{name}"]


def test_every_import_points_down_the_layers() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_layers_are_the_packages_that_exist() -> None:
    layers = contract("layers")["layers"].replace("|", "\n").split()
    existing = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    existing |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert sorted(layers) == sorted(existing)


def test_the_layers_know_no_exception() -> None:
    assert contract("layers")["exhaustive"] == "True"
    assert "ignore_imports" not in contract("layers")
    assert "ignore_imports" not in contract("acyclic")


def test_every_importer_of_a_format_is_in_the_contract_of_independence() -> None:
    shared = {"__init__", "base", "source", "detect"}
    formats = {f"tracemark.importers.{path.stem}" for path in (PACKAGE / "importers").glob("*.py")}
    listed = set(contract("importers-independent")["modules"].split())
    assert listed <= formats
    assert listed >= {f"tracemark.importers.{name}" for name in ("atif", "openai_chat", "journal")}
    assert not listed & {f"tracemark.importers.{name}" for name in shared}
