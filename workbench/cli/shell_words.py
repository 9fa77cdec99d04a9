"""How shells ask for completions and get them: click's mechanism, with scripts that fit ``knob=value`` words.

Click's own scripts put a space behind ``threshold=``, and bash takes ``=`` for the end of a word, so that the words
have to be put together again before anybody looks at them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

PROGRAM = "specwb"
VARIABLE = "_SPECWB_COMPLETE"
"""Set by the scripts: the command line then is not run, but completed."""

SHELLS = ("bash", "zsh", "fish")

_SIGNS = ("=", ":")
"""Where bash breaks words."""

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1 2>/dev/null)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        COMPREPLY+=("$value")
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a response words_found words_shown open_found open_shown
    local type key descr
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \
%(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for type key descr in ${response}; do
        [[ "$descr" == "_" ]] && descr="$key" || descr="$key  $descr"
        if [[ "$key" == *[=/] ]]; then
            open_found+=("$key"); open_shown+=("$descr")
        else
            words_found+=("$key"); words_shown+=("$descr")
        fi
    done
    (( $#words_found )) && compadd -U -l -V words -d words_shown -a words_found
    (( $#open_found )) && compadd -U -l -S '' -V open -d open_shown -a open_found
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


@add_completion_class
class Bash(BashComplete):
    """Bash hands ``spec=au`` and ``shape:ll`` over as three words and replaces only the last of them."""

    source_template: ClassVar[str] = _BASH

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._typed = ""  # what of the word stands before the part that bash replaces

    def get_completion_args(self) -> tuple[list[str], str]:
        args, part = super().get_completion_args()
        words: list[str] = []
        for word in [*args, part]:
            if words and word and (word in _SIGNS or words[-1].endswith(_SIGNS)):
                words[-1] += word
            else:
                words.append(word)
        *args, incomplete = words
        self._typed = incomplete.removesuffix("" if part in _SIGNS else part)
        return args, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value.removeprefix(self._typed)}"


@add_completion_class
class Zsh(ZshComplete):
    """Zsh has whole words; the script only keeps the space away that would follow ``threshold=``."""

    source_template: ClassVar[str] = _ZSH

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type}\n{item.value}\n{item.help or '_'}"


def script_for(shell: str, group: click.Command) -> str:
    """What a shell has to run once to complete our command lines."""
    kind: type[ShellComplete] | None = get_completion_class(shell)
    assert kind is not None, shell
    return kind(group, {}, PROGRAM, VARIABLE).source()


def answer(group: click.Command, instruction: str) -> int:
    """Print what a shell asks for with ``instruction``, such as ``bash_complete``; the exit code."""
    return shell_complete(group, {}, PROGRAM, VARIABLE, instruction)
