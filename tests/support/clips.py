"""Small media made on the spot by ffmpeg's own generators and encoders, and how tests look into decoded ones."""

import io
import subprocess
import wave
from pathlib import Path

import numpy as np
from PIL import Image

from transforms.decode import tool
from transforms.decode.config import AudioConfig, ImageConfig, VideoConfig

IMAGE = ImageConfig(max_side=512, max_pixels=100_000_000, format="jpeg", quality=92, background="white")
AUDIO = AudioConfig(sample_rate_hz=16_000, segment_s=300.0, timeout_s=60.0)
VIDEO = VideoConfig(fps=1.0, segment_s=60.0, max_side=512, timeout_s=60.0)


def make(path: Path, *args: str) -> Path:
    """Returns `path`, written by ffmpeg with `args`."""
    subprocess.run([tool.ffmpeg(), "-nostdin", "-y", "-v", "error", *args, str(path)], check=True, timeout=60)
    return path


def lavfi(source: str) -> list[str]:
    """Returns the arguments that make a generator an input."""
    return ["-f", "lavfi", "-i", source]


def pixels(data: bytes) -> np.ndarray:
    """Returns the (h, w, 3) float64 pixels of an encoded RGB picture."""
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.mode == "RGB"
        return np.asarray(picture).astype(np.float64)


def samples(wav: bytes) -> np.ndarray:
    """Returns the (n,) int16 samples of a 16 kHz mono WAV file."""
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)
