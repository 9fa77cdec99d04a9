"""``python -m engine.models list|fetch``: what ``specwb models`` starts in a process of its own.

stdout is data, stderr is narration and the progress bar. Exit codes: 0 done, 1 failed, 2 wrong usage, 141 the reader of
stdout left.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from engine.models import catalog
from engine.models.fetch import FetchError, fetch
from engine.models.named_shapes import SHAPES
from engine.models.progress_bar import ProgressBar


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="specwb models", description="The models that are built in.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="name, licence, size and whether it is fetched")
    fetching = verbs.add_parser("fetch", help="download a model and check it; does nothing where it is there already")
    fetching.add_argument("name", nargs="?", default="smollm2-135m", help="default: smollm2-135m")
    for verb in (listing, fetching):
        verb.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.verb == "list":
        return _list(options.json)
    return _fetch(options.name, options.json)


def rows() -> list[dict[str, Any]]:
    """One row a built-in model or head, with the names that ``--json`` shows."""
    listed: list[dict[str, Any]] = []
    for model in catalog.TARGETS.values():
        is_file = isinstance(model, catalog.WheelModel)
        listed.append(
            {
                "name": model.name,
                "kind": "target",
                "title": model.title,
                "licence": model.licence,
                "bytes": model.file_bytes if isinstance(model, catalog.WheelModel) else 0,
                "fetched": model.is_fetched if isinstance(model, catalog.WheelModel) else True,
                "path": str(model.path()) if isinstance(model, catalog.WheelModel) else None,
                "state": "in memory" if not is_file else None,
                "draft": model.draft,
            }
        )
    for named in SHAPES.values():
        listed.append(
            {
                "name": named.name,
                "kind": "shape",
                "title": "the sizes of a model, for benchmarks: --weights random",
                "licence": "-",
                "bytes": 0,
                "fetched": True,
                "path": None,
                "state": "in memory",
                "draft": named.head_name,
            }
        )
    for head in catalog.DRAFTS.values():
        path = head.path() if isinstance(head, catalog.PackagedHead) else None
        listed.append(
            {
                "name": head.name,
                "kind": "draft",
                "title": head.title,
                "licence": head.licence,
                "bytes": sum(file.stat().st_size for file in path.iterdir()) if path is not None else 0,
                "fetched": True,
                "path": str(path) if path is not None else None,
                "state": "shipped" if path is not None else "in memory",
                "target": head.target,
            }
        )
    for row in listed:
        row["state"] = row["state"] or ("fetched" if row["fetched"] else "not fetched")
    return listed


def _list(as_json: bool) -> int:
    listed = rows()
    if as_json:
        print(json.dumps(listed, indent=2))
        return 0
    table = [("NAME", "KIND", "STATE", "SIZE", "LICENCE", "WHAT")]
    for row in listed:
        size = f"{row['bytes'] / 1e6:.0f} MB" if row["bytes"] else "-"
        table.append((row["name"], row["kind"], row["state"], size, row["licence"], row["title"]))
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    for line in table:
        print("  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)] + [line[5]]))
    return 0


def _fetch(name: str, as_json: bool) -> int:
    try:
        with ProgressBar(name, sys.stderr) as bar:
            path, fetched = fetch(name, bar.show)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps({"name": name, "path": str(path), "fetched_now": fetched}))
    elif fetched:
        print(f"{name}: fetched and verified, {path}")
    else:
        print(f"{name}: already there and verified, {path}")
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:  # the reader has left; the interpreter's last flush would complain about it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
