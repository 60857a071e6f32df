"""`clean.language` of params."""

from scoring.core.config import config


@config
class LanguageConfig:
    """Which languages stay, and when a text is of one language, of two, or undetermined."""

    allow: tuple[str, ...]  # keep only these ISO codes; empty keeps all
    min_score: float  # below it the language, of a text or of a paragraph, is `und`
    min_mixed_ratio: float  # share of the second language from which a text is mixed
    min_paragraph_chars: int  # a shorter paragraph is not judged alone
    max_paragraphs: int  # that are read, evenly spaced

    def __post_init__(self) -> None:
        for name in ("min_score", "min_mixed_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], not {getattr(self, name)}")
        for name in ("min_paragraph_chars", "max_paragraphs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        odd = [code for code in self.allow if not (code.isascii() and code.isalpha() and code.islower())]
        if odd:
            raise ValueError(f"allow takes lower-case ISO codes such as en or zh, not {odd}")
