"""Section `clean` of params."""

from collections.abc import Mapping

from scoring.core.config import config
from transforms.text.decontaminate.config import DecontaminateConfig
from transforms.text.language.config import LanguageConfig
from transforms.text.normal.config import NormalizeConfig
from transforms.text.pii.config import PiiConfig
from transforms.text.rules.config import C4Config, FinewebConfig, GopherConfig, RepetitionConfig, Words


@config
class BoilerplateConfig:
    """When a line is boilerplate of its source, and whether it is removed."""

    min_docs: int  # distinct documents of the source that have it; 0 looks for none
    min_doc_ratio: float  # the same as a share of the source's distinct documents
    min_chars: int  # shorter lines never are
    remove: bool  # false: counted only
    skip_sources: tuple[str, ...]  # sources whose repeated lines carry meaning, such as code

    def __post_init__(self) -> None:
        if self.min_docs < 0 or self.min_docs == 1:
            raise ValueError(f"min_docs must be 0 (off) or at least 2, not {self.min_docs}")
        if not 0 <= self.min_doc_ratio <= 1:
            raise ValueError(f"min_doc_ratio must be in [0, 1], not {self.min_doc_ratio}")
        if self.min_chars < 1:
            raise ValueError(f"min_chars must be at least 1, not {self.min_chars}")


@config
class CleanConfig:
    """What the clean text is, which languages stay, and the thresholds of the rules."""

    normalize: NormalizeConfig
    boilerplate: BoilerplateConfig
    language: LanguageConfig
    words: Words  # of scripts without spaces
    pii: PiiConfig
    decontaminate: DecontaminateConfig
    gopher: GopherConfig
    repetition: RepetitionConfig
    c4: C4Config
    fineweb: FinewebConfig
    extra: Mapping[str, float]  # code of a rule of transforms/text/extra → its threshold

    def __post_init__(self) -> None:
        if not self.extra:
            return
        from transforms.text import extra

        unknown = sorted(set(self.extra) - set(extra.modules()))
        if unknown:
            raise ValueError(f"unknown extra rules {unknown}; available: {', '.join(extra.modules())}")
