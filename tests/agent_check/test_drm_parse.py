"""What each DRM driver's fdinfo means: time of a client, nothing yet, another source's, or unknown with what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.sources.drm_parse import client_of, denied, parse_fdinfo

PCI = "drm-pdev: 0000:03:00.0\n"
ID = "drm-client-id: 7\n"


def client(text: str, **more):
    return client_of(4, parse_fdinfo(text.encode()), **more)


def times(text: str) -> dict[str, int]:
    return {counter.engine: counter.value for counter in client(text).counters}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        # i915: the count of engines is no engine, a longer name is another engine, drm-total- is memory.
        (
            "drm-driver: i915\n" + PCI + ID + "drm-engine-video: 5 ns\ndrm-engine-capacity-video: 2\n"
            "drm-engine-video-enhance: 7 ns\ndrm-total-system0: 6044 KiB\n",
            {"video": 5, "video-enhance": 7},
        ),
        ("drm-driver:\tamdgpu\n" + PCI + ID + "drm-engine-enc:\t1 ns\ndrm-engine-enc_1:\t2 ns\n",
         {"enc": 1, "enc_1": 2}),
        ("drm-driver: v3d\n" + ID + "drm-engine-bin: \t9 ns\nv3d-jobs-bin: \t3 jobs\n", {"bin": 9}),
        ("drm-driver: etnaviv\n" + ID + "drm-engine-2D/3D: 9 ns\n", {"2D/3D": 9}),
        # msm: nanoseconds come first; cycles over a top clock are work, not time.
        (
            "drm-driver: msm\n" + ID + "drm-engine-gpu: 9 ns\ndrm-cycles-gpu: 800\ndrm-maxfreq-gpu: 8 Hz\n",
            {"gpu": 9},
        ),
        ("drm-driver: panthor\n" + ID + "drm-engine-panthor: 4 ns\ndrm-cycles-panthor: 1\n", {"panthor": 4}),
        ("drm-driver: panfrost\n" + ID + "drm-engine-fragment: 4 ns\ndrm-engine-vertex-tiler: 5 ns\n",
         {"fragment": 4, "vertex-tiler": 5}),
        ("drm-driver: amdxdna_accel_driver\n" + PCI + ID + "drm-engine-npu-amdxdna: 40 ns\n", {"npu-amdxdna": 40}),
        ("drm-driver: later\n" + ID + "drm-engine-unheard-of: 40 ns\n", {"unheard-of": 40}),
        # amdgpu: an engine is printed once it was used; the client is there without one.
        ("drm-driver: amdgpu\n" + PCI + ID + "drm-memory-vram: 1 KiB\n", {"": 0}),
    ],
)  # fmt: skip
def test_engines_by_driver(text, right):
    assert times(text) == right
    assert client(text).unknown is None


def test_xe_gives_ticks_with_the_devices_clock_and_capacity():
    text = "drm-driver: xe\n" + PCI + ID + "drm-cycles-ccs: 5\ndrm-total-cycles-ccs: 900\ndrm-engine-capacity-ccs: 4\n"
    (counter,) = client(text, t=3.0).counters
    assert (counter.engine, counter.value, counter.total, counter.capacity) == ("ccs", 5, 900, 4)
    assert (counter.device, counter.client, counter.t) == ("0000:03:00.0", "0000:03:00.0:7", 3.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pdev:\t0000:08:00.0\nvram mem:\t9 kB\ngfx0:\t12.5%\n", "Use Linux 5.19 or newer"),
        ("pdev:\t0000:08:00.0\ngfx0:\t0.3%\n", "percentages of an unknown window"),
        ("drm-driver: panthor\n" + ID + "drm-maxfreq-panthor: 1000 Hz\n", "echo 3 > /sys/bus/platform/drivers/panthor"),
        ("drm-driver: panthor\n" + ID + "drm-cycles-panthor: 1000\n", "profiling"),
        ("drm-driver: panfrost\n" + ID, "echo 1 > /sys/bus/platform/drivers/panfrost"),
        ("drm-driver: nouveau\n" + ID + "drm-memory-vram: 1 KiB\n", "nvml"),
        ("drm-driver: virtio_gpu\n" + ID, "Measure on the host"),
        ("drm-driver: i915\n" + PCI + ID, "generation 8"),
        ("drm-driver: xe\n" + PCI + ID + "drm-total-vram0: 5 KiB\n", "could not be woken"),
        ("drm-driver: ast\n" + PCI + ID, "ast tells no engine time"),
        ("drm-driver: amdgpu\n" + PCI + ID, "could not lock"),
        ("drm-driver: i915\n" + PCI + "drm-engine-render: 5 ns\n", "no client id"),
        ("drm-driver: i915\n" + PCI + ID + "drm-engine-render: -5 ns\n", "the time of engine 'render' is no number"),
        ("drm-driver: i915\n" + PCI + ID + "drm-engine-render: 5 us\n", "is no number"),
        ("drm-driver: xe\n" + PCI + ID + "drm-cycles-rcs: 5\ndrm-total-cycles-rcs: ?\n", "is no number"),
        ("pos: 0\nflags: 02\n", "tells nothing of this client"),
        ("", "tells nothing of this client"),
    ],
)
def test_what_tells_no_time_is_unknown_with_a_reason(text, says):
    found = client(text)
    assert found.counters == ()
    assert says in found.unknown.reason


def test_nvidias_driver_is_another_sources():
    assert client("drm-driver: nvidia-drm\n").elsewhere == "nvml"
    assert client("pos: 0\n", driver="nvidia").elsewhere == "nvml"


def test_one_client_is_known_by_its_device_and_id():
    on = "drm-engine-a: 1 ns\n"
    pci = client("drm-driver: i915\n" + PCI + ID + on, node="226:128")
    assert pci.client == client("drm-driver: i915\n" + PCI + ID + on, node="226:0").client
    other = "drm-driver: i915\ndrm-pdev: 0000:04:00.0\n" + ID + on
    assert pci.client != client(other).client
    v3d = "drm-driver: v3d\nino: 9\n" + ID + on
    assert client(v3d).client == client(v3d).client
    assert client(v3d, node="226:1").client != client(v3d, node="226:0").client


def test_errors_of_the_system_say_what_to_do():
    assert "another user's process" in denied(4, 13).reason
    assert "(EIO)" in denied(4, 5).reason
    assert "(error 9999)" in denied(4, 9999).reason


KEYS = ["drm-driver", "drm-pdev", "drm-client-id", "drm-engine-", "drm-engine-a", "drm-engine-capacity-a", "ino",
        "drm-cycles-a", "drm-total-cycles-a", "drm-memory-vram", "pdev", "gfx0"]  # fmt: skip
VALUES = ["amdgpu", "xe", "i915", "5 ns", "0", "", "7%", "-1", "9" * 40, "1 ns x", "\0"]


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES))))
def test_any_lines_are_a_client_or_a_reason(lines):
    found = client("".join(f"{key}:\t{value}\n" for key, value in lines))
    assert bool(found.counters) + (found.unknown is not None) + bool(found.elsewhere) == 1
    assert all(counter.value >= 0 for counter in found.counters)


@given(st.binary(max_size=300))
def test_any_bytes_are_read(text):
    found = client_of(4, parse_fdinfo(text))
    assert found.counters == () or found.unknown is None
