"""The file of a check as tables: for a terminal, and for docs/performance.md. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.gpu_check.bars import CLIENTS, VLLM, plain_floor, rates, verdicts, verify_floor
from engine.gpu_check.check_file import CheckFile
from engine.gpu_check.sizes import ACCEPT, CHAIN, DRAFT_SHAPES, THRESHOLD
from probes.ratio import Ratio

Row = Sequence[str]
COLUMNS = ("plain", "eagle3", "dynamic", "off")
NAMES = {"plain": "plain", "eagle3": "EAGLE-3", "dynamic": f"threshold {THRESHOLD}", "off": "head loaded, off"}


def markdown(file: CheckFile) -> str:
    """Everything, under headings of the third level; a part that was not measured is left out."""
    parts = [_header(file)]
    for title, table in _tables(file):
        parts.append(f"### {title}\n\n{_markdown_table(table)}")
    if failed := _failed(file):
        parts.append("### What did not run\n\n" + "\n".join(f"- {line}" for line in failed))
    return "\n\n".join(parts)


def plain_text(file: CheckFile) -> str:
    """The same for a terminal, the bars last; those that are not measured are only counted."""
    parts = [_header(file)]
    for title, table in _tables(file):
        known = [row for row in table if row[-1] != "not measured"]
        if len(known) > 1:
            parts.append(f"{title}\n{_text_table(known)}")
    if failed := _failed(file):
        parts.append("What did not run\n" + "\n".join(f"  {line}" for line in failed))
    words = [verdict.word for verdict in verdicts(file)]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    parts.append(f"bars: {counts}")
    return "\n\n".join(parts)


def _header(file: CheckFile) -> str:
    machine, sizes = file.machine, file.sizes
    dates = sorted(cell.at[:10] for cell in file.cells.values() if cell.at)
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "nothing ran yet"
    versions = ", ".join(
        f"{name} {machine[name]}"
        for name in ("driver", "cuda", "torch", "triton", "flashinfer", "python")
        if machine.get(name)
    )
    engines = file.value("sweep/engines") or {}
    attention = ", ".join(dict.fromkeys(engine["attention"] for engine in engines.values()))
    return (
        f"{machine.get('card', 'no machine')}; {when}; {versions}. Model {sizes.get('model', '?')}, random weights, "
        f"{sizes.get('dtype', '?')}, {sizes.get('prompt', '?')} prompt and {sizes.get('output', '?')} output tokens, "
        f"greedy, all requests at once, prefill included, in-process; simulated accept length {ACCEPT} of a {CHAIN}"
        f"{f'; attention {attention}' if attention else ''}."
    )


def _tables(file: CheckFile) -> list[tuple[str, list[Row]]]:
    found = [
        ("Output tokens/s", _sweep(file)),
        ("Ratios of runs that alternate", _ratios(file)),
        ("The floor", _floor(file)),
        ("Trees and chains, output tokens/s", _shapes(file)),
        ("The default model with its own acceptance", _own(file)),
        ("Against the CPU in float32", _exact(file)),
        ("Where the time goes", _profiles(file)),
        ("Kernels", _kernels(file)),
        ("Layouts of attention, µs", _tiles(file)),
        ("Bars", _bars(file)),
    ]
    return [(title, table) for title, table in found if len(table) > 1]


def _sweep(file: CheckFile) -> list[Row]:
    table: list[Row] = [
        (
            "clients",
            *(NAMES[name] for name in COLUMNS),
            "floor, plain",
            "plain / floor",
            "GPU idle",
            "vLLM 0.24: same columns",
        )
    ]
    for clients in file.sizes.get("clients", ()):
        columns, floor = rates(file, clients), plain_floor(file, clients)
        if not columns and floor is None:
            continue
        plain = columns.get("plain", {})
        is_same_work = file.sizes.get("name") == "full" and clients in CLIENTS
        vllm = [f"{VLLM[name][CLIENTS.index(clients)]:,}" for name in COLUMNS] if is_same_work else []
        table.append(
            (
                str(clients),
                *(_number(columns.get(name, {}).get("rate")) for name in COLUMNS),
                _number(floor),
                f"{plain['rate'] / floor:.1%}" if plain and floor else "—",
                _percent(plain.get("idle")),
                ", ".join(vllm) or "—",
            )
        )
    return table


def _ratios(file: CheckFile) -> list[Row]:
    table: list[Row] = [("clients", "what", "ratio, 90% interval")]
    for name, value in file.values("sweep").items():
        if "ratio" in value:
            clients, what = name.split("/", 1)
            chosen = value.get("chosen")
            table.append((clients, what.replace("chosen", chosen) if chosen else what, str(Ratio(**value["ratio"]))))
    for clients, value in file.values("probe").items():
        table.append((clients, "all topics watched over nobody watching", str(Ratio(**value["ratio"]))))
    return table


def _floor(file: CheckFile) -> list[Row]:
    widths = file.sizes.get("floor_widths", ())
    table: list[Row] = [
        (
            "clients",
            "prefill, ms",
            *(f"step × {width}, ms" for width in widths),
            "attention",
            f"tokens/s at {ACCEPT} a verify of 4",
        )
    ]
    for clients in file.sizes.get("clients", ()):
        prefill = file.value(f"floor/prefill/{clients}")
        steps = [file.value(f"floor/step/{clients}x{width}") for width in widths]
        if prefill is None and not any(steps):
            continue
        names = dict.fromkeys(step["attention"] for step in steps if step)
        table.append(
            (
                str(clients),
                f"{prefill['ms']:.2f}" if prefill else "—",
                *(f"{step['ms']:.3f}" if step else "—" for step in steps),
                ", ".join(names),
                _number(verify_floor(file, clients, 4, ACCEPT)),
            )
        )
    return table


def _shapes(file: CheckFile) -> list[Row]:
    counts = file.sizes.get("shape_clients", ())
    table: list[Row] = [("draft", "accept length", *(f"{clients} clients" for clients in counts))]
    for name, (steps, _, _) in DRAFT_SHAPES.items():
        columns = [
            file.value(f"shapes/{name}/{clients}") or (rates(file, clients).get("eagle3") if name == CHAIN else None)
            for clients in counts
        ]
        if any(columns):
            accept = min(ACCEPT, steps + 1)
            table.append((name, f"{accept:g}", *(_number(column["rate"] if column else None) for column in columns)))
    return table


def _own(file: CheckFile) -> list[Row]:
    table: list[Row] = [("draft", "clients", "off", "on", "on / off", "accept length", "on: time by stage", "it")]
    for name, value in file.values("own").items():
        shape, clients = name.rsplit("/", 1)
        ratio = Ratio(**value["ratio"])
        pays = "pays" if ratio.low > 1 else "loses" if ratio.high < 1 else "is even"
        on, off = value["first"], value["second"]
        accept = f"{on['accept']:.2f}" if on["accept"] else "—"
        table.append((shape, clients, _number(off["rate"]), _number(on["rate"]), str(ratio), accept, _stages(on), pays))
    return table


def _stages(column: dict[str, Any]) -> str:
    """Shares of the device's time by stage; of the host's where the device has no clock."""
    times = column["gpu_us"] or column["cpu_us"]
    total = sum(times.values())
    if not total:
        return "—"
    shares = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join(f"{stage} {took / total:.0%}" for stage, took in shares if took >= 0.01 * total)


def _exact(file: CheckFile) -> list[Row]:
    table: list[Row] = [("run", "positions", "excused near-ties", "others", "widest gap")]
    for stage in ("smoke", "exact"):
        for name, value in file.values(stage).items():
            table.append(
                (
                    f"{stage}: {name}",
                    f"{value['positions']:,}",
                    f"{value['excused']} ({value['excused'] / value['positions']:.2%})",
                    str(value["decided"]),
                    f"{value['widest_gap']:g}",
                )
            )
    return table


def _profiles(file: CheckFile) -> list[Row]:
    table: list[Row] = [("row", "GPU busy", "kernel", "ms", "calls", "share")]
    for name, value in file.values("profile").items():
        for phase in ("decode", "prefill"):
            found = value[phase]
            for i, row in enumerate(found["top"]):
                where = f"{name}, {phase} ({found['window_ms']} ms)" if i == 0 else ""
                busy = _percent(found["busy"]) if i == 0 else ""
                kernel = row["kernel"].replace("|", "/")
                table.append((where, busy, kernel, f"{row['ms']:.3f}", str(row["calls"]), f"{row['share']:.1%}"))
    return table


def _kernels(file: CheckFile) -> list[Row]:
    table: list[Row] = [("kernel", "rows or requests × width: µs (GB/s)")]
    for name, sizes in file.values("kernels").items():
        each = [
            f"{size}: {took['us']:g}" + (f" ({took['gb_s']:,.0f})" if "gb_s" in took else "")
            for size, took in sizes.items()
        ]
        table.append((name, ", ".join(each)))
    return table


def _tiles(file: CheckFile) -> list[Row]:
    """The fastest few of each shape."""
    table: list[Row] = [("shape", "in use", "the fastest: rows/keys/warps/stages/registers")]
    for name, found in file.values("tiles").items():
        took = {tile: us for tile, us in found.items() if isinstance(us, float) and tile != "in use"}
        best = sorted(took.items(), key=lambda entry: entry[1])[:5]
        table.append((name, f"{found['in use']:g}", ", ".join(f"{tile}: {us:g}" for tile, us in best)))
    return table


def _bars(file: CheckFile) -> list[Row]:
    return [("bar", "got", "verdict"), *((v.bar, v.got, v.word) for v in verdicts(file))]


def _failed(file: CheckFile) -> list[str]:
    lines = []
    for name, cell in file.cells.items():
        if cell.error is not None:
            lines.append(f"{name}: {cell.error.splitlines()[0][:300]}")
        elif cell.skipped is not None:
            lines.append(f"{name}: skipped, {cell.skipped}")
    return lines + [f"test {line}" for run in file.values("tests").values() for line in run["failures"]]


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value else "—"


def _percent(value: float | None) -> str:
    return f"{value:.2%}" if value is not None else "—"


def _markdown_table(table: Sequence[Row]) -> str:
    header, *rows = table
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _text_table(table: Sequence[Row]) -> str:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )
