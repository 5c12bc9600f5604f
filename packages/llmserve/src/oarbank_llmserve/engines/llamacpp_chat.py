"""Conversations through the template that a GGUF file carries, rendered as its authors meant it: by Jinja.

llama.cpp's own `llama_chat_apply_template` knows some fifty templates by their looks and renders those from memory;
jinja2, which llama-cpp-python brings, renders what the file says. The sandbox is jinja2's own: a template comes with
a model, from anybody. What a template may ask of its surroundings is kept to what depends on no clock and no host, so
`strftime_now` is not there, and templates fall back to the date that they name themselves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from oarbank_llmserve.engines import PromptFault, end_of


class Refused(Exception):
    """A template said no: a role it does not know, an order it does not take."""


@functools.cache  # of one model: a batch asks for each of its prompts
def compiled(template: str | None) -> Callable[..., str] | None:
    """A function of a template's variables; None where there is no template. `PromptFault` when it is broken."""
    if not template:
        return None
    jinja: Any = import_module("jinja2")
    sandbox: Any = import_module("jinja2.sandbox")
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    environment.filters["tojson"] = _to_json
    try:
        return environment.from_string(template).render
    except jinja.TemplateError as fault:
        raise PromptFault(f"the model's chat template is broken: {end_of(fault)}") from None


def rendered(render: Callable[..., str] | None, messages: Sequence[Mapping[str, str]], begin: str, end: str) -> str:
    """The conversation's text, up to where the assistant's answer begins; `begin` and `end` are the model's tokens."""
    if render is None:
        raise PromptFault("the model has no chat template: give the prompt as text")
    try:
        plain = [dict(message) for message in messages]
        return render(messages=plain, add_generation_prompt=True, bos_token=begin, eos_token=end)
    except Exception as fault:  # a template runs anything, and fails in any way
        raise PromptFault(f"the model's chat template refuses these messages: {end_of(fault)}") from None


def _refuse(line: str) -> None:
    raise Refused(line)


def _to_json(value: Any, indent: int | None = None, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
