"""Typed contracts: one model for each document of the wire, generated from the schemas that ship with this package.

The names are loaded when they are asked for, so `catalogue`, `faults` and `rules` work with the standard library alone.
Models need the extra: `pip install 'oarbank-sdk[contracts]'`. Give them values that `oarbank_sdk.strictjson` has read;
then a model and its schema agree about every document. What a schema cannot say is in `judge`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oarbank_sdk.contracts._generated.models import (
        AgentJournal,
        Conformance,
        ConformanceReport,
        DutySpec,
        GpuDutyEvent,
        GpuSample,
        GuardConfig,
        GuardLine,
        LevelCertificate,
        ModuleManifest,
        ResultEnvelope,
        RunnerControl,
        RunnerDoctor,
        RunnerEvent,
        RunnerFailure,
        RunnerSpec,
        ServiceSpec,
        SpecEnvelope,
    )

__all__ = [
    "AgentJournal",
    "Conformance",
    "ConformanceReport",
    "DutySpec",
    "GpuDutyEvent",
    "GpuSample",
    "GuardConfig",
    "GuardLine",
    "LevelCertificate",
    "ModuleManifest",
    "ResultEnvelope",
    "RunnerControl",
    "RunnerDoctor",
    "RunnerEvent",
    "RunnerFailure",
    "RunnerSpec",
    "ServiceSpec",
    "SpecEnvelope",
]

_OF_THE_EXTRA = frozenset({"pydantic", "pydantic_core", "typing_extensions", "annotated_types"})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        models = import_module("oarbank_sdk.contracts._generated.models")
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in _OF_THE_EXTRA:
            raise
        message = "oarbank_sdk.contracts: needs pydantic. Install it: pip install 'oarbank-sdk[contracts]'"
        raise ModuleNotFoundError(message, name=exc.name) from exc
    return getattr(models, name)
