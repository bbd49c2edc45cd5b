#!/usr/bin/env python3
"""stubs.py OUTPUT CPU LIBRARY... -- ARCHIVE...: writes the stubs that late.h describes, in assembly.

OUTPUT  the file to write
CPU     x86_64 or aarch64
LIBRARY a shared library, like /usr/lib/x86_64-linux-gnu/libcurl.so
ARCHIVE our static libraries: a function of LIBRARY that they call gets a stub

A stub is one jump through its slot.  A slot that was not used yet leads to code that keeps the
arguments, which are in registers, calls late_load(), and takes the same jump again.
"""
import re
import subprocess
import sys

X86_64 = {
    "stub": """
{name}:
    endbr64
    jmp *.Lslots_{library} + {offset}(%rip)
""",
    # Reached by that jump, so with the registers of the call.
    "first": """
.Lfirst_{name}:
    endbr64
    push ${index}
    jmp .Lload_{library}
""",
    # Six arguments, how many are in vector registers (%rax), and eight of those.  The stack is
    # aligned to 16 bytes before each call: 8 of the return address, 8 of the index, 7 * 8, 136.
    "load": """
.Lload_{library}:
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    sub $136, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    lea .Llibrary_{library}(%rip), %rdi
    call late_load
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    add $136, %rsp
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    pop %r11
    lea .Lslots_{library}(%rip), %r10
    jmp *(%r10, %r11, 8)
""",
}
AARCH64 = {
    "stub": """
{name}:
    hint #34
    adrp x16, .Lslots_{library} + {offset}
    ldr x16, [x16, :lo12:.Lslots_{library} + {offset}]
    br x16
""",
    "first": """
.Lfirst_{name}:
    hint #34
    mov x17, #{index}
    b .Lload_{library}
""",
    # Eight arguments, where a large result goes (x8), the return address, and eight vector registers.
    "load": """
.Lload_{library}:
    stp x29, x30, [sp, #-224]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x17, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    adrp x0, .Llibrary_{library}
    add x0, x0, :lo12:.Llibrary_{library}
    bl late_load
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x8, x17, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    adrp x16, .Lslots_{library}
    add x16, x16, :lo12:.Lslots_{library}
    ldr x16, [x16, x17, lsl #3]
    br x16
""",
}
CPUS = {"x86_64": X86_64, "aarch64": AARCH64}


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols(path, *options):
    """Pairs of a name without its version, and the letter of nm for its kind."""
    for line in output_of("nm", "--format=posix", *options, path).splitlines():
        fields = line.split()
        if len(fields) > 1:
            yield fields[0].split("@")[0], fields[1]


def soname(path):
    return re.search(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", path))[1]


def called(path, wanted):
    """The functions of a library that are wanted.  Data cannot come late."""
    functions = set()
    for name, kind in symbols(path, "--dynamic", "--defined-only"):
        if name in wanted and kind not in "TWi":
            sys.exit(f"stubs.py: {name} of {path} is no function; link the program with this library")
        if name in wanted:
            functions.add(name)
    return sorted(functions)


def stubs_of(cpu, library, path, names):
    parts = [cpu["load"].format(library=library)]
    for index, name in enumerate(names):
        fields = {"name": name, "library": library, "index": index, "offset": 8 * index}
        parts += [f"    .globl {name}\n    .type {name}, %function", cpu["stub"].format(**fields),
                  f"    .size {name}, . - {name}\n", cpu["first"].format(**fields)]
    texts = [f'.Lname_{name}: .asciz "{name}"' for name in names]
    texts.append(f'.Lfile_{library}: .asciz "{soname(path)}"')
    slots = [f".Lslots_{library}:", *(f"    .quad .Lfirst_{name}" for name in names)]
    # Addresses are filled in when the program starts, so these cannot be in .rodata.
    described = [f".Lnames_{library}:", *(f"    .quad .Lname_{name}" for name in names),
                 f".Llibrary_{library}:", f"    .quad .Lfile_{library}, .Lnames_{library}",
                 f"    .quad .Lslots_{library}, {len(names)}"]
    return "\n".join([
        "    .text", *parts, "    .section .rodata", *texts, "    .data", "    .balign 8", *slots,
        '    .section .data.rel.ro, "aw"', "    .balign 8", *described, ""])


def main():
    output, cpu, *rest = sys.argv[1:]
    split = rest.index("--")
    wanted, ours = set(), set()
    for archive in rest[split + 1:]:
        for name, kind in symbols(archive):
            (wanted if kind == "U" else ours).add(name)
    text = ""
    for number, path in enumerate(rest[:split]):
        names = called(path, wanted - ours)
        if names:
            text += stubs_of(CPUS[cpu], number, path, names)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text + '    .section .note.GNU-stack, "", %progbits\n')


main()
