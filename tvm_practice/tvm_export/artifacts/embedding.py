"""The object file with a module's weights and code, in half of the memory that LLVM takes for it.

TVM has LLVM hold the bytes as a constant and emit them: four copies. An ELF object around them is
a few tables that anyone can write; another format is left to LLVM.
"""

import struct
from pathlib import Path
from typing import Any

_SYMBOL = "__tvm_ffi__library_bin"  # by which TVM's runtime finds the bytes
_ELF = b"\x7fELF\x02\x01"  # of 64 bits, little-endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ENTRY = struct.Struct("<IBBHQQ")
_X86_64, _LARGE, _LARGE_FLAG = 62, 2**30, 0x10000000  # beyond it code cannot reach a plain section


def pack_imports(module: Any, is_system_lib: bool, prefix: str, workspace: str) -> str:
    """What `export_library` takes as fpack_imports: the file it wrote.

    Args:
        module: a tvm.runtime.Module.
        is_system_lib: of a program without dynamic libraries.
        prefix: of the symbol.
        workspace: folder with the module's object files, whose machine this one is for.
    """
    from tvm.runtime import _ffi_api

    file = Path(workspace) / f"{prefix}devc.o"
    code = next(iter(sorted(Path(workspace).glob("lib*.o"))), None)
    header = b"" if code is None else _head(code)
    if header.startswith(_ELF) and not is_system_lib:
        _write(file, prefix + _SYMBOL, _ffi_api.ModulePackImportsToTensor(module), header)
        return str(file)
    [target] = {str(each["_get_target_string"]()) for each in _modules(module, "llvm")}
    packed = _ffi_api.ModulePackImportsToLLVM(module, is_system_lib, target, prefix)
    packed.write_to_file(str(file))
    return str(file)


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_HEADER.size)


def _modules(module: Any, kind: str) -> list[Any]:
    """A module and what it imports, those of one kind."""
    own = [module] if module.kind == kind else []
    return own + [found for each in module.imports for found in _modules(each, kind)]


def _write(file: Path, symbol: str, tensor: Any, like: bytes) -> None:
    """Write an object with one constant, for the machine of another object's header."""
    import numpy as np

    data = np.from_dlpack(tensor)
    identity, _, machine, _, _, _, _, flags, *_ = _HEADER.unpack(like)
    large = machine == _X86_64 and data.nbytes > _LARGE
    names = [".lrodata" if large else ".rodata", ".note.GNU-stack", ".symtab", ".strtab", symbol]
    strings = b"\0" + b"".join(each.encode() + b"\0" for each in names)
    at = {each: strings.index(each.encode() + b"\0") for each in names}
    constant = _ENTRY.pack(at[symbol], 0x11, 0, 1, 0, data.nbytes)  # an object, seen by all
    symbols = bytes(_ENTRY.size) + constant
    begin = _HEADER.size
    tables = -(-(begin + data.nbytes) // 8) * 8
    listed = tables + len(symbols)
    end = -(-(listed + len(strings)) // 8) * 8
    alone = 0x2 | (_LARGE_FLAG if large else 0)  # in memory, read only
    sections = [
        bytes(_SECTION.size),
        _SECTION.pack(at[names[0]], 1, alone, 0, begin, data.nbytes, 0, 0, 1, 0),
        _SECTION.pack(at[names[1]], 1, 0, 0, tables, 0, 0, 0, 1, 0),
        _SECTION.pack(at[names[2]], 2, 0, 0, tables, len(symbols), 4, 1, 8, _ENTRY.size),
        _SECTION.pack(at[names[3]], 3, 0, 0, listed, len(strings), 0, 0, 1, 0),
    ]
    header = (identity, 1, machine, 1, 0, 0, end, flags, _HEADER.size, 0, 0, _SECTION.size, 5, 4)
    with file.open("wb") as stream:
        stream.write(_HEADER.pack(*header))
        stream.write(data.data)
        stream.write(bytes(tables - begin - data.nbytes) + symbols + strings)
        stream.write(bytes(end - listed - len(strings)) + b"".join(sections))
