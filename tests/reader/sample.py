"""Dumps for the reader's own tests: FlatBuffers by flatc out of JSON and the real .fbs files, blocks byte by byte by hand.

Neither uses the reader's shapes nor its codec: what it gets wrong shows.
"""
import json
import os
import subprocess
import tempfile

from rsd import frames

kSchemaDir = os.environ.get("RINGSIDE_SCHEMA", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema"))


def flatbuffer(schema, value):
    """`value` (as JSON) as a binary of schema/`schema`.fbs."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "value.json")
        with open(source, "w") as out:
            json.dump(value, out)
        done = subprocess.run(["flatc", "--binary", "-o", folder, "-I", kSchemaDir, os.path.join(kSchemaDir, schema + ".fbs"), source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise AssertionError("flatc: " + done.stdout)
        made = [f for f in os.listdir(folder) if not f.endswith(".json")]
        with open(os.path.join(folder, made[0]), "rb") as binary:
            return binary.read()


def chunk(kind, **fields):
    return frames.frame(flatbuffer("dump", {"body_type": kind, "body": fields}), frames.kDumpMagic)


def index(**fields):
    return frames.frame(flatbuffer("job", fields), frames.kJobMagic)


def header(**fields):
    base = {"version": 1, "min_reader": 1, "node": "n0", "host": "h", "calibration": {
        "reference_ticks": 1000, "reference_ns": 5000, "ticks_per_second": 2e9, "ticks_source": "Tsc"}}
    base.update(fields)
    return chunk("FileHeader", **base)


def process(index_=0, **fields):
    return chunk("Process", index=index_, pid=42, sources=[{"id": 1, "level": "Full"}], **fields)


def names(process_=0, **texts):
    """names(n1="aten::add") gives id 1 its text."""
    return chunk("Names", process=process_, names=[{"id": int(k[1:]), "text": v} for k, v in texts.items()])


def block(data, records, first=0, last=None, cells=0, **fields):
    base = {"process": 0, "lane": 0, "generation": 1, "tid": 42, "first": first, "last": first + cells if last is None else last,
            "base_ticks": 1000, "records": records, "data": list(data)}
    base.update(fields)
    return base


def blocks(*given):
    return chunk("Blocks", blocks=list(given))


def totals(kept, lane=0, generation=1, **fields):
    base = {"process": 0, "lane": lane, "generation": generation, "written": kept, "kept": kept}
    base.update(fields)
    return base


def footer(*lanes, fate="Running", **fields):
    base = {"lanes": list(lanes), "processes": [{"process": 0, "fate": fate}], "records": sum(l["kept"] for l in lanes),
            "lost": sum(l.get("lost", 0) for l in lanes)}
    base.update(fields)
    return chunk("Footer", **base)


def varint(value):
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def zigzag(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def write(folder, name, *parts):
    path = os.path.join(folder, name)
    with open(path, "wb") as out:
        out.write(b"".join(parts))
    return path
