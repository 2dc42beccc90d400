"""As much of an ELF file as the GPU tests ask for, where no readelf is: what it exports, and what it calls through slots."""
import mmap
import struct

kSymbols, kRelocations, kFunction, kIndirect = 11, 4, 2, 10
kSlotTypes = (1, 6, 7)  # R_X86_64_64, GLOB_DAT, JUMP_SLOT


class Elf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (offset,) = struct.unpack_from("<Q", self._bytes, 40)
        size, count = struct.unpack_from("<HH", self._bytes, 58)
        self._sections = [struct.unpack_from("<IIQQQQIIQQ", self._bytes, offset + i * size) for i in range(count)]

    def _of_type(self, wanted):
        return [s for s in self._sections if s[1] == wanted]

    def _text(self, at):
        return self._bytes[at:self._bytes.find(b"\0", at)].decode("ascii", "replace")

    def _symbols(self):
        for section in self._of_type(kSymbols):
            names = self._sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _, defined, value, _ = struct.unpack_from("<IBBHQQ", self._bytes, at)
                yield names + name, info, defined, value

    def exported_functions(self):
        """(name, address)"""
        return [(self._text(name), value) for name, info, defined, value in self._symbols() if defined and info & 15 in (kFunction, kIndirect)]

    def exported(self, wanted):
        """Those of the names that it defines, functions or not."""
        wanted = set(wanted)
        return {text for text in (self._text(name) for name, _, defined, _ in self._symbols() if defined) if text in wanted}

    def slots(self, wanted):
        """Those of the names that it reaches through a relocation."""
        wanted, found = set(wanted), set()
        numbers = {i: text for i, text in enumerate(self._text(name) for name, *_ in self._symbols()) if text in wanted}
        for section in self._of_type(kRelocations):
            data = self._bytes[section[4]:section[4] + section[5]]
            found.update(numbers[info >> 32] for _, info, _ in struct.iter_unpack("<QQq", data[:len(data) // 24 * 24])
                         if info >> 32 in numbers and info & 0xFFFFFFFF in kSlotTypes)
        return found
