"""`gpuwatch completion SHELL`: the script that completes gpuwatch's words in a shell (shtab)."""

import argparse
from typing import Any, Final

from .options import Manual, examples
from .output import write_lines

SHELLS: Final = ("bash", "zsh", "fish")
_LIST_PIDS: Final = "gpuwatch ls --json 2>/dev/null | awk -F '[:,]' '{ print $4 + 0 }'"
_LIST_DEMOS: Final = "gpuwatch demo --list"
_FIRST: Final = "2>/dev/null | awk 'NR > 1 { print $1 }'"
"""The first word of every line but the heading."""


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
    write_lines(script(arguments.shell).splitlines())
    return 0


def script(shell: str) -> str:
    """The script for one of `SHELLS`."""
    import shtab

    from .main import parser

    completed: dict[str, Any] = {
        "pid": _listed("pids", _LIST_PIDS),
        "job": _listed("pids", _LIST_PIDS),
        "name": _listed("demos", f"{_LIST_DEMOS} {_FIRST}", f"{_LIST_DEMOS} --gpu {_FIRST}"),
        "file": shtab.glob("*.gpuwatch"),
        "output": shtab.FILE,
        "command": shtab.FILE,
    }
    top = parser()
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for argument in (
                one for command in action.choices.values() for one in command._actions
            ):
                if argument.dest in completed:
                    argument.complete = completed[argument.dest]
    return str(shtab.complete(top, shell))


def _listed(noun: str, words: str, with_gpu: str | None = None) -> dict[str, Any]:
    """What shtab calls to complete an argument by a command's output; another with `--gpu`."""
    name = f"_gpuwatch_{noun}"
    with_gpu = with_gpu or words
    choose = 'case " {line} " in *" --gpu "*) {with_gpu} ;; *) {words} ;; esac'
    bash = choose.format(line="${COMP_WORDS[*]}", with_gpu=with_gpu, words=words)
    zsh = choose.format(line="${words[*]}", with_gpu=with_gpu, words=words)
    fish = f"if contains -- --gpu (commandline -opc); {with_gpu}; else; {words}; end"
    preamble = {
        "bash": f'{name}() {{ compgen -W "$({bash})" -- "$1"; }}',
        "zsh": f'{name}() {{ local -a found; found=(${{(f)"$({zsh})"}}); compadd -a found; }}',
        "fish": f"function {name}; {fish}; end",
    }
    return {"bash": name, "zsh": name, "fish": f"({name})", "preamble": preamble}
