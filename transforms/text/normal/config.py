"""`clean.normalize` of params."""

from typing import Literal

from scoring.core.config import config

Form = Literal["NFC", "NFKC"]


@config
class NormalizeConfig:
    """What the clean text of a row is."""

    unicode_form: Form
    fix_mojibake: bool  # undo UTF-8 that was read as another encoding
