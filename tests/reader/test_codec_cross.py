#!/usr/bin/python3
"""What the agent's codec writes, the reader reads word for word: test_codec_cross.py PROGRAM (codec_sample)."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rsd import Damaged, codec


def main():
    lines = subprocess.run([sys.argv[1]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    records = refused = 0
    for line in lines:
        sample = json.loads(line)
        data = bytes.fromhex(sample["data"])
        got = [[r.position, r.kind | r.cells << 16 | r.flags << 24 | r.name << 32] + r.words[1:]
               for r in codec.decode(data, 0, sample["last"], sample["base"])]
        assert got == sample["records"], "decoded %r, the codec was given %r" % (
            next((g, s) for g, s in zip(got, sample["records"]) if g != s), "...")
        records += len(got)
        try:
            list(codec.decode(data[:-1], 0, sample["last"], sample["base"]))
        except Damaged:
            refused += 1
    assert records == 2000 and refused == len(lines), (records, refused)
    print("%d records in %d blocks as the codec wrote them; each block without its last byte refused" % (records, len(lines)))


if __name__ == "__main__":
    main()
