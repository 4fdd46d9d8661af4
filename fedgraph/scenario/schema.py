"""The JSON schema of a scenario, generated from the same models that validate it.

A task is one of the tasks there are; a method one of the methods, with its own settings; likewise partitions. Where a
model would also accept a number written as text (``1e-6`` in YAML), the schema allows it, because the program does.
"""

from typing import Any, TypeAlias

from pydantic import BaseModel

from fedgraph import plugins
from fedgraph.scenario.read import Scenario
from fedgraph.tasks import load

_Schema: TypeAlias = dict[str, Any]  # JSON: nested as deep as the models are
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# key of a task → package, and the key that names the plugin
_NESTED = {"methods": ("methods", "method"), "method": ("methods", "method"), "partition": ("partition", "partition")}


def whole() -> _Schema:
    """The whole schema.

    Returns:
        JSON schema of draft 2020-12. It refers to nothing outside of itself.
    """
    definitions: _Schema = {}
    found = _model(Scenario, definitions)
    found["properties"]["tasks"]["items"] = {"anyOf": [_task(name, definitions) for name in plugins.usable("tasks")]}
    return {"$schema": _DIALECT, "title": "fedgraph scenario", **found, "$defs": definitions}


def _task(name: str, definitions: _Schema) -> _Schema:
    module = load(name)
    own = _model(module.Params, definitions)
    properties, row_keys = own["properties"], module.TASK.row_keys
    of_task = {} if row_keys is None else _model(row_keys, definitions)["properties"]
    if module.TASK.one_method:
        properties["method"] = {"description": "one method in place of methods"}
    for key, (package, word) in _NESTED.items():
        if key in properties:
            kinds = {"anyOf": [_plugin(package, word, n, definitions, of_task) for n in plugins.usable(package)]}
            told = {k: v for k, v in properties[key].items() if k in ("description", "default")}
            properties[key] = {**properties[key], "items": kinds} if key == "methods" else told | kinds
    properties["task"] = {"const": name, "description": "what to run"}
    properties["label"] = {"type": "string", "description": "unique name of the task in tables; default its kind"}
    properties["datasets"] = {"type": "array", "items": {"type": "string"}, "description": "run on these only; default: all"}
    return {**own, "required": ["task", *own.get("required", [])]}


def _plugin(package: str, word: str, name: str, definitions: _Schema, of_task: _Schema) -> _Schema:
    own = _model(plugins.load(package, name).Params, definitions)
    own["properties"][word] = {"const": name}
    if package == "methods":
        own["properties"].update(of_task)
    return {**own, "required": [word, *own.get("required", [])]}


def _model(model: type[BaseModel], definitions: _Schema) -> _Schema:
    """The model's own schema; what it refers to goes into ``definitions``. Numbers may also be text, as in YAML."""
    found = model.model_json_schema(mode="validation")
    definitions.update(_relaxed(found.pop("$defs", {})))
    found.pop("title", None)
    return {**_relaxed(found), "properties": dict(_relaxed(found.get("properties", {}))), "additionalProperties": False}


def _relaxed(schema: Any) -> Any:
    """Where a number is wanted, ``inf`` and ``1e-6`` written as text are numbers, too."""
    if isinstance(schema, list):
        return [_relaxed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    found = {k: _relaxed(v) for k, v in schema.items()}
    if found.get("type") == "number":
        found["type"] = ["number", "string"]
    return found


def allowed_words(about: _Schema, definitions: _Schema) -> str:
    """What a setting may be, in a few words.

    Args:
        about: Its JSON schema.
        definitions: What it may refer to, by name.

    Returns:
        Such as ``number > 0 | auto``; empty where a few words do not say it.
    """
    if "$ref" in about:
        return allowed_words(definitions[about["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in about:
        return " | ".join(filter(None, dict.fromkeys(allowed_words(one, definitions) for one in about["anyOf"])))
    if "enum" in about or "const" in about:
        return " | ".join(map(str, about.get("enum", [about.get("const")])))
    limits = {"exclusiveMinimum": "> ", "minimum": "≥ ", "exclusiveMaximum": "< ", "maximum": "≤ "}
    said = ", ".join(f"{sign}{about[key]:g}" for key, sign in limits.items() if key in about)
    word = {"boolean": "true | false", "integer": "whole number", "number": "number", "null": "none", "array": "list"}
    return " ".join(filter(None, (word.get(about.get("type", ""), ""), said)))
