"""A second reader of Ringside's dumps (.rsd) and job indexes (.rsj), written from schema/README.md and the .fbs files alone.

flat (tables by hand-written slots) <- frames (magic, length, checksum) <- codec (records out of a block) <- dump (one node's file)
<- events (ranges, RPC halves, contexts out of records) <- index (a job: its dumps and what joins them).
"""


class Damaged(Exception):
    """A file that is not what the specification says; the text names the file, the place and the cause."""
