import pytest

from transforms.text import language


@pytest.fixture(scope="module")
def detector() -> object:
    return language.load()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The quick brown fox jumps over the lazy dog,\nand the dog does not mind.", "en"),
        ("这是一个关于天气的简短句子。", "zh"),
        ("Der schnelle braune Fuchs springt über den faulen Hund.", "de"),
        ("यह हिंदी में लिखा हुआ एक वाक्य है।", "hi"),
        ("هذه جملة مكتوبة باللغة العربية.", "ar"),
    ],
)
def test_common_languages(detector: object, text: str, code: str) -> None:
    found, score = language.identify(text, detector, 0.0)
    assert found == code
    assert 0 < score <= 1


def test_below_the_least_score_a_language_is_undetermined(detector: object) -> None:
    text = "The weather is fine."
    _, score = language.identify(text, detector, 0.0)
    assert language.identify(text, detector, score)[0] == "en"
    assert language.identify(text, detector, min(1.0, score + 1e-6)) == ("und", score)


def test_reads_more_than_the_80_characters_of_the_detectors_own_default(detector: object) -> None:
    text = "0123456789 " * 10 + "Der schnelle braune Fuchs springt über den faulen Hund. " * 20
    assert language.identify(text, detector, 0.0)[0] == "de"


def test_reads_a_bounded_prefix(detector: object) -> None:
    english = "The weather is fine today. " * 200
    chinese = "今天天气很好。" * 100_000
    assert language.identify(english + chinese, detector, 0.0) == language.identify(english, detector, 0.0)


@pytest.mark.parametrize("text", ["...", "1234", "\ufffd", "😀", "a" * 6000])
def test_texts_without_a_language_have_some_answer(detector: object, text: str) -> None:
    code, score = language.identify(text, detector, 0.0)
    assert code
    assert 0 <= score <= 1
