"""`flexure completion`: scripts for shells, made from the parser itself."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from typing import NamedTuple

from flexure.commands.command_output import Report
from flexure.commands.parser import METHODS, make_parser

#: What stands for something that a shell can list, by the name in the help.
_FILES = {"MODEL": "model", "FILE": "file", "FOLDER": "folder"}


class Word(NamedTuple):
    """An option, or a word at a place of its own."""

    spellings: tuple[str, ...]  # how the option is written; empty for a word at a place
    takes: str  # what it is followed by: "nothing", "choice", "model", "file", "folder" or "text"
    choices: tuple[str, ...]  # which, of "choice"
    about: str  # what it is for


class Command(NamedTuple):
    """A command, and the words that may follow it."""

    name: str
    about: str
    words: tuple[Word, ...]


def run(report: Report, arguments: Namespace) -> None:
    """Print the script of a shell."""
    writers = {"bash": bash, "zsh": zsh, "fish": fish}
    report.say(writers[arguments.shell](list(commands(make_parser()))))


def commands(parser: ArgumentParser) -> Iterator[Command]:
    """Go through the commands of a parser, the parser itself first, without a name."""
    yield Command("", "", tuple(_words(parser)))
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            about = {each.dest: each.help or "" for each in action._choices_actions}
            for name, command in action.choices.items():
                yield Command(name, about.get(name, ""), tuple(_words(command)))


def _words(parser: ArgumentParser) -> Iterator[Word]:
    for action in parser._actions:
        if not isinstance(action, _SubParsersAction) and action.help != SUPPRESS:
            choices = METHODS if action.metavar == "METHOD" else tuple(action.choices or ())
            about = " ".join((action.help or "").split()).replace("%%", "%")
            yield Word(tuple(action.option_strings), _takes(action, choices), choices, about)


def _takes(action: Action, choices: tuple[str, ...]) -> str:
    if action.nargs == 0:
        return "nothing"
    return "choice" if choices else _FILES.get(str(action.metavar), "text")


# Shells ------------------------------------------------------------------------------------

_BASH = """\
# Completion of flexure for bash: put it into ~/.bashrc as
#   source <(flexure completion bash)
_flexure() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command="" each
    local IFS=$'\\n'
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $each in {names}) command=$each; break ;; esac
    done
    COMPREPLY=()
    case $command:$before in
{followers}
    esac
    local options="" words="" files=""
    case $command in
{commands}
    esac
    case $word:$files in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *:model) COMPREPLY=($(compgen -f -X '!*.py' -- "$word") $(compgen -d -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    esac
}}
complete -o filenames -F _flexure flexure"""
_BASH_FILES = {
    "file": 'compgen -f -- "$word"',
    "folder": 'compgen -d -- "$word"',
    "model": 'compgen -f -- "$word"',
}


def bash(all_commands: list[Command]) -> str:
    """Return the script for bash."""
    followers, cases = [], []
    for name, _, words in all_commands:
        for word in words:
            if not word.spellings or word.takes == "nothing":
                continue
            pattern = "|".join(f"{name}:{spelling}" for spelling in word.spellings)
            listing = f'compgen -W "{_lines(word.choices)}" -- "$word"'
            listing = _BASH_FILES.get(word.takes, listing if word.choices else "")
            reply = f"COMPREPLY=($({listing})); " if listing else ""
            followers.append(f"        {pattern}) {reply}return ;;")
        options = _lines([spelling for word in words for spelling in word.spellings])
        places = [word for word in words if not word.spellings]
        known = [choice for word in places for choice in word.choices]
        if not name:
            known = [each.name for each in all_commands if each.name]
        files = " files=model" if any(word.takes == "model" for word in places) else ""
        label = name or '""'
        cases.append(f'        {label}) options="{options}" words="{_lines(known)}"{files} ;;')
    names = "|".join(each.name for each in all_commands if each.name)
    return _BASH.format(names=names, followers="\n".join(followers), commands="\n".join(cases))


def _lines(words: tuple[str, ...] | list[str]) -> str:
    return "\n".join(words)


def zsh(all_commands: list[Command]) -> str:
    """Return the script for zsh."""
    (_, _, words), *others = all_commands
    listed = "\n".join(f"        {_zsh_quoted(f'{c.name}:{c.about}')}" for c in others)
    cases = "\n".join(
        f"            {c.name}) _arguments {' '.join(_zsh_word(word) for word in c.words)} ;;"
        for c in others
    )
    return f"""\
#compdef flexure
# Completion of flexure for zsh: write it to a file _flexure in a folder of $fpath, or put into
# ~/.zshrc, behind compinit:
#   source <(flexure completion zsh)
_flexure() {{
    local context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=(
{listed}
    )
    _arguments -C {" ".join(_zsh_word(word) for word in words)} '1: :->command' '*:: :->words'
    case $state in
        command) _describe command commands ;;
        words) case $line[1] in
{cases}
        esac ;;
    esac
}}
if [ "$funcstack[1]" = "_flexure" ]; then _flexure "$@"; else compdef _flexure flexure; fi"""


def _zsh_word(word: Word) -> str:
    about = word.about.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    about = about.replace(":", "\\:")
    lists = {
        "choice": f"({' '.join(word.choices)})",
        "model": '_files -g "*.py"',
        "file": "_files",
        "folder": "_files -/",
        "text": " ",
    }
    follows = "" if word.takes == "nothing" else f": :{lists[word.takes]}"
    if not word.spellings:
        return _zsh_quoted(f"1{follows}")
    return " ".join(_zsh_quoted(f"*{each}[{about}]{follows}") for each in word.spellings)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_FISH_FILES = {
    "file": '__fish_complete_suffix ""',
    "folder": "__fish_complete_directories",
    "model": "__fish_complete_suffix .py",
}


def fish(all_commands: list[Command]) -> str:
    """Return the script for fish."""
    lines = [
        "# Completion of flexure for fish: write it to ~/.config/fish/completions/flexure.fish",
        "complete -c flexure -f",
    ]
    for name, about, words in all_commands:
        where = "__fish_use_subcommand"
        if name:
            lines.append(f"complete -c flexure -n {where} -a {name} -d {_fish_quoted(about)}")
            where = f"__fish_seen_subcommand_from {name}"
        lines += [_fish_word(word, where) for word in words]
    return "\n".join(lines)


def _fish_word(word: Word, where: str) -> str:
    parts = [f"complete -c flexure -n {_fish_quoted(where)}"]
    parts += [f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in word.spellings]
    if word.takes in _FISH_FILES:
        parts.append(f"-x -a '({_FISH_FILES[word.takes]})'")
    elif word.choices:
        parts.append(f"-x -a {_fish_quoted(' '.join(word.choices))}")
    elif word.takes != "nothing":
        parts.append("-x")
    return " ".join([*parts, f"-d {_fish_quoted(word.about)}"])


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
