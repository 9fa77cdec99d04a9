"""Codes, numbers, names and links on the pages are those of the source."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from packaging.requirements import Requirement

from engine.config import EngineConfig
from engine.models import catalog
from engine.models.linear import choose_arithmetic
from engine.server.engine_state import Phase
from engine.server.exit_status import ExitStatus
from engine.server.server_config import ServerConfig
from engine.start_choices import CPU_KV_TOKENS
from probes.knobs import KNOBS, Knobs
from tests.docs.pages import PAGES, ROOT, anchor, blocks, page, section, table
from workbench.cli.serve import command as serve
from workbench.exit_codes import MEANINGS, ExitCode

OPERATIONS, WIRE, ARCHITECTURE = page("docs/operations.md"), page("docs/wire.md"), page("docs/architecture.md")


def calls(path: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(page(path))):
        if isinstance(node, ast.Call):
            yield node


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def reasons_in_source() -> set[str]:
    """What the policy gives ``_plain`` and ``_speculate``, and what ``reason_of`` returns instead."""
    found = {
        code
        for call in calls("engine/spec/policy.py")
        for argument in call.args[: {"_plain": 1, "_speculate": 2}.get(name_of(call), 0)]
        if (code := constant(argument)) is not None
    }
    for function in ast.walk(ast.parse(page("engine/step_tally.py"))):
        if isinstance(function, ast.FunctionDef) and function.name == "reason_of":
            returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            found |= {code for value in returns if isinstance(value, ast.Tuple) and (code := constant(value.elts[0]))}
    return found


def alerts_in_source() -> set[str]:
    """First argument of ``alert(...)``, ``code`` of an ``AlertEvent``, second argument of the watch's ``_say``."""
    found = {code for call in calls("engine/watch.py") if name_of(call) == "_say" and (code := constant(call.args[1]))}
    for folder in ("engine", "probes"):
        for path in (ROOT / folder).rglob("*.py"):
            for call in calls(str(path.relative_to(ROOT))):
                given = call.args[:1] if name_of(call) == "alert" else []
                if name_of(call) == "AlertEvent":
                    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
                found |= {code for value in given if (code := constant(value)) is not None}
    return found


@pytest.mark.parametrize("text", [OPERATIONS, WIRE], ids=["operations", "wire"])
def test_reason_codes_are_those_of_the_source(text: str) -> None:
    title = "Reason codes"
    assert len(reasons_in_source()) > 8
    assert set(table(section(text, title))) == reasons_in_source()


def test_alert_codes_are_those_of_the_source() -> None:
    assert {"plan_mismatch", "start_warning", "subscriber_loss", "policy_flaps"} <= alerts_in_source()
    operations, wire = table(section(OPERATIONS, "Alerts")), table(section(WIRE, "Alert codes"))
    assert set(operations) == set(wire) == alerts_in_source()
    assert {code: cells[0] for code, cells in operations.items()} == {code: cells[0] for code, cells in wire.items()}


def test_exit_codes_are_the_enum() -> None:
    assert [int(code) for code in table(section(OPERATIONS, "Exit codes"))] == [int(code) for code in ExitCode]
    assert set(MEANINGS) == set(ExitCode)
    servers = re.search(r"passes on ([\d, and]+) of the server", section(OPERATIONS, "Exit codes"))
    assert servers is not None
    assert {int(code) for code in re.findall(r"\d+", servers[1])} == {int(code) for code in ExitStatus}


def test_knobs_are_those_of_the_source_with_limits_and_defaults() -> None:
    rows = table(section(OPERATIONS, "Knobs"))
    assert list(rows) == list(KNOBS)
    for spec in KNOBS.values():
        values, default, _ = rows[spec.name]
        assert values == (", ".join(f"`{choice}`" for choice in spec.choices) or f"{spec.low} to {spec.high}")
        assert default == str(getattr(Knobs(), spec.name))


def test_start_options_exist_and_default_to_what_the_page_says() -> None:
    known = {option for parameter in serve.params for option in parameter.opts}
    defaults = {**msgspec.structs.asdict(ServerConfig()), **msgspec.structs.asdict(EngineConfig())}
    for line in section(OPERATIONS, "Starting").splitlines():
        if not line.startswith("| `--"):
            continue
        first, default = (cell.strip() for cell in line.split("|")[1:3])
        options, values = re.findall(r"--[a-z-]+", first), default.replace("`", "").split(", ")
        assert set(options) <= known
        for option, value in zip(options, values, strict=True):
            actual = defaults[option.removeprefix("--").replace("-", "_")]
            words = {"False": "off", "None": "off", "True": "on"}
            assert value == words.get(str(actual), str(actual)), option


def test_health_states_are_those_of_the_source() -> None:
    phases = set(get_args(Phase)) - {"starting"}
    assert set(table(section(OPERATIONS, "Health"))) == phases | {"loading", "stuck"}


def test_bytes_of_a_token_are_worked_out_rightly() -> None:
    text = section(OPERATIONS, "Memory")
    model = re.search(r"\((\d+) layers, (\d+) heads of (\d+)\) \| bytes a token \| (\d+) tokens", text)
    assert model is not None
    layers, heads, size, tokens = (int(number) for number in model.groups())
    assert tokens == CPU_KV_TOKENS
    for names, (each, all_of_them) in table(text).items():
        for name in re.findall(r"\w+16|\w+32", names):
            kept = choose_arithmetic(name).activations.itemsize
            assert each == f"{layers * 2 * heads * size * kept:,}"
            assert all_of_them == f"{layers * 2 * heads * size * kept * tokens / 2**30:.2f} GiB"


def test_stages_of_a_step_are_those_of_the_source_in_order() -> None:
    begun = [
        stage
        for path in ("engine/core.py", "engine/host_worker.py", "engine/landing.py")
        for call in calls(path)
        if name_of(call) in ("begin", "begin_step") and (stage := constant(call.args[0])) is not None
    ]
    told = list(table(section(ARCHITECTURE, "One step's life")))
    assert sorted(told) == sorted(set(begun))
    assert told == re.findall(r"`(\w+)`", next(line for line in WIRE.splitlines() if line.startswith("| `cpu_us`")))[1:]


def test_libraries_are_those_of_the_project() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["engine"], *extras["cuda"]]
    told = {name for first in table(section(ARCHITECTURE, "Libraries")) for name in first.split(", ")}
    assert told == {Requirement(line).name for line in wanted}


def test_readme_is_the_projects_and_says_what_it_needs() -> None:
    project, text = tomllib.loads(page("pyproject.toml"))["project"], page("README.md")
    assert project["readme"] == "README.md"
    versions = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if ":: 3." in line]
    assert f"Python {versions[0]} to {versions[-1]}" in text
    apt = re.search(r"apt-get install [\w -]+", page("scripts/install.sh"))
    assert apt is not None
    assert apt[0] in text
    model = catalog.TARGETS[EngineConfig().model]
    assert isinstance(model, catalog.WheelModel)
    assert f"({model.wheel_bytes / 1e6:.0f} MB," in text


def links(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path.read_text()):
        if link.startswith(("http://", "https://")):
            continue
        file, _, fragment = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{path.name} links to {link}"
        if fragment:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert fragment in {anchor(heading) for heading in headings}, f"{path.name} links to {link}"


def test_the_module_map_names_every_module_and_no_other() -> None:
    text = ARCHITECTURE[ARCHITECTURE.index("## Module map") :]
    listed = {
        f"{folder}/{name}"
        for folder in re.findall(r"^### (\S+)/$", text, re.MULTILINE)
        for name in table(section(text, f"{folder}/"))
    }
    there = {
        str(path.relative_to(ROOT))
        for package in ("engine", "probes", "workbench")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert {name for name in listed if not name.endswith("__init__.py")} == there


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_named_in_code_marks_exist(path: Path) -> None:
    for name in re.findall(r"`((?:engine|probes|workbench|tests|docs|scripts)/[\w/.-]+\.\w+)`", path.read_text()):
        assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_picture_is_an_export_that_fetches_nothing() -> None:
    picture = page("docs/attach.svg")
    assert "docs/attach.svg" in page("README.md")
    assert "SPEC" in picture
    assert "winning" in picture
    assert "@font-face" not in picture
    assert "url(http" not in picture


def test_no_page_names_a_path_of_a_machine() -> None:
    for path in PAGES:
        assert not re.search(r"(?<![\w$])/(work|root|home)/", path.read_text()), path.name


def test_readme_promises_only_blocks_that_are_checked() -> None:
    text = page("README.md")
    fences = re.findall(r"^```(\w*)$", text, re.MULTILINE)
    assert fences == [word for word in fences if word in ("sh", "python", "")]
    assert len(blocks(text, "sh")) + len(blocks(text, "python")) == len(fences) // 2
