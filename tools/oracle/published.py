#!/usr/bin/env python3
"""published.py FOLDER OUT.json: finds the chat templates in the packages in FOLDER and writes what
Jinja2 makes of each with every conversation, in the form that unit_model_test_template reads.
"""
import ast
import json
import os
import re
import struct
import sys
import tarfile
import zipfile

import conversations
import jinja_oracle


def from_config(name, text):
    config = json.loads(text)
    chat = config.get("chat_template")
    token = lambda key: (config.get(key) or {}).get("content") if isinstance(
        config.get(key), dict) else config.get(key)
    tokens = (token("bos_token"), token("eos_token"))
    for item in chat if isinstance(chat, list) else [{"name": "", "template": chat}] if chat else []:
        yield name + item["name"], item["template"], tokens


def from_c(text):
    """The table of a C++ test: name, then template_str, each one string literal."""
    pattern = r'/\* \.(name|template_str)= \*/\s*(?:u8|U8C\()?((?:"(?:[^"\\]|\\.)*"\s*)+)'
    name = None
    for kind, literal in re.findall(pattern, text):
        value = ast.literal_eval("(" + literal.replace("\n", " ") + ")")
        if kind == "name":
            name = value
        elif name:
            yield "table: " + name, value, ("<s>", "</s>")


def from_python(text):
    """Strings that look like a chat template, by the variable they are assigned to."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        try:
            value = ast.literal_eval(node.value)
        except ValueError:
            continue
        if isinstance(value, str) and "{%" in value and "messages" in value:
            yield node.targets[0].id, value, ("<s>", "</s>")


def gguf_value(data, at, kind):
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    if kind == 8:
        (length,) = struct.unpack_from("<Q", data, at)
        return data[at + 8 : at + 8 + length], at + 8 + length
    if kind == 9:
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            _, at = gguf_value(data, at, inner)
        return None, at
    return data[at : at + sizes[kind]], at + sizes[kind]


def from_gguf(name, data):
    magic, _, _, count = struct.unpack_from("<4sIQQ", data, 0)
    at, chat = 24, None
    for _ in range(count if magic == b"GGUF" else 0):
        key, at = gguf_value(data, at, 8)
        (kind,) = struct.unpack_from("<I", data, at)
        value, at = gguf_value(data, at + 4, kind)
        if key == b"tokenizer.chat_template":
            chat = value.decode()
    if chat:
        yield name, chat, ("<s>", "<|im_end|>")


def from_file(name, path, data):
    base = os.path.basename(path)
    if base == "tokenizer_config.json":
        yield from from_config(name, data())
    elif base.endswith(".jinja"):
        yield f"{name}: {base[:-6]}", data().decode(), ("<s>", "</s>")
    elif base == "test-chat-template.cpp":
        yield from from_c(data().decode())
    elif path.endswith(("/llama_chat_format.py", "unsloth/chat_templates.py")):
        for variable, value, tokens in from_python(data().decode()):
            yield f"{name}: {variable}", value, tokens
    elif base.endswith(".gguf"):
        yield from from_gguf(base, data())


def find(folder):
    for package in sorted(os.listdir(folder)):
        path = os.path.join(folder, package)
        name = re.sub(r"[-_]\d+\.\d+.*", "", package)
        if package.endswith((".tgz", ".tar.gz")):
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile():
                        yield from from_file(
                            name, member.name, lambda m=member: archive.extractfile(m).read())
        elif package.endswith(".whl"):
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    yield from from_file(name, member, lambda m=member: archive.read(m))


def main():
    folder, out = sys.argv[1:]
    rows, seen, failing = [], {}, 0
    for name, template, (bos, eos) in find(folder):
        if template in seen:
            continue
        seen[template] = name
        for case, messages, fields in conversations.all_inputs():
            row = {"name": f"{name}: {case}", "template": template, "messages": messages,
                   "bos_token": bos, "eos_token": eos, **fields}
            rows.append(jinja_oracle.render(row))
            failing += row["output"] is None
    with open(out, "w", encoding="ascii") as file:
        json.dump(rows, file)
    for name in seen.values():
        print("template:", name)
    print(f"{len(seen)} templates, {len(rows)} renderings, {failing} of them refused by Jinja2")


main()
