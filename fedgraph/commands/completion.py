"""``fedgraph completion SHELL``: a script that completes commands, options and shipped scenarios."""

from __future__ import annotations

import argparse

from fedgraph.scenario import shipped

HELP = "print a completion script for bash, zsh or fish"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help='e.g. eval "$(fedgraph completion bash)"')


def run(options: argparse.Namespace) -> int:
    from fedgraph.commands import base as cli

    commands = _options(cli.parser())
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](commands))
    return 0


def _options(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Command → its options and fixed words."""
    found: dict[str, list[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                words = [o for a in sub._actions for o in a.option_strings if o.startswith("--")]
                words += [str(c) for a in sub._actions if not a.option_strings for c in a.choices or ()]
                words += shipped.names() if name in ("run", "cp", "check") else []
                found[name] = words
    return found


def _bash(commands: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(words)}";;' for name, words in commands.items())
    return f"""_fedgraph() {{
  local words="{" ".join(commands)}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _fedgraph fedgraph"""


def _zsh(commands: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)


def _fish(commands: dict[str, list[str]]) -> str:
    lines = [f"complete -c fedgraph -n __fish_use_subcommand -a '{' '.join(commands)}'"]
    for name, words in commands.items():
        if words:
            lines.append(f"complete -c fedgraph -n '__fish_seen_subcommand_from {name}' -a '{' '.join(words)}'")
    return "\n".join(lines)
