#!/usr/bin/env python3
"""openapi_check.py OPENAPI METHOD PATH STATUS BODY: whether an answer is what openapi.json describes.

PATH is the path of a request; it is found among the templates.  Understands what that document uses."""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def check(document, schema, value, at):
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(isinstance(value, TYPES[n]) and (n == "boolean") == isinstance(value, bool) for n in names):
        yield f"{at}: {type(value).__name__} is not {' or '.join(names)}"
        return
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{at}: no field {name}"
        for name, field in schema.get("properties", {}).items():
            if name in value:
                yield from check(document, field, value[name], f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            yield from check(document, schema["items"], one, f"{at}[{i}]")


def main():
    openapi, method, path, status, body = sys.argv[1:]
    with open(openapi, encoding="utf-8") as file:
        document = json.load(file)
    path = path.split("?")[0]
    found = [t for t in document["paths"] if re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(t)), path)]
    found = [t for t in found if method in document["paths"][t]]
    found.sort(key=lambda t: t.count("{"))
    if not found:
        sys.exit(f"{method} {path} is not described")
    answers = document["paths"][found[0]][method]["responses"]
    if status not in answers:
        sys.exit(f"{method} {path}: {status} is not described")
    schema = answers[status].get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        sys.exit(f"{method} {path}: no schema")
    with open(body, encoding="utf-8") as file:
        wrong = list(check(document, schema, json.load(file), "$"))
    if wrong:
        sys.exit(f"{method} {path}: " + "; ".join(wrong[:5]))


main()
