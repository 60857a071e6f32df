"""`clean.pii` of params."""

from dataclasses import field
from typing import Literal, get_args

from scoring.core.config import config

Kind = Literal["email", "phone", "ip", "card", "resident_id", "iban", "secret"]


KINDS: tuple[Kind, ...] = ("email", "phone", "ip", "card", "resident_id", "iban", "secret")


_MIN_KEY = 16


@config
class PiiConfig:
    """What is looked for, what becomes of it, and the key of the pseudonyms."""

    mode: Literal["redact", "detect", "off"]  # detect: spans and counts alone; the text stays
    kinds: tuple[Kind, ...]
    key: str = field(repr=False)  # secret: whoever has it can test a guess against a pseudonym
    key_env: str | None  # take the key from this environment variable instead
    private_ips: bool  # also addresses that are private or reserved for documentation

    def __post_init__(self) -> None:
        unknown = sorted(set(self.kinds) - set(get_args(Kind)))
        if unknown or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"kinds must be unique values from {', '.join(KINDS)}, not {list(self.kinds)}")
        if self.mode == "redact" and self.key_env is None and len(self.key) < _MIN_KEY:
            raise ValueError(
                f"key must have at least {_MIN_KEY} characters, or key_env must name an environment variable"
            )
