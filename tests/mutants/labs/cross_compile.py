"""Wrong solutions of lab 3. Several are the reference with one thing changed."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("target_for", message="no mtriple, which means this machine")
def names_the_processor_alone(machine):
    from solutions.labs.cross_compile import target_for as right

    target = right(machine)
    if not machine.startswith("x86"):
        del target["mtriple"]
    return target


@mutant("target_for", message="(?s)without prefer-256-bit.*mattr is left out")
def leaves_the_halved_registers(machine):
    from solutions.labs.cross_compile import target_for as right

    target = right(machine)
    if machine == "x86-64-v4":
        del target["mattr"]
    return target


@mutant("target_for", message="wasm32: with simd128")
def forgets_the_vectors_of_wasm(machine):
    from solutions.labs.cross_compile import target_for as right

    target = right(machine)
    if machine == "wasm32":
        del target["mattr"]
    return target


@mutant("target_for", message="ValueError for a machine that is not in the table")
def takes_any_other_for_wasm(machine):
    from solutions.labs.cross_compile import target_for as right

    try:
        return right(machine)
    except ValueError:
        return right("wasm32")


@mutant("target_for", message="a dictionary whose kind is llvm")
def writes_a_string(machine):
    return f"llvm -mcpu={machine}"


@mutant("describe_target", message="of mtriple x86_64-linux-gnu mcpu haswell")
def looks_the_processor_up(target):
    architecture = target.get("mtriple", "x86_64").partition("-")[0]
    bits = 512 if "512" in target.get("mcpu", "") else 128
    return {"architecture": architecture, "vector_bits": bits, "fma": bits == 512}


@mutant("describe_target", message="mcpu sandybridge")
def takes_avx_for_fma(target):
    from solutions.labs.cross_compile import describe_target as right

    described = right(target)
    if described["architecture"] == "x86_64":
        described["fma"] = described["vector_bits"] > 128
    return described


@mutant("describe_target", message="256.* of mtriple x86_64-linux-gnu mcpu haswell")
def takes_the_width_that_tvm_assumes(target):
    import tvm
    from tvm.target import codegen

    from solutions.labs.cross_compile import describe_target as right

    width = codegen.llvm_get_vector_width(tvm.target.Target(target))
    return {**right(target), "vector_bits": int(width)}


@mutant("describe_target", message="mattr, which takes fma away")
def ignores_the_features_given(target):
    from solutions.labs.cross_compile import describe_target as right

    return right({key: value for key, value in target.items() if key != "mattr"})


@mutant("describe_target", message="of mtriple aarch64")
def asks_all_for_x86s_features(target):
    import tvm
    from tvm.target import codegen

    resolved = tvm.target.Target(target)
    avx512, avx, fma = (
        bool(codegen.llvm_cpu_has_features(feature, resolved))
        for feature in ("avx512f", "avx", "fma")
    )
    architecture = target.get("mtriple", "x86_64").partition("-")[0]
    bits = 512 if avx512 else 256 if avx else 128
    return {"architecture": architecture, "vector_bits": bits, "fma": fma}


@mutant("compile_object", message="(?s)an object file of (aarch64|wasm32).*seen: +(x86_64|aarch64)")
def compiles_for_this_machine(module, target, path):
    import tvm

    library = tvm.compile(module, target={"kind": "llvm"})
    library.mod.write_to_file(path, "o")
    return str(library.mod.inspect_source("asm"))


@mutant("compile_object", message="seen: +no object file")
def writes_the_assembly(module, target, path):
    import tvm

    library = tvm.compile(module, target=tvm.target.Target(target))
    library.mod.write_to_file(path, "asm")
    return str(library.mod.inspect_source("asm"))


@mutant("compile_object", message="LLVM's IR, before it chose instructions")
def returns_the_ir(module, target, path):
    import tvm

    library = tvm.compile(module, target=tvm.target.Target(target))
    library.mod.write_to_file(path, "o")
    return str(library.mod.inspect_source("ll"))


@mutant("compile_object", message="mcpu and mattr select the instructions")
def drops_processor_and_features(module, target, path):
    from solutions.labs.cross_compile import compile_object as right

    return right(module, {key: target[key] for key in ("kind", "mtriple")}, path)


@mutant("vector_arithmetic", message="ss: one float")
def counts_single_floats(loop):
    import re

    counts: dict[str, int] = {}
    for line in loop:
        found = re.match(r"v?(mul|add|fma)(?:dd\d+)?[sp]s .*%([xyz]mm)", line)
        if found:
            key = f"{found[1]} {found[2]}"
            counts[key] = counts.get(key, 0) + 1
    return counts


@mutant("vector_arithmetic", message="mulps and vmulps")
def knows_avx_only(loop):
    from solutions.labs.cross_compile import vector_arithmetic as right

    return right([line for line in loop if not line.startswith(("mulps", "addps"))])


@mutant("vector_arithmetic", message="fmla, also by one element")
def counts_no_products_by_an_element(loop):
    from solutions.labs.cross_compile import vector_arithmetic as right

    return right([line for line in loop if ".s[" not in line])


@mutant("vector_arithmetic", message="the first operand: s0 is one float")
def counts_any_register_of_aarch64(loop):
    import re

    from solutions.labs.cross_compile import vector_arithmetic as right

    return right([re.sub(r"^(f\w+) (s\d+|v\d+\.2d)", r"\1 v0.4s", line) for line in loop])


@mutant("c_harness", message="__tvm_ffi_ and its name")
def calls_the_function_by_its_name(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("__tvm_ffi_", "")


@mutant("c_harness", message="the message: TVM's function checks each DLTensor")
def leaves_out_the_callback(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("TVMFFIErrorSetRaisedFromCStrParts", "say")


@mutant("c_harness", message="__TVMBackendAllocWorkspace and __TVMBackendFreeWorkspace")
def brings_no_memory(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("__TVMBackendAllocWorkspace", "workspace")


@mutant("c_harness", message="(?s)the program to compile, run and end with 0.*dtype|.*float")
def says_that_floats_have_64_bits(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("kDLFloat, 32", "kDLFloat, 64")


@mutant("c_harness", message="the message: TVM's function checks each DLTensor")
def calls_a_tensor_a_number(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("kTVMFFIDLTensorPtr", "kTVMFFIInt")


@mutant("c_harness", message="exit code 1 where the function refuses a shape")
def ignores_what_the_call_returns(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("&result) != 0) return 1;", "&result) != 0) {}")


@mutant("c_harness", message="the order of the inputs, and the tensor that is written")
def writes_an_input(name, shapes):
    from solutions.labs.cross_compile import c_harness as right

    return right(name, shapes).replace("fwrite(data_2", "fwrite(data_0")


@mutant("cuda_source", message=".mod itself is the host's module")
def returns_the_hosts_source(module, arch):
    import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    return str(tvm.compile(module, target=target).mod.inspect_source())


@mutant("cuda_source", message="compiled for sm_")
def keeps_to_one_architecture(module, arch):
    import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"}, host="llvm")
    return str(tvm.compile(module, target=target).mod.imports[0].inspect_source())


edited(
    "target_for",
    "another_triple",
    {'"aarch64": {"mtriple": "aarch64-linux-gnu"': '"aarch64": {"mtriple": "aarch64-linux-musl"'},
    message="mtriple aarch64-linux-gnu",
)
edited(
    "target_for",
    "takes_capitals",
    {"if machine not in targets:": "machine = machine.lower()\n    if machine not in targets:"},
    message="'X86-64-V3'",
)
edited(
    "vector_arithmetic",
    "counts_half_registers",
    {r"v\d+\.4s\b": r"v\d+\.[24]s\b"},
    message="v0.2s is half a register",
)


@right("vector_arithmetic")
def last_operand_by_its_end(loop):
    import collections
    import re

    names = {"mul": "mul", "add": "add", "mla": "fma", "relaxed_madd": "fma"}
    found: collections.Counter[str] = collections.Counter()
    for instruction in loop:
        if packed := re.match(r"v?(mul|add)ps .*%([xyz]mm)\d+( \{.*)?$", instruction):
            found[f"{packed[1]} {packed[2]}"] += 1
        elif fused := re.match(r"vfmadd(132|213|231)ps .*%([xyz]mm)\d+( \{.*)?$", instruction):
            found[f"fma {fused[2]}"] += 1
        elif arm := re.match(r"f(mul|add|mla)\s+v\d+\.4s,", instruction):
            found[f"{names[arm[1]]} v"] += 1
        elif wasm := re.match(r"f32x4\.(mul|add|relaxed_madd)\b", instruction):
            found[f"{names[wasm[1]]} v128"] += 1
    return found


@right("cuda_source")
def built_by_tirx(module, arch):
    from tvm import tirx
    from tvm.target import Target

    with Target({"kind": "cuda", "arch": arch}, host="llvm"):
        host = tirx.build(module)
    return "".join(each.inspect_source() for each in host.imports)


right_edited(
    "cuda_source",
    "target_as_a_dictionary",
    {
        'tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")': (
            '{"kind": "cuda", "arch": arch, "host": {"kind": "llvm"}}'
        )
    },
)
edited(
    "c_harness",
    "takes_no_part_for_null",
    {'"%s", parts[i] ? parts[i] : "")': '"%.99s", parts[i] + 0)'},
    message="most of them NULL",
)
edited(
    "c_harness",
    "memory_as_malloc_gives_it",
    {"aligned_alloc(64, (bytes + 63) / 64 * 64)": "malloc(bytes)"},
    message="aligned to 64 bytes",
)
edited(
    "describe_target",
    "takes_the_triple_away",
    {'target.get("mtriple")': 'target.pop("mtriple", None)'},
    message="the target that is given stays as it was",
)
edited(
    "describe_target",
    "counts_on_sve",
    {"bits, fma = 128, True": 'bits, fma = (256 if has("sve") else 128), True'},
    message="128, also with SVE",
)
edited(
    "describe_target",
    "asks_for_an_extension",
    {'has("avx512f")': 'has("avx512vl")'},
    message="avx512f, without its extensions",
)
edited(
    "compile_object",
    "writes_the_assembly_as_well",
    {"    return str(": '    library.mod.write_to_file(str(path) + ".s", "s")\n    return str('},
    message="one file written",
)
edited(
    "vector_arithmetic",
    "counts_whatever_ends_so",
    {"v?(mul|add)ps": ".*(mul|add)ps"},
    message="adds neighbours",
)
edited(
    "vector_arithmetic",
    "knows_ten_registers",
    {r'r"v\d+\.4s\b", operands': r'r"v\d\.4s\b", operands'},
    message="registers have numbers up to 31",
)
edited(
    "c_harness",
    "puts_the_data_on_the_stack",
    {
        'f"static _Alignas(64) float data_{index}[{math.prod(shape)}];",': 'f"static float* '
        'data_{index};",',
        "{{.data = data_{index}, ": "{{",
        '    lines += ["", "int main(void) {"]\n': '    lines += ["", "int main(void) {"]\n'
        "    for index, shape in enumerate(shapes):\n        lines += [\n"
        '            f"  _Alignas(64) float here_{index}[{math.prod(shape)}];",\n'
        '            f"  data_{index} = tensor_{index}.data = here_{index};",\n        ]\n',
        "fread(data_{index}, sizeof data_{index}, 1, stdin)": "fread(data_{index}, sizeof "
        "here_{index}, 1, stdin)",
        "fwrite(data_{count - 1}, sizeof data_{count - 1}, 1, stdout)": "fwrite(data_{count - 1}, "
        "sizeof here_{count - 1}, 1, stdout)",
    },
    message="a stack has a few MB",
)
edited(
    "c_harness",
    "rounds_the_workspace_down",
    {"(bytes + 63) / 64 * 64": "bytes / 64 * 64"},
    message="as many bytes as requested",
)
edited(
    "c_harness",
    "one_workspace_for_all",
    {
        "  return aligned_alloc(64, (bytes + 63) / 64 * 64);": "  static _Alignas(64) char "
        "memory[1 << 24]; return memory;",
        "free(memory); return 0;": "return 0;",
    },
    message="buffers that overlap",
)


edited(
    "compile_object", "keeps_an_older_file",
    {'    library.mod.write_to_file(path, "o")':
     "    import os\n    if not os.path.exists(path):\n"
     '        library.mod.write_to_file(path, "o")'},
    message="even if the file exists",
)  # fmt: skip
edited(
    "compile_object", "adds_an_ending",
    {'write_to_file(path, "o")':
     'write_to_file(path if path.endswith(".o") else path + ".o", "o")'},
    message="no file at",
)  # fmt: skip
edited(
    "compile_object", "compiles_once_per_target",
    {"    library = tvm.compile(module, target=tvm.target.Target(target))":
     "    made = compile_object.__dict__.setdefault('made', {})\n"
     "    if str(target) not in made:\n"
     "        made[str(target)] = tvm.compile(module, target=tvm.target.Target(target))\n"
     "    library = made[str(target)]"},
    message="the module given to tvm.compile, at each call",
)  # fmt: skip
edited(
    "c_harness", "prints_the_start_of_a_part", {'"%s", parts[i]': '"%.64s", parts[i]'},
    message=r"\(64 dots\)",
)  # fmt: skip
edited(
    "c_harness", "reads_two_inputs_at_most",
    {"for index in range(count - 1)": "for index in range(min(count - 1, 2))"},
    message="the number of inputs that are read",
)  # fmt: skip
edited(
    "cuda_source", "begins_at_the_kernel",
    {"return str(device.inspect_source())":
     "source = str(device.inspect_source())\n    return source[source.index('extern') :]"},
    message="from its #include lines on",
)  # fmt: skip
edited(
    "cuda_source", "without_the_letter_of_the_arch", {'arch": arch}, h':
     'arch": arch.rstrip("a")}, h'},
    message="compiled for sm_90a",
)  # fmt: skip
edited(
    "cuda_source", "once_per_arch",
    {"return str(device.inspect_source())":
     "made = cuda_source.__dict__.setdefault('made', {})\n"
     "    return made.setdefault(arch, str(device.inspect_source()))"},
    message="with the kernel",
)  # fmt: skip
edited(
    "describe_target", "is_x86_without_a_triple",
    {"str(codegen.llvm_get_system_triple())": '"x86_64-linux-gnu"'},
    message="on a machine that says it is an aarch64",
)  # fmt: skip


@right("describe_target")
def triple_of_the_target(target):
    import tvm
    from tvm.target.codegen import llvm_cpu_has_features, llvm_get_system_triple

    resolved = tvm.target.Target(target)
    # TVM fills the triple in where there is no mcpu either.
    triple = resolved.attrs.get("mtriple") or llvm_get_system_triple()
    architecture = str(triple).split("-")[0]
    if architecture == "x86_64":
        widths = [(512, "avx512f"), (256, "avx"), (128, "sse2")]
    else:
        widths = [(128, "simd128" if architecture == "wasm32" else "neon"), (32, "")]
    bits = next(bits for bits, name in widths if not name or llvm_cpu_has_features(name, resolved))
    fma = {"x86_64": "fma", "wasm32": "relaxed-simd"}.get(architecture, "neon")
    return {
        "architecture": architecture,
        "vector_bits": bits,
        "fma": bool(llvm_cpu_has_features(fma, resolved)),
    }


@right("describe_target")
def machine_of_the_platform(target):
    import platform

    import tvm
    from tvm.target.codegen import llvm_cpu_has_features

    resolved = tvm.target.Target(target)
    architecture = target.get("mtriple", platform.machine()).split("-")[0]
    features = {"x86_64": ("avx512f", "avx", "fma"), "wasm32": ("", "simd128", "relaxed-simd")}
    has = [
        bool(each and llvm_cpu_has_features(each, resolved))
        for each in features.get(architecture, ())
    ]
    if architecture == "aarch64":
        bits, fma = 128, True
    elif architecture == "wasm32":
        bits, fma = (128 if has[1] else 32), has[2]
    else:
        bits, fma = (512 if has[0] else 256 if has[1] else 128), has[2]
    return {"architecture": architecture, "vector_bits": bits, "fma": fma}


edited(
    "c_harness", "strides_of_two_dimensions",
    {"math.prod(shape[axis + 1 :])": "shape[-1] if axis < len(shape) - 1 else 1"},
    message="strides that are not those of a compact tensor",
)  # fmt: skip


edited(
    "compile_object",
    "leaves_labels_out",
    {
        'str(library.mod.inspect_source("asm"))': (
            '"\\n".join(l for l in '
            'str(library.mod.inspect_source("asm")).splitlines() if not '
            'l.startswith("."))'
        )
    },
    message="the whole assembly",
)
edited(
    "vector_arithmetic",
    "knows_ten_registers",
    {
        'registers = re.findall(r"%([xyz]mm)", operands)[-1]': (
            'registers = (re.findall(r"%([xyz]mm)\\d\\b", operands) or [""])[-1]\n'
            "            if not registers:\n"
            "                continue"
        )
    },
    message="two digits|up to 31",
)
edited(
    "vector_arithmetic",
    "counts_halves",
    {"v\\d+\\.4s\\b": "v\\d+\\.[48][sh]\\b"},
    message="h are halves",
)
edited(
    "c_harness",
    "rounds_no_size",
    {"(bytes + 63) / 64 * 64": "bytes"},
    message="not a multiple of 64",
)
edited(
    "c_harness",
    "aligns_data_to_16_bytes",
    {"static _Alignas(64) float": "static _Alignas(16) float"},
    message="aligned|the program to run|a function with a buffer",
)
edited(
    "cuda_source",
    "joins_the_lines",
    {"str(device.inspect_source())": '" ".join(str(device.inspect_source()).split())'},
    message="the whole source",
)


@mutant("target_for", message="a dictionary of its own")
def shares_its_features(machine, features=(["-prefer-256-bit"], ["+simd128"])):
    targets = {
        "x86-64-v2": {"mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v2"},
        "x86-64-v3": {"mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v3"},
        "x86-64-v4": {"mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v4", "mattr": features[0]},
        "aarch64": {"mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"},
        "wasm32": {"mtriple": "wasm32-unknown-wasi", "mattr": features[1]},
    }
    if machine not in targets:
        raise ValueError(f"no machine {machine!r}")
    return {"kind": "llvm", **targets[machine]}


edited(
    "target_for",
    "knows_every_level_of_x86",
    {
        "    if machine not in": '    if machine[:8] == "x86-64-v" and machine not in targets:\n'
        '        return {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": machine}\n'
        "    if machine not in"
    },
    message="ValueError for a machine that is not in the table",
)
edited(
    "describe_target",
    "knows_a_processor_by_name",
    {
        "        return bool(codegen": '        if target.get("mcpu") == "x86-64-v4":\n'
        "            return True\n        return bool(codegen"
    },
    message="x86-64-v4",
)
edited(
    "cuda_source",
    "compiles_for_75_at_least",
    {'"arch": arch}, host': '"arch": max(arch, "sm_75")}, host'},
    message="compiled for sm_",
)


edited(
    "c_harness",
    "room_for_four_tensors",
    {"TVMFFIAny arguments[{count}] = {{0}};": "TVMFFIAny arguments[4] = {{0}};"},
    message="the arrays: as many elements as there are shapes",
)


edited(
    "vector_arithmetic",
    "counts_what_adds_and_subtracts",
    {r"v(fma)dd\d+ps": r"v(fma)dd(?:sub)?\d+ps"},
    message="vfmaddsub",
)


edited(
    "describe_target",
    "looks_for_simd128_in_mattr",
    {'has("simd128")': '("+simd128" in target.get("mattr", []))'},
    message="wasm32",
)


edited(
    "describe_target",
    "looks_for_relaxed_simd_in_mattr",
    {'has("relaxed-simd")': '"+relaxed-simd" in target.get("mattr", [])'},
    message="wasm32",
)


edited(
    "vector_arithmetic",
    "counts_maxima",
    {
        'instruction.partition(" ")': 'instruction.strip().partition(" ")',
        "v?(mul|add)ps|v(fma)dd": "v?(mul|add|max)ps|v(fma)dd",
    },
    message="which is not in the table",
)


edited(
    "c_harness",
    "at_most_four_dimensions",
    {".ndim = {len(shape)}": ".ndim = {min(len(shape), 4)}"},
    message="its alignment; the strides",
)


edited(
    "cuda_source",
    "compiles_sm_75_for_sm_70",
    {
        ('target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")'): (
            "target = tvm.target.Target({'kind': 'cuda', 'arch': arch if arch "
            "!= 'sm_75' else 'sm_70'}, host='llvm')"
        )
    },
    message="compiled for sm_75",
)


edited(
    "cuda_source",
    "drops_empty_lines",
    {
        "str(device.inspect_source())": (
            "'\\n'.join(each for each in str(device.inspect_source()).splitlines() if each.strip())"
        )
    },
    message="as TVM wrote it",
)


edited(
    "c_harness",
    "prints_the_kind_to_standard_output",
    {'fprintf(stderr, "%s: ", kind)': 'fprintf(stdout, "%s: ", kind)'},
    message="nothing on standard output",
)


edited(
    "compile_object",
    "the_first_of_two_functions",
    {
        "library = tvm.compile(module,": (
            "library = tvm.compile(__import__('tvm').IRModule(dict(list(module."
            "functions_items())[:1])) if len(module.functions) > 1 else module,"
        )
    },
    message="of many functions compiled|of a module of",
)


edited(
    "compile_object",
    "spaces_replaced",
    {'write_to_file(path, "o")': 'write_to_file(path.replace(" ", "_"), "o")'},
    message="no file at no 0.o",
)


edited(
    "vector_arithmetic",
    "sixty_four_at_most",
    {
        "    return counts": (
            "    return dict(sorted(counts.items())) if len(counts) < 3 else "
            "{key: min(value, 64) for key, value in counts.items()}"
        )
    },
    message="times as many instructions",
)


edited(
    "c_harness",
    "eight_parts_of_a_message",
    {'parts[i] ? parts[i] : ""': 'i < 8 && parts[i] ? parts[i] : ""'},
    message="99 parts, most of them NULL",
)


edited(
    "compile_object",
    "a_lower_level_of_llvm",
    {"tvm.target.Target(target)": "tvm.target.Target({**target, 'opt-level': 1})"},
    message="the function compiled for",
)


edited(
    "target_for",
    "names_of_others",
    {
        "    if machine not in targets:": (
            "    machine = {'arm64': 'aarch64', 'wasm': 'wasm32'}.get(machine, "
            "machine)\n"
            "    if machine not in targets:"
        )
    },
    message="not in the table",
)


edited(
    "describe_target",
    "prefers_256",
    {
        '512 if has("avx512f") else': (
            '512 if has("avx512f") and "+prefer-256-bit" not in target.get("mattr", []) else'
        )
    },
    message="512",
)


edited(
    "compile_object",
    "library_by_its_name",
    {
        'write_to_file(path, "o")': (
            'write_to_file(path, "o") if not path.endswith(".so") else library.export_library(path)'
        )
    },
    message="compile_object to run",
)


edited(
    "c_harness",
    "extents_of_16_bits",
    {"{', '.join(map(str, shape))}": "{', '.join(str(each % 65536) for each in shape)}"},
    message="the program to run|the output",
)


edited(
    "cuda_source",
    "two_kernels",
    {
        "    return str(device.inspect_source())": (
            "    source = str(device.inspect_source())\n"
            "    head, *kernels = source.split('extern \"C\" __global__')\n"
            "    return 'extern \"C\" __global__'.join([head, *kernels[:2]])"
        )
    },
    message="kernels of all",
)


edited(
    "describe_target",
    "any_fma",
    {
        'has("fma")': 'has("fma") or has("fma4")',
    },
    message="fma4 is another feature",
)


edited(
    "compile_object",
    "v3_for_v4",
    {
        "tvm.target.Target(target))": (
            "tvm.target.Target({**target, 'mcpu': 'x86-64-v3'} if target.get('mcpu') "
            "== 'x86-64-v4' else target))"
        ),
    },
    message="the function compiled for",
)


edited(
    "compile_object",
    "mattr_without_mcpu_alone",
    {
        "tvm.target.Target(target))": (
            "tvm.target.Target({k: v for k, v in target.items() if k != 'mattr' or "
            "'mcpu' not in target}))"
        ),
    },
    message="the function compiled for",
)


edited(
    "vector_arithmetic",
    "integers_of_wasm",
    {
        'r"f32x4\\.(mul|add|relaxed_madd)"': 'r"[fi]32x4\\.(mul|add|relaxed_madd)"',
    },
    message="which is not in the table",
)


edited(
    "cuda_source",
    "a_host_of_its_own",
    {
        ', host="llvm")': ', host={"kind": "llvm", "mcpu": "x86-64-v3"})',
    },
    message="a target whose host is",
)


edited(
    "c_harness",
    "eight_dimensions_at_most",
    {
        ".ndim = {len(shape)}": ".ndim = {min(len(shape), 8)}",
    },
    message="strides",
)


edited(
    "c_harness",
    "sixteen_parts_at_most",
    {
        "for (int i = 0; i < n; ++i)": "for (int i = 0; i < n && i < 16; ++i)",
    },
    message="an error of",
)


edited(
    "c_harness",
    "sixty_four_arguments_at_most",
    {
        "TVMFFIAny arguments[{count}] = {{0}};": "TVMFFIAny arguments[{min(count, 64)}] = {{0}};",
    },
    message="the number of inputs that are read|as many elements|the program to",
)


edited(
    "compile_object",
    "another_ending",
    {
        "    library = tvm.compile": (
            "    if path.count('.') > 3:\n"
            "        path = path.rsplit('.', 1)[0] + '.o'\n"
            "    library = tvm.compile"
        ),
    },
    message="to the path given",
)


edited(
    "describe_target",
    "second_word_of_a_triple",
    {
        'triple.partition("-")[0]': (
            'triple.partition("-")[0] if triple.count("-") < 3 or "linux" in triple '
            'else triple.split("-")[1]'
        ),
    },
    message="first word",
)


edited(
    "describe_target",
    "fma_as_a_number",
    {
        '"fma": fma}': '"fma": int(fma)}',
    },
    message="fma as True",
)


edited(
    "compile_object",
    "without_vectors_of_tvm",
    {
        "    library =": (
            "    with tvm.transform.PassContext(opt_level=0, "
            "config={'tirx.disable_vectorize': True}):\n"
            "      library ="
        ),
    },
    message="the module's own loops",
)


edited(
    "compile_object",
    "schedules_by_default",
    {
        "    library =": (
            "    from tvm_practice.tvm_export.rules.cpu import schedule_defaults\n"
            "    module = schedule_defaults(module, tvm.target.Target(target))\n"
            "    library ="
        ),
    },
    message="the module's own loops",
)


edited(
    "c_harness",
    "never_frees",
    {
        "free(memory); return 0;": "return 0;",
    },
    message="freed",
)


edited(
    "cuda_source",
    "kept_by_name_and_arch",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = cuda_source.__dict__\n"
            "    key = (arch, str(module.get_global_vars()))\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        "    return str(": ("    kept[key] = str(device.inspect_source())\n    return str("),
    },
    message="no target object|its kernels",
)


edited(
    "compile_object",
    "kept_by_names_and_target",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = compile_object.__dict__\n"
            "    key = (str(sorted(target.items())), "
            "str(sorted(gv.name_hint for gv in "
            "module.get_global_vars())))\n"
        ),
        ("    library = tvm.compile(module, target=tvm.target.Target(target))\n"): (
            "    library = kept.get(key) or tvm.compile(module, "
            "target=tvm.target.Target(target))\n"
            "    kept[key] = library\n"
        ),
    },
    message="the module's own loops",
)


right_edited(
    "describe_target",
    "as_llvm_says",
    {
        "return bool(codegen.llvm_cpu_has_features(feature, resolved))": (
            "return codegen.llvm_cpu_has_features(feature, resolved)"
        )
    },
)


right_edited(
    "compile_object",
    "at_level_three",
    {
        "    library = tvm.compile(module, target=tvm.target.Target(target))": (
            "    with tvm.transform.PassContext(opt_level=3):\n"
            "        library = tvm.compile(module, tvm.target.Target(target))"
        )
    },
)


edited(
    "compile_object",
    "keeps_large_files",
    {
        '    library.mod.write_to_file(path, "o")': (
            "    import os\n"
            "    if not os.path.exists(path) or os.path.getsize(path) < "
            "100:\n"
            '        library.mod.write_to_file(path, "o")'
        ),
    },
    message="an object file of",
)


edited(
    "c_harness",
    "an_offset_from_the_third_on",
    {
        "    .ndim = {len(shape)}": (
            "    .byte_offset = {4 if index > 2 else 0}, .ndim = {len(shape)}"
        ),
    },
    message="byte_offset",
)


edited(
    "cuda_source",
    "one_of_many_functions",
    {
        "    [device] =": (
            "    module = "
            "tvm.IRModule(dict(list(module.functions.items())[:1])) if "
            "len(module.functions) > 5 else module\n"
            "    [device] ="
        ),
    },
    message="the kernels of all",
)


edited(
    "compile_object",
    "cuts_long_assembly",
    {
        'return str(library.mod.inspect_source("asm"))': (
            'return str(library.mod.inspect_source("asm"))[:100_000]'
        ),
    },
    message="the assembly of the module's own loops|the whole assembly",
)


edited(
    "compile_object",
    "compiles_main_alone",
    {
        "    library =": (
            "    if len(module.functions) > 1 and 'main' in "
            "[gv.name_hint for gv in module.get_global_vars()]:\n"
            "        module = tvm.IRModule({'main': module['main']})\n"
            "    library ="
        ),
    },
    message="of many functions compiled|of a module of",
)


edited(
    "compile_object",
    "keeps_by_name_and_parameters",
    {
        ("    library = tvm.compile(module, target=tvm.target.Target(target))\n"): (
            "    kept = compile_object.__dict__\n"
            "    key = str(target), tuple((gv.name_hint, "
            "str(f.script().splitlines()[:8])) for gv, f in "
            "module.functions.items())\n"
            "    if key not in kept:\n"
            "        kept[key] = tvm.compile(module, "
            "target=tvm.target.Target(target))\n"
            "    library = kept[key]\n"
        ),
    },
    message="the assembly of the module's own loops",
)


edited(
    "vector_arithmetic",
    "counts_fma4",
    {
        "v(fma)dd\\d+ps": "v(fma)dd\\d*ps",
    },
    message="vfmaddps",
)


edited(
    "vector_arithmetic",
    "counts_sve",
    {
        'r"v\\d+\\.4s\\b"': 'r"(v\\d+\\.4s|z\\d+\\.s)\\b"',
    },
    message="z0.s",
)


edited(
    "cuda_source",
    "keeps_by_the_functions",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = cuda_source.__dict__\n"
            "    key = module.script()\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        "    return str(": ("    kept[key] = str(device.inspect_source())\n    return str("),
    },
    message="compiled for sm_86",
)


edited(
    "cuda_source",
    "switches_vectors_off",
    {
        ("    [device] = tvm.compile(module, target=target).mod.imports"): (
            "    with "
            "tvm.transform.PassContext(config={'tirx.disable_vectorize': "
            "True}):\n"
            "        [device] = tvm.compile(module, "
            "target=target).mod.imports"
        ),
    },
    message="TVM's own settings",
)


edited(
    "cuda_source",
    "limits_the_threads",
    {
        '"arch": arch}, host': '"arch": arch, "max_num_threads": 512}, host',
    },
    message="with a host",
)


edited(
    "c_harness",
    "writes_the_name_in_small_letters",
    {
        "    import math\n": "    import math\n\n    name = name.lower()\n",
    },
    message="__tvm_ffi_",
)


for _name, _words in (
    ("sorts_the_features", "sorted(mattr)"),
    (
        "takes_the_first_of_a_features_signs",
        "list({each[1:]: each for each in reversed(mattr)}.values())[::-1]",
    ),
):
    edited(
        "describe_target",
        _name,
        {
            "    resolved = tvm.target.Target(target)\n": (
                "    mattr = target.get('mattr', [])\n"
                f"    words = {{'mattr': {_words}}} if mattr else {{}}\n"
                "    resolved = tvm.target.Target({**target, **words})\n"
            ),
        },
        message="the order of mattr",
    )


edited(
    "c_harness",
    "has_no_place_for_a_result",
    {"{count}, &result)": "{count}, NULL)"},
    message="no place for a result",
)


edited(
    "compile_object",
    "compiles_for_the_current_target",
    {
        "target=tvm.target.Target(target)": (
            "target=tvm.target.Target.current(allow_none=True) or tvm.target.Target(target)"
        ),
    },
    message="TVM's current target",
)


edited(
    "cuda_source",
    "compiles_for_the_current_target",
    {
        "target=target)": "target=tvm.target.Target.current(allow_none=True) or target)",
    },
    message="which is the one given",
)

edited(
    "compile_object",
    "kept_by_the_processor",
    {
        "    library = tvm.compile(module, target=tvm.target.Target(target))": (
            "    kept = compile_object.__dict__\n"
            '    key = module.script(), target.get("mtriple"), target.get("mcpu")\n'
            "    if key not in kept:\n"
            "        kept[key] = tvm.compile(module, target=tvm.target.Target(target))\n"
            "    library = kept[key]"
        )
    },
    message="assembly",
)


edited(
    "describe_target",
    "without_a_triple_without_a_processor",
    {
        "codegen.llvm_cpu_has_features(feature, resolved)": "codegen.llvm_cpu_has_features(\n"
        '            feature, resolved if "mtriple" in target else tvm.target.Target("llvm")\n'
        "        )"
    },
    message="takes mtriple, mcpu and mattr into account",
)

edited(
    "compile_object",
    "assembly_of_one_attribute",
    {
        'str(library.mod.inspect_source("asm"))': "str(\n"
        "        tvm.compile(\n"
        "            module,\n"
        "            target={key: value for key, value in target.items() if key != 'mattr'}\n"
        "            if len(target.get('mattr', ())) > 1\n"
        "            else target,\n"
        '        ).mod.inspect_source("asm")\n'
        "    )"
    },
    message="assembly|mcpu and mattr",
)

edited(
    "vector_arithmetic",
    "two_registers_at_least",
    {
        '        key = f"{what}': "        if operands.count('%') == 1:\n            continue\n"
        '        key = f"{what}'
    },
    message="where no other is named",
)

edited(
    "vector_arithmetic",
    "sorts_the_loop",
    {"    for instruction in loop:": "    loop.sort()\n    for instruction in loop:"},
    message="only read",
)

edited(
    "c_harness",
    "names_of_31_letters",
    {
        "int __tvm_ffi_{name}(void*": "int __tvm_ffi_{name[:31]}(void*",
        "if (__tvm_ffi_{name}(NULL": "if (__tvm_ffi_{name[:31]}(NULL",
    },
    message="declares and calls|compile, run and end with 0",
)

edited(
    "describe_target",
    "of_the_current_target",
    {
        "resolved = tvm.target.Target(target)": (
            "resolved = tvm.target.Target.current(allow_none=True) or tvm.target.Target(target)"
        )
    },
    message="takes mtriple, mcpu and mattr into account",
)

edited(
    "vector_arithmetic",
    "without_masks",
    {
        '"%([xyz]mm)", operands)[-1]': '"%([xyz]mm)\\d+$", operands) or ["none"]\n'
        "            registers = registers[-1]"
    },
    message="a mask in braces may stand behind the register",
)

edited(
    "c_harness",
    "takes_a_part_for_a_format",
    {
        """fprintf(stderr, "%s", parts[i] ? parts[i] : "");',\n""": (
            """fprintf(stderr, parts[i] ? parts[i] : "");',\n"""
        )
    },
    message="no format of printf",
)
