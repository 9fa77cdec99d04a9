"""The ``specwb`` command, also as ``python -m workbench``: Ctrl-C ends it without a trace from its first moment on."""

import sys


def main() -> int:
    """Run this process's command line; the exit code."""
    try:
        # Here, because the imports take most of the time in which somebody who mistyped presses Ctrl-C.
        from workbench.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # ExitCode.INTERRUPTED, which may not be imported yet
    finally:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is left to do needs no interrupting, only an end


if __name__ == "__main__":
    sys.exit(main())
