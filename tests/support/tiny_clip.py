"""An untrained CLIP, small enough for a test, with a tokenizer and an image processor of its own."""

from pathlib import Path
from typing import Any

import torch
import transformers as tf
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

WORDS = ("<unk>", "<pad>", "<s>", "</s>", "a", "hill", "river", "under", "the", "bridge", "of", "stone")
MAX_TOKENS = 8


def save(folder: Path, *, processor: bool = True, pad: bool = True) -> Path:
    """Returns `folder` with the model's files in it; without `processor` the image processor's are missing."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        tf.utils.logging.disable_progress_bar()
        _model().save_pretrained(folder)
    tokenizer(pad=pad).save_pretrained(folder)
    if processor:
        CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}).save_pretrained(folder)
    return folder


def _model() -> Any:
    small = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 1}
    config = tf.CLIPConfig(
        text_config={**small, **ids, "vocab_size": len(WORDS), "max_position_embeddings": MAX_TOKENS},
        vision_config={**small, "image_size": 16, "patch_size": 8},
        projection_dim=12,
    )
    return tf.CLIPModel(config).eval()


def tokenizer(*, pad: bool = True) -> Any:
    """Returns a tokenizer of whole words between <s> and </s>."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    backend = Tokenizer(models.WordLevel({w: k for k, w in enumerate(WORDS)}, unk_token="<unk>"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        pad_token="<pad>" if pad else None, model_max_length=MAX_TOKENS,
    )  # fmt: skip
