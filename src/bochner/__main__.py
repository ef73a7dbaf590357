"""`bochner`, or `python -m bochner`, is the command line."""

import signal


def main() -> None:
    """Run the command line; until a command begins its work, Ctrl-C ends the process as the system does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bochner.cli import app

    app(prog_name="bochner")


if __name__ == "__main__":
    main()
