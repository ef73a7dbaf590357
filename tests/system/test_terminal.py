import io

import pytest
from rich.table import Table

from bochner.system.terminal import PlainConsole, harmless
from bochner.training.progress import ProgressBar, Record

HOSTILE = "[/b][red]x:dog:\x1b]0;title\x07\x9b2J\u202e\udcff"
SHOWN = r"[/b][red]x:dog:\x1b]0;title\x07\x9b2J\u202e\udcff"


def test_what_cannot_be_printed_is_shown_as_its_escape():
    assert harmless(HOSTILE) == SHOWN
    assert harmless("two\nlines\tand\r") == r"two\nlines\tand\r"
    assert harmless("Größe 身長 😀 [m²]") == "Größe 身長 😀 [m²]"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_lines_titles_and_cells_are_printed_as_they_are(is_terminal):
    file = io.StringIO()
    console = PlainConsole(file=file, width=200, force_terminal=is_terminal, highlight=False)
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    console.print(HOSTILE, "and\nmore")
    console.print(table)
    assert file.getvalue().count(SHOWN) == 4
    assert "and\nmore" in file.getvalue()
    assert "\x1b]" not in file.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_the_progress_bar_prints_its_description_as_it_is(monkeypatch, stream):
    file = stream()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", file)
    bar = ProgressBar(HOSTILE, seconds_between_lines=-1)
    bar.on_record(Record(10, 0.5, 0.1, "q(W)", 0.01, elbo=-120.0, ell=-100.0, kl=20.0))
    bar.on_end()
    assert SHOWN in file.getvalue()
