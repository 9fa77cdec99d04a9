"""``python -m engine.gpu_check``: all stages, or what is left of them, into one file; then one table."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the server starts its engine; before torch is imported

from engine.gpu_check.check_file import CheckFileError, load, same_machine, save
from engine.gpu_check.sizes import FULL, QUICK
from engine.gpu_check.supervisor import ExitStatus, supervise

BUDGET_S = 540.0


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    from engine.gpu_check.stages import STAGES

    stages = "".join(f"\n  {stage.name:10} {stage.does}" for stage in STAGES)
    parser = argparse.ArgumentParser(
        prog="python -m engine.gpu_check",
        description=__doc__,
        epilog=f"stages, in this order:{stages}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("gpu-check.json"), help="file of the results; gone on with")
    parser.add_argument("--only", metavar="STAGE,…", help="these stages")
    parser.add_argument("--again", metavar="STAGE,…", help="forget what the file has of these stages first")
    parser.add_argument("--quick", action="store_true", help="a tiny model and small loads, for a first contact")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: with --quick, without a GPU")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds after which no cell begins")
    parser.add_argument("--model-file", help="the default model's GGUF, where it is not in the cache")
    parser.add_argument("--prompts", help='prompts of the default model: one {"id": …, "prompt": …} a line')
    parser.add_argument("--table", action="store_true", help="run nothing; the file as a markdown table on stdout")
    parser.add_argument("--child", nargs=2, metavar=("RUN", "DEADLINE"), help=argparse.SUPPRESS)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    arguments = sys.argv[1:] if argv is None else argv
    options = make_parser().parse_args(arguments)
    try:
        if options.table:
            return _table(options.out)
        _check(options)
        if options.child is not None:
            return _run(options)
        _forget(options)
        status = supervise(arguments, options.out.absolute(), options.budget)
    except (CheckFileError, ValueError) as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return ExitStatus.USAGE
    return status if status in (ExitStatus.USAGE, ExitStatus.INTERRUPTED) else _conclude(options.out, status)


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot run.

    Raises:
        ValueError: saying what to do.
    """
    import torch

    from engine.gpu_check.stages import chosen

    chosen(options.only)
    chosen(options.again)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch finds no GPU here (see nvidia-smi); --device cpu --quick tries the check itself")
    if options.device == "cpu" and not options.quick:
        raise ValueError("--device cpu takes --quick: the full workload is a GPU's")


def _forget(options: argparse.Namespace) -> None:
    if options.again is None:
        return
    from engine.gpu_check.stages import chosen

    file = load(options.out)
    prefixes = tuple(f"{stage.name}/" for stage in chosen(options.again))
    file.cells = {name: cell for name, cell in file.cells.items() if not name.startswith(prefixes)}
    save(options.out, file)


def _run(options: argparse.Namespace) -> int:
    """The process beside: run what is not done."""
    import msgspec

    from engine.gpu_check.machine import describe
    from engine.gpu_check.session import DeviceBroken, OutOfTime, Session, say
    from engine.gpu_check.stages import chosen

    sizes = QUICK if options.quick else FULL
    machine, described = describe(options.device), msgspec.json.decode(msgspec.json.encode(sizes))
    file = load(options.out)
    same_machine(file, machine, described)
    file.machine, file.sizes, file.running = machine, described, None
    run, deadline = options.child
    session = Session(
        options.device, sizes, options.out, file, run, float(deadline), options.model_file, options.prompts
    )
    try:
        for stage in chosen(options.only):
            began = time.monotonic()
            stage.run(session)
            say(f"stage {stage.name} has ended ({time.monotonic() - began:.0f} s)")
    except OutOfTime as left:
        say(f"the budget ends before {left}; run it again with the same --out")
        return ExitStatus.OUT_OF_TIME
    except DeviceBroken as cell:
        say(f"the device is of no more use to this process after {cell}")
        return ExitStatus.DEVICE_BROKEN
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK


def _table(out: Path) -> int:
    from engine.gpu_check.table import markdown

    print(markdown(load(out)))
    return ExitStatus.OK


def _conclude(out: Path, status: ExitStatus) -> int:
    """Print what there is; the exit code says whether that is everything, and good."""
    from engine.gpu_check.bars import verdicts
    from engine.gpu_check.table import plain_text

    file = load(out)
    print(plain_text(file))
    if status == ExitStatus.OUT_OF_TIME:
        return status
    good = all(cell.error is None for cell in file.cells.values()) and all(v.is_good for v in verdicts(file))
    return ExitStatus.OK if good else ExitStatus.MISSED


if __name__ == "__main__":
    sys.exit(main())
