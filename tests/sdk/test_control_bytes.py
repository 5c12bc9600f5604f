"""Any bytes as control.json: no exception, and never a looser duty than the document's own word.

`benchmarks/fuzz_control.py` does the same a million times with damaged documents.
"""

from __future__ import annotations

import json
import math

from hypothesis import example, given
from hypothesis import strategies as st

from oarbank_sdk.control import _state

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=4), scalars, max_size=3)
names = st.sampled_from(["seq", "stop", "pause", "threads", "gpu_duty", "checkpoint", "reason"]) | st.text(max_size=6)
shares = st.floats(-0.5, 1.5) | st.sampled_from([0, 1, -1, 2, 1e400, -1e400, 10**400, True, False, "0.3", None, [0.3]])
documents = st.fixed_dictionaries({"seq": st.integers(-2, 9) | scalars}, optional={"gpu_duty": shares | values})
any_documents = documents | st.dictionaries(names, values, max_size=7)


@given(st.binary(max_size=200), st.integers(-1, 5))
@example(b"", -1)
@example(b'{"seq": 1' + b"0" * 5000 + b"}", -1)
@example(b'{"seq": 1, "x": ' + b"[" * 100_000, -1)
@example(b'\xef\xbb\xbf{"seq": 1}', -1)
def test_any_bytes_are_read_without_an_exception(data, applied):
    _state(data, applied)


@given(any_documents, st.integers(-1, 5), st.integers(0, 200))
def test_a_damaged_document_is_read_without_an_exception(document, applied, cut):
    _state(json.dumps(document).encode()[:cut], applied)


@given(any_documents, st.integers(-1, 5))
def test_what_is_applied_is_newer_and_never_looser_than_its_word(document, applied):
    state = _state(json.dumps(document).encode(), applied)
    if state is None:
        return
    said, duty = document.get("gpu_duty"), state["gpu_duty"]
    assert state["seq"] > applied
    assert state["threads"] is None or state["threads"] >= 1
    assert state["stop"] is (document.get("stop") is True)
    if said is None:
        assert duty is None
    elif type(said) in (int, float) and (type(said) is int or math.isfinite(said)):
        assert duty == min(max(said, 0), 1)
    else:
        assert duty == 0.0
        assert state["gpu_duty_fault"]
