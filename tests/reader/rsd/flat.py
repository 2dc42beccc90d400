"""FlatBuffers tables through python3-flatbuffers' runtime alone: a table's shape is the order of its fields in the .fbs file.

    kThing = ["u32 id", "str name", "[Other] others", "struct:Clock clock"]

A field's slot is its place in that list (a union takes two: its type, then its value). What the list says is what is read: no
generated code, so that a wrong .fbs and a wrong writer cannot agree by accident.
"""
import struct

from flatbuffers import number_types
from flatbuffers.table import Table

from . import Damaged

kScalars = {
    "u8": number_types.Uint8Flags, "u16": number_types.Uint16Flags, "u32": number_types.Uint32Flags, "u64": number_types.Uint64Flags,
    "i16": number_types.Int16Flags, "i32": number_types.Int32Flags, "i64": number_types.Int64Flags,
    "f64": number_types.Float64Flags, "bool": number_types.BoolFlags,
}
kFormats = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d"}


class Shape:
    """A table's fields in the order of the .fbs: "type name [= default]"."""

    def __init__(self, name, *fields):
        self.name = name
        self.fields = []
        for field in fields:
            declared, _, default = field.partition(" = ")
            kind, label = declared.split()
            self.fields.append((kind, label, float(default) if kind == "f64" and default else int(default or 0)))


class Struct:
    """A struct's fields; all of ours are naturally aligned, so little-endian without gaps but at the end."""

    def __init__(self, name, *fields, padding=0):
        self.name = name
        self.labels = [f.split()[1] for f in fields]
        self.packed = struct.Struct("<" + "".join(kFormats[f.split()[0]] for f in fields) + "%dx" % padding)

    def read(self, data, position):
        return Row(self.name, dict(zip(self.labels, self.packed.unpack_from(data, position))))


class Row:
    """What was read: a field is an attribute. An absent string is "", an absent vector [], an absent table or struct None."""

    def __init__(self, shape, values):
        self.__dict__.update(values)
        self._shape = shape

    def as_dict(self):
        return {k: v for k, v in self.__dict__.items() if k != "_shape"}

    def __repr__(self):
        return "%s(%s)" % (self._shape, ", ".join("%s=%r" % item for item in self.as_dict().items()))


class Reader:
    """Reads tables of `shapes` (by name) out of one FlatBuffer."""

    def __init__(self, shapes):
        self.shapes = {s.name: s for s in shapes}

    def root(self, data, identifier, shape):
        """@errors Damaged: no such identifier, or an offset that leads out of the buffer"""
        if len(data) < 8 or data[4:8] != identifier:
            raise Damaged("FlatBuffer's identifier is %r, expected %r" % (bytes(data[4:8]), identifier))
        try:
            return self._table(Table(data, struct.unpack_from("<I", data, 0)[0]), self.shapes[shape])
        except (struct.error, IndexError, TypeError, ValueError, OverflowError) as broken:
            raise Damaged("FlatBuffer of %s is broken: %s" % (shape, broken)) from broken

    def _table(self, table, shape):
        values = {}
        slot = 4
        for kind, label, default in shape.fields:
            offset = table.Offset(slot)
            if kind.startswith("union:"):
                which = table.Get(kScalars["u8"], table.Pos + offset) if offset else 0
                value_offset = table.Offset(slot + 2)
                values[label + "_type"] = which
                values[label] = self._union(table, kind, which, value_offset)
                slot += 4
                continue
            values[label] = self._field(table, kind, offset, default)
            slot += 2
        return Row(shape.name, values)

    def _union(self, table, kind, which, offset):
        names = kind.partition(":")[2].split("|")
        if not offset or not 1 <= which <= len(names):
            return None
        return self._table(Table(table.Bytes, table.Indirect(table.Pos + offset)), self.shapes[names[which - 1]])

    def _field(self, table, kind, offset, default):
        if kind.startswith("["):
            return self._vector(table, kind[1:-1], offset)
        if kind == "str":
            return table.String(table.Pos + offset).decode("utf-8", "replace") if offset else ""
        if kind in kScalars:
            return table.Get(kScalars[kind], table.Pos + offset) if offset else (bool(default) if kind == "bool" else default)
        if not offset:
            return None
        shape = self.shapes[kind]
        if isinstance(shape, Struct):
            return shape.read(table.Bytes, table.Pos + offset)
        return self._table(Table(table.Bytes, table.Indirect(table.Pos + offset)), shape)

    def _vector(self, table, kind, offset):
        if not offset:
            return b"" if kind == "u8" else []
        count, start = table.VectorLen(offset), table.Vector(offset)
        if kind in kFormats:
            if start + count * struct.calcsize(kFormats[kind]) > len(table.Bytes):
                raise ValueError("a vector of %d ends beyond the buffer" % count)
            if kind == "u8":
                return bytes(table.Bytes[start:start + count])
            return list(struct.unpack_from("<%d%s" % (count, kFormats[kind]), table.Bytes, start))
        if kind == "str":
            return [table.String(start + 4 * i).decode("utf-8", "replace") for i in range(count)]
        shape = self.shapes[kind]
        if isinstance(shape, Struct):
            return [shape.read(table.Bytes, start + shape.packed.size * i) for i in range(count)]
        return [self._table(Table(table.Bytes, table.Indirect(start + 4 * i)), shape) for i in range(count)]
