"""The layers hold, and the list of layers is the list of packages."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import tracemark

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


def test_a_child_that_a_test_starts_imports_what_the_test_imports_wherever_it_works(tmp_path: Path) -> None:
    program = "import tracemark; print(tracemark.__file__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == Path(str(tracemark.__file__)).absolute()
