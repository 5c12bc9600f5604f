"""What JSON Schema says of a value, as faults with one precise place each.

Differs from the plain `jsonschema` package where that would mislead: `$` in a pattern is the very end, as in ECMA-262;
a float beyond 2^53 is no integer, since it stands for no exact one; a fault sits at the key that is too much; and of
several alternatives only the one that was meant is reported. References lead to the schemas in this package and never
to a network. Needs the extra `oarbank-sdk[contracts]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.faults import Fault, found, nearest, pointer
from oarbank_sdk.strictjson import EXACT

_OF_THE_EXTRA = frozenset({"jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr"})

try:
    from jsonschema import Draft202012Validator, FormatChecker, ValidationError
    from jsonschema.validators import extend
    from jsonschema_specifications import REGISTRY
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012
except ModuleNotFoundError as exc:
    if (exc.name or "").partition(".")[0] not in _OF_THE_EXTRA:
        raise
    message = "oarbank_sdk.contracts: needs jsonschema. Install it: pip install 'oarbank-sdk[contracts]'"
    raise ModuleNotFoundError(message, name=exc.name) from exc

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The one dialect that is read."""

_TYPE_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def schema_faults(kind: str, value: Any) -> list[Fault]:
    """Return what the schema of `kind` refuses in a value, in the schema's order; an empty list when it accepts it."""
    return faults(validator(kind), value)


def faults(checker: Any, value: Any) -> list[Fault]:
    """Return what a validator of this module refuses in a value, in its schema's order."""
    found_: list[Fault] = []
    for error in checker.iter_errors(value):
        leaf = _leaf(error)
        # Alternatives that all want another type are one fault of type.
        rule = "type" if leaf.context else str(leaf.validator)
        fault = Fault(pointer(leaf.absolute_path), rule, _sentence(leaf))
        if fault not in found_:
            found_.append(fault)
    return found_


@cache
def validator(kind: str) -> Any:
    """Return the validator of a contract; raises `catalogue.UnknownKind`."""
    address = catalogue.address(kind)
    catalogue.text(kind)
    # Without `$schema`: on a reference into a document that names one, jsonschema goes back to its stock class, and
    # the keywords below would be lost.
    documents = {doc["$id"]: {k: v for k, v in doc.items() if k != "$schema"} for doc in catalogue.documents()}
    registry = Registry().with_resources((at, DRAFT202012.create_resource(doc)) for at, doc in documents.items())
    return _Validator(documents[address], registry=registry)


def foreign_validator(schema: Any) -> Any:
    """Return the validator of a schema that is no contract of ours: judged before, and it refers to nothing outside."""
    kept = {key: value for key, value in schema.items() if key != "$schema"} if isinstance(schema, dict) else schema
    return _Foreign(kept, registry=REGISTRY)


@cache
def dialect_validator() -> Any:
    """Return the validator of schemas themselves, regular expressions included."""
    return Draft202012Validator(
        Draft202012Validator.META_SCHEMA, registry=REGISTRY, format_checker=FormatChecker(["regex"])
    )


def unresolved(schema: Any) -> Iterator[str]:
    """Yield the references of a schema that lead to no place in it, nor to the dialect's own schemas."""
    root = DRAFT202012.create_resource(schema)
    yield from _unresolved(root, REGISTRY.resolver_with_root(root))


def _unresolved(resource: Resource[Any], resolver: Any) -> Iterator[str]:
    if isinstance(resource.contents, dict):
        for keyword in ("$ref", "$dynamicRef"):
            if (reference := resource.contents.get(keyword)) is None:
                continue
            try:
                resolver.lookup(reference)
            except (Unresolvable, ValueError):
                yield reference
    for inner in resource.subresources():
        yield from _unresolved(inner, resolver.in_subresource(inner))


def _pattern(checker: Any, wanted: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if checker.is_type(instance, "string") and not _compiled(wanted).search(instance):
        yield ValidationError(f"must match {wanted}")


@cache
def _compiled(wanted: str) -> re.Pattern[str]:
    # Python's `$` also matches before a final newline; ECMA's does not.
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", wanted))


def _required(checker: Any, names: list[str], instance: Any, schema: Any) -> Iterator[ValidationError]:
    if checker.is_type(instance, "object"):
        for name in names:
            if name not in instance:
                yield ValidationError(f"must have {name}; found none")


def _additional(checker: Any, extra: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if extra is not False or "patternProperties" in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](checker, extra, instance, schema)
        return
    known = schema.get("properties", {})
    if checker.is_type(instance, "object"):
        for name in instance:
            if name not in known:
                yield ValidationError(f"must be a known key; found {found(name)}{nearest(name, known)}", path=[name])


def _property_names(checker: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if checker.is_type(instance, "object"):
        for name in instance:
            for error in checker.descend(instance=name, schema=names):
                error.relative_path.appendleft(name)
                yield error


def _is_integer(checker: Any, instance: Any) -> bool:
    if isinstance(instance, float):
        return instance.is_integer() and abs(instance) <= EXACT
    return isinstance(instance, int) and not isinstance(instance, bool)


_Validator = extend(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "required": _required,
        "additionalProperties": _additional,
        "propertyNames": _property_names,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


# Schemas of others are read as the dialect says; only sentences and places are ours.
_Foreign = extend(Draft202012Validator, {"required": _required, "additionalProperties": _additional})


def _leaf(error: ValidationError) -> ValidationError:
    """Follow alternatives down to the one that was meant: the branch that fits the deepest."""
    while error.context:
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        meant = [errors for errors in branches.values() if not _is_wrong_type(errors)]
        if len(meant) != 1:
            return error
        error = meant[0][0]
    return error


def _is_wrong_type(errors: list[ValidationError]) -> bool:
    return any(error.validator == "type" and not error.relative_path for error in errors)


def _sentence(error: Any) -> str:
    rule, wanted = error.validator, error.validator_value
    if rule in ("required", "additionalProperties"):
        return error.message
    return f"must {_must(error, rule, wanted)}; found {_found(error)}"


def _must(error: Any, rule: Any, wanted: Any) -> str:
    if error.context:
        wanted_types = [inner.validator_value for inner in error.context if inner.validator == "type"]
        flat = [name for one in wanted_types for name in ([one] if isinstance(one, str) else one)]
        return f"be {_words(list(dict.fromkeys(flat)))}" if flat else f"fit one of the alternatives of {rule}"
    if rule is None:
        return "not be there"
    if rule == "type":
        return f"be {_words([wanted] if isinstance(wanted, str) else wanted)}"
    if rule in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        return f"be {_range(error.schema)}"
    if rule == "enum":
        return f"be one of {', '.join(found(one) for one in wanted)}"
    if rule == "const":
        return f"be {found(wanted)}"
    if rule == "pattern":
        return f"be {_described(error.schema)}" if "description" in error.schema else f"match {wanted}"
    return _MUST.get(rule, "hold to {rule} {wanted}").format(rule=rule, wanted=wanted)


def _described(schema: Any) -> str:
    """Return a schema's description as it follows the word "be"; people read it better than a pattern."""
    text = schema["description"].split(";")[0].removesuffix(".")
    return text[:1].lower() + text[1:]


_MUST = {
    "minLength": "have at least {wanted} character(s)",
    "maxLength": "have at most {wanted} characters",
    "minItems": "have at least {wanted} item(s)",
    "maxItems": "have at most {wanted} items",
    "format": "be a {wanted}, of the kind that ECMA-262 and Python share",
}


def _words(types: list[str]) -> str:
    words = [_TYPE_WORDS[one] for one in types]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _range(schema: Any) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f"from {low} to {high}" if low != high else f"{low}"
    bounds = [("at least", low), ("above", above), ("at most", high), ("below", below)]
    return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


def _found(error: Any) -> str:
    value = error.instance
    if (error.validator == "type" or error.context) and isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if error.validator in ("maxLength", "minLength", "maxItems", "minItems") and len(value) > 20:
        return f"{len(value)}"
    return found(value)
