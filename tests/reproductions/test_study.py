"""The command line of each study: its help, its errors in a line, and what --write asks for."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reproductions import __main__ as every
from reproductions import study

MODULES = sorted({each.module for each in every.STUDIES.values()} - {"rerank"})
NEED_DATA = sorted(set(MODULES) - {"sparsemap_solvers", "decisions"})
QUICK = sorted(set(NEED_DATA) - {"grades", "additive", "svmmap", "latent_reranking_variants"})

COMMANDS = sorted(
    {
        command.strip()
        for folder, kind in (("docs", "*.md"), ("reproductions", "*"))
        for page in (study.ROOT / folder).rglob(kind)
        if page.suffix in (".md", ".py")
        for command in re.findall(
            r'(?<!")python -m reproductions\b(?:(?!  |[`#\n]).)*', page.read_text()
        )
    }
)


@pytest.mark.parametrize("module", MODULES)
def test_help_begins_with_the_paper_and_the_commands(module, capsys):
    with pytest.raises(SystemExit) as ended:
        import_module(f"reproductions.{module}").main(["--help"])
    assert ended.value.code == 0
    assert f"python -m reproductions.{module}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_pages_are_understood(command, monkeypatch):
    understand = argparse.ArgumentParser.parse_args

    def stop(parser, arguments=None):
        understand(parser, arguments)
        raise InterruptedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    _, _, module, *arguments = shlex.split(command)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    module = "reproductions.__main__" if module == "reproductions" else module
    with pytest.raises(InterruptedError):
        import_module(module).main()


@pytest.mark.parametrize("module", NEED_DATA)
def test_missing_data_is_an_error_without_traceback(module, tmp_path, capsys):
    assert import_module(f"reproductions.{module}").main(["--data", str(tmp_path)]) == 1
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("module", QUICK)
def test_only_a_whole_run_is_written(module, capsys):
    with pytest.raises(SystemExit):
        import_module(f"reproductions.{module}").main(["--quick", "--write"])
    assert "expected a whole run, without --quick" in capsys.readouterr().err


def test_sections_are_printed_and_written(tmp_path, monkeypatch, capsys):
    page, report = tmp_path / "RESULTS.md", tmp_path / "report.json"
    page.write_text("before <!-- s_a: begin -->\nold\n<!-- s_a: end --> after\n")
    monkeypatch.setattr(study, "RESULTS", page)
    parser = study.Arguments("A study.", "seed", "json", parts=("a", "b"))

    def reproduce(options):
        sections = {f"s_{part}": f"table of {part}" for part in options.parts}
        study.publish(options, sections, {"parts": options.parts}, seed=options.seed)

    command = ["--part", "a", "--seed", "3", "--json", str(report)]
    assert parser.run([*command, "--write"], reproduce) == 0
    assert capsys.readouterr().out == "table of a\n\n"
    assert page.read_text().startswith("before <!-- s_a: begin -->\ntable of a\n\n*Made at commit")
    assert page.read_text().endswith("*\n<!-- s_a: end --> after\n")
    assert "seed 3;" in page.read_text()
    assert json.loads(report.read_text()) == {"parts": ["a"]}
    assert parser.run(["--write"], reproduce) == 1, "there is no place for the part b"
    assert "s_b" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--seed", "-1"], ["--seeds", "0"], ["--part", "a", "--write"]])
def test_mistakes_are_told(wrong, capsys):
    parser = study.Arguments("A study.", "seed", "seeds", parts=("a", "b"), one_section=True)
    with pytest.raises(SystemExit):
        parser.run(wrong, lambda options: None)
    assert "expected" in capsys.readouterr().err


def test_the_same_figure_gives_the_same_file(tmp_path: Path):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([1, 2])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        study.save_figure(figure, tmp_path / name / "figure.svg")
    first, second = ((tmp_path / name / "figure.svg").read_bytes() for name in ("one", "two"))
    assert first == second


def test_shares_in_percent():
    assert study.percent([0.5]) == "50.00"
    assert study.percent([0.5, 0.7]) == "60.00 ± 14.14"
