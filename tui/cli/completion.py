"""`gpuwatch completion SHELL`: the script that completes gpuwatch's words in a shell."""

import argparse
from pathlib import Path
from typing import Any, Final

from .options import Manual, examples
from .output import write_lines

SCRIPTS: Final = Path(__file__).resolve().parent.parent / "completion"
SHELLS: Final = ("bash", "zsh", "fish")


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "completion",
        help="complete gpuwatch's words in bash, zsh or fish",
        description="Print the script that completes commands, options and process ids. It asks "
        "`gpuwatch ls` for the processes, each time the tab key is pressed.",
        epilog=examples(
            ('eval "$(gpuwatch completion bash)"', "in ~/.bashrc"),
            ('eval "$(gpuwatch completion zsh)"', "in ~/.zshrc, after compinit"),
            ("gpuwatch completion fish | source", "in ~/.config/fish/config.fish"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    text = (SCRIPTS / f"gpuwatch.{arguments.shell}").read_text(encoding="utf-8")
    write_lines(text.splitlines())
    return 0
