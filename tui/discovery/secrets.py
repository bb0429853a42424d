"""Secrets on a command line: masked before they reach a file, a line of JSON or a list.

Recordings and reports are made to be sent to somebody. What is called a secret is masked, and what
has the form of one; `--argv` asks for all. A secret under another name, or behind a letter ("-p"),
cannot be known.
"""

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "***"

_NAME: Final = re.compile(
    r"(?:.*[-_.])?(?:token|secret|password|passwd|passphrase|pwd|credentials?|authorization|auth|"
    r"bearer|cookie|session[-_]?id|dsn|sas|sig|signature|"
    r"(?:api|access|secret|private|auth|account|encryption|signing|license|ssh|wandb|hf)[-_.]?key)"
    r"|[-+]*key",
    re.IGNORECASE,
)
"""A name by its last part: "--hub-token", "WANDB_API_KEY", "db.password". Not "tokens", which are
counted, and not "image_key", which names a column."""
_OPTION: Final = re.compile(r"(?P<name>[\w.+-]{1,200})\s*[=:]\s*(?=\S)")
"""What a word begins with that gives a name its value, as an option, a variable or a header does:
all that follows is the value, whatever it holds."""
_GIVEN: Final = re.compile(
    r"""(?P<name>(?<![\w.+-])[\w.+-]{1,200})["']?\s*[=:]\s*(?:(?:Bearer|Basic)\s+)?(?P<quote>["'])?"""
    r"""(?=(?P<value>(?(quote)(?:\\.|(?!(?P=quote))[^\\])+|[^\s"'&,;}]+)))""",
    re.IGNORECASE | re.DOTALL,
)
"""A name and its value within a word: of a query, a piece of JSON, a header. The value is looked at
only: it may begin with another name. It ends with its quotes, or else where another may begin."""
_IN_ADDRESS: Final = re.compile(r"(?P<before>\w://[^\s/:]*:)[^\s/]+(?=@)")
"""A password in an address: "postgres://user:password@host". It may hold an "@" itself: the host
begins behind the last."""
_FORMS: Final = re.compile(
    r"""
    (?<![A-Za-z0-9])(?:
    hf_[A-Za-z0-9]{20,}                                      # Hugging Face
    | sk-[A-Za-z0-9_-]{16,}                                  # OpenAI, Anthropic
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}        # GitHub
    | glpat-[\w-]{16,}                                       # GitLab
    | xox[abeoprs]-[A-Za-z0-9-]{10,}                         # Slack
    | A(?:KIA|SIA)[0-9A-Z]{16}                               # AWS
    | AIza[\w-]{35} | ya29\.[\w-]{20,}                       # Google
    | wandb_v\d+_\w{20,} | [0-9a-f]{40}                      # Weights & Biases; a commit as well
    | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                        # JSON web token
    | (?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{32,}
    )(?![A-Za-z0-9])
    """,
    re.VERBOSE,
)
LONGEST: Final = 4_096
"""Characters of a word that are searched; what is behind them is left out."""


def masked(argv: Sequence[str]) -> list[str]:
    """The command line without its secrets; its first word is the script's name and stays."""
    words, is_secret = list(argv[:1]), False
    for word in argv[1:]:
        if is_secret and not word.startswith("--"):
            words.append(MASK)
            is_secret = False
            continue
        is_secret = _NAME.fullmatch(word[:LONGEST]) is not None
        words.append(_without_secrets(word[:LONGEST]))
    return words


def _without_secrets(word: str) -> str:
    option = _OPTION.match(word)
    if option is not None and _NAME.fullmatch(option["name"]) is not None:
        return f"{option[0]}{MASK}"
    parts, end = [], 0
    for given in _GIVEN.finditer(word):
        if given.start() >= end and _NAME.fullmatch(given["name"]) is not None:
            parts += [word[end : given.start("value")], MASK]
            end = given.end("value")
    word = "".join((*parts, word[end:]))
    word = _IN_ADDRESS.sub(rf"\g<before>{MASK}", word)
    return _FORMS.sub(MASK, word)
