"""The one exception of decoding: an expected failure of one file, to be turned into a reject by the caller."""

from transforms.core.rejects import REASONS


class MediaError(Exception):
    """A file that does not decode, wholly or from some point on.

    Attributes:
      reason: a code of `transforms.core.rejects.REASONS`.
      message: what happened, with the value.
      tail: the decoder's last words; empty where it said nothing.
    """

    def __init__(self, reason: str, message: str, tail: str = "") -> None:
        assert reason in REASONS, reason
        super().__init__(reason, message, tail)
        self.reason, self.message, self.tail = reason, message, tail

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"
