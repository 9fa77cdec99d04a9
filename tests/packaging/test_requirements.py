"""The ranges of pyproject.toml and the pins of constraints.txt say the same."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


# Import name -> distribution, where they differ.
DISTRIBUTIONS = {"flashinfer": "flashinfer-python", "zmq": "pyzmq"}
OURS = {"workbench", "engine", "probes", "recordings"}


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def pins() -> dict[str, str]:
    """Name -> exact version; a line that pins nothing fails here."""
    found: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if text := line.partition("#")[0].strip():
            name, equals, version = text.partition("==")
            assert equals, f"constraints.txt: {text!r} is no exact pin"
            found[canonicalize_name(name)] = version
    return found


@pytest.mark.parametrize("extra", ["", "engine", "cuda", "dev"])
def test_every_direct_dependency_is_pinned_within_its_range(extra: str) -> None:
    table = project()
    wanted = table["optional-dependencies"][extra] if extra else table["dependencies"]
    pinned = pins()
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} has no pin in constraints.txt"
        assert version in requirement.specifier, f"{requirement.name}=={version} is not in {requirement.specifier}"


def test_only_the_engine_extra_asks_for_torch() -> None:
    table = project()
    asking = {
        extra
        for extra, wanted in {"": table["dependencies"], **table["optional-dependencies"]}.items()
        if any(Requirement(line).name == "torch" for line in wanted)
    }
    assert asking == {"engine"}
    assert pins()["torch"].startswith("2.13.")


def imported(package: str) -> dict[str, str]:
    """Third-party distribution -> a file of the package that imports it, wherever in the file."""
    found: dict[str, str] = {}
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.append(node.module)
            for top in {name.partition(".")[0] for name in names} - OURS - sys.stdlib_module_names:
                found[canonicalize_name(DISTRIBUTIONS.get(top, top))] = str(path.relative_to(ROOT))
    return found


@pytest.mark.parametrize(
    ("package", "extras"),
    [("workbench", []), ("probes", []), ("recordings", []), ("engine", ["engine", "cuda"])],
)
def test_what_a_package_imports_is_declared(package: str, extras: list[str]) -> None:
    table = project()
    lines = list(table["dependencies"])
    for extra in extras:
        lines += table["optional-dependencies"][extra]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    undeclared = {name: path for name, path in imported(package).items() if name not in declared}
    assert undeclared == {}
