"""The MLX engine as a guest: it wires nothing, keeps to its memory, fetches nothing, and is done when it returns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve import engines
from oarbank_llmserve.engines import Live, Slicing, mlx, mlx_library
from tests.real_model.mlx_model import write_tiny
from tests.real_model.mlx_sequences import Greedy, read, say

mx: Any = mlx_library.mx

# A device that recommends a working set, as Metal does, and a spy where MLX sets the limit.
_WIRED = """
import sys
import mlx.core as mx

calls = []
mx.set_wired_limit = lambda limit: calls.append(limit) or 0
mx.device_info = lambda: {"max_recommended_working_set_size": 16 << 30}
if sys.argv[1] == "ours":
    from oarbank_llmserve import engines
    from oarbank_llmserve.engines import mlx
    from pathlib import Path
    from tests.real_model.mlx_sequences import say
    engine = mlx.open_engine(engines.Options(Path(sys.argv[2])))
    engine.reserve(4, 64)
    say(engine, ["a", "b", "c"], 4)
from mlx_lm.generate import BatchGenerator, wired_limit
from mlx_lm.utils import load, maybe_set_recommended_wired_limit
model, tokenizer = load(sys.argv[2])
BatchGenerator(model).close()
with wired_limit(model):
    pass
maybe_set_recommended_wired_limit()
print(calls)
"""


@pytest.mark.parametrize(("who", "sets"), [("ours", False), ("mlx-lm alone", True)])
def test_wired_limit_is_never_set_whatever_the_library_tries(tmp_path: Path, who: str, sets: bool) -> None:
    command = [sys.executable, "-c", _WIRED, who, str(write_tiny(tmp_path / "m"))]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)

    assert (ran.stdout.strip() != "[]") is sets  # alone it does: the spy sees what it is there to see


def test_memory_limit_is_the_one_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(mx, "set_memory_limit", limits.append)
    folder = write_tiny(tmp_path / "m")
    mlx.open_engine(engines.Options(folder, memory_gb=1.5)).close()
    mlx.open_engine(engines.Options(folder)).close()

    assert limits == [1_500_000_000]


def test_without_a_grant_it_is_what_the_device_recommends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "device_info", lambda: {"max_recommended_working_set_size": 5_000})
    assert mlx_library.set_memory_limit(None) == 5_000
    monkeypatch.setattr(mx, "device_info", lambda: {"device_name": "a CPU"})
    assert mlx_library.set_memory_limit(None) == mx.get_memory_limit()


ROOMS = [
    # caches of 256 tokens that fit   asked          given
    (1000, (8, 600), (8, 768)),
    (7, (8, 600), (2, 768)),
    (2, (8, 600), (1, 512)),
    (20, (8, 10), (8, 256)),
    (3, (8, 10), (3, 256)),
]


@pytest.mark.parametrize(("blocks", "asked", "given"), ROOMS)
def test_memory_says_how_many_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, asked: tuple[int, int], given: tuple[int, int]
) -> None:
    block = 2 * 2 * 256 * 2 * 8 * 4  # keys and values, layers, tokens, heads, their size, bytes of a float32
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m")))
    monkeypatch.setattr(mx, "get_active_memory", lambda: 1_000_000)
    engine._limit = round((1_000_000 + (blocks + 0.5) * block) / 0.9)

    assert engine.reserve(*asked) == engines.Room(*given)
    engine._limit = 1_000_000
    with pytest.raises(engines.OutOfMemory, match="no memory for a context: 256 tokens take 65536 bytes; 0 are left"):
        engine.reserve(*asked)
    engine.close()


def test_weights_that_are_larger_than_the_grant_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "set_memory_limit", lambda limit: 0)
    folder = write_tiny(tmp_path / "m")
    with pytest.raises(engines.OutOfMemory, match=r"^model m: its weights take 0\.0 GB; 0\.0 GB are granted$"):
        mlx.open_engine(engines.Options(folder, memory_gb=1e-6))


LACKS = [
    (MemoryError(), "out of memory"),
    (RuntimeError("[malloc] Unable to allocate 5 bytes."), "[malloc] Unable to allocate 5 bytes."),
    (
        RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory (00000008)"),
        "[METAL] Command buffer execution failed: Insufficient Memory (00000008)",
    ),
]


@pytest.mark.parametrize(("fault", "said"), LACKS)
def test_lack_of_memory_is_told_from_other_failures(fault: Exception, said: str) -> None:
    with pytest.raises(engines.OutOfMemory, match=re.escape(said)), mlx_library.memory_fence():
        raise fault
    with pytest.raises(RuntimeError, match="shapes"), mlx_library.memory_fence():
        raise RuntimeError("shapes do not match")


class Device:
    """Who asked the device for what, in order; nothing of it is left out of what MLX does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[str] = []
        for name in ("eval", "async_eval", "synchronize"):
            monkeypatch.setattr(mx, name, self._noting(name, getattr(mx, name)))

    def _noting(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if name == "synchronize":
                assert args == (mx.default_stream(mx.default_device()),), "the stream that computed it"
            self.said.append(name)
            return real(*args)

        return call


def test_every_call_and_every_slice_ends_with_the_device_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m")))
    device = Device(monkeypatch)

    def breathe() -> bool:
        assert device.said[-2:] == ["eval", "synchronize"]
        device.said.append("breath")
        return True

    for call in (
        lambda: engine.reserve(4, 64),
        lambda: engine.prefill(0, [1, 2, 3], first=True, last=None),
        lambda: engine.prefill(0, [4, 5, 6], first=False, last=Greedy()),
        lambda: engine.prefill(1, [1, 2, 3], first=True, last=Greedy(), slicing=Slicing(1e-9, breathe)),
        lambda: engine.step([Live(0, 1, Greedy()), Live(1, 2, Greedy())]),
        lambda: engine.step([Live(0, 1, Greedy()), Live(1, 2, Greedy())], Slicing(1e-9, breathe)),
        lambda: engine.step([Live(1, 2, Greedy())]),  # a row becomes a sequence of its own
    ):
        device.said.clear()
        call()
        assert device.said[-2:] == ["eval", "synchronize"]
        assert "async_eval" not in device.said
    device.said.clear()
    engine.drop(0)
    engine.drop(1)
    assert device.said == []
    engine.close()


def test_nothing_is_fetched_and_nothing_printed(tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "socket.socket.connect = socket.getaddrinfo = lambda *args: sys.exit('somebody wants the network')\n"
        "from pathlib import Path\n"
        "from oarbank_llmserve import engines\n"
        "from tests.real_model.mlx_sequences import say\n"
        "engine = engines.load('mlx').open_engine(engines.Options(Path(sys.argv[1])))\n"
        "engine.reserve(2, 64)\n"
        "say(engine, ['a'], 2)\n"
    )
    command = [sys.executable, "-c", code, str(write_tiny(tmp_path / "m"))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_device_and_versions_are_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mlx.device() == ("gpu" if mx.metal.is_available() else "cpu")
    monkeypatch.setattr(mx, "default_device", lambda: mx.gpu)
    assert mlx.device() == "gpu"
    assert set(mlx.versions()) == {"mlx", "mlx-lm"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+.*", version) for version in mlx.versions().values())


def test_long_text_is_no_reason_to_print(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m", train=16)))
    assert len(engine.tokenize("x" * 5000)) == 5000
    engine.reserve(2, 16)
    say(engine, ["abc"], 2)
    read(engine, 0, "abc")
    engine.close()

    assert capfd.readouterr() == ("", "")
