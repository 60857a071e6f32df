"""Names for what torch and transformers make, so that a signature says it and no import waits for them.

A type checker reads the real classes. At run time the names stand for anything: torch alone takes a second to import.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Backend
    from torch import Tensor, device, dtype
    from torch.nn import Module
    from transformers import BaseImageProcessor, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    Device = device
    TensorType = dtype
    Model = PreTrainedModel
    ModelConfig = PreTrainedConfig
    Tokenizer = PreTrainedTokenizerFast
    ImageProcessor = BaseImageProcessor
else:
    Backend = Encoding = Tokenizer = Any
    Device = Module = Tensor = TensorType = Any
    ImageProcessor = Model = ModelConfig = Any

__all__ = [
    "Backend", "Device", "Encoding", "ImageProcessor", "Model", "ModelConfig", "Module", "Tensor",
    "TensorType", "Tokenizer",
]  # fmt: skip
