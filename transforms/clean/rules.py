"""The rules of stage `clean`, and every reason for which it drops a row."""

from collections.abc import Mapping

from transforms.core.rules import Rule
from transforms.text import extra
from transforms.text.decontaminate import rules as decontaminate
from transforms.text.rules import listed

RULES: tuple[Rule, ...] = (
    *listed.GOPHER, *listed.REPETITION, *listed.C4, *listed.FINEWEB, *decontaminate.RULES,
    *(module.RULE for module in extra.modules().values()),
)  # fmt: skip

# Every reason code of this stage, in the order in which a row lists them.
REASONS: Mapping[str, str] = {
    "empty": "the text has no words",
    **{rule.code: rule.sentence for rule in RULES},
    "language_not_allowed": "the language is not in `language.allow`",
}
