"""The system calls that a program in a sandbox may make, as a filter for the kernel (seccomp)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

_KERNEL_CALLS = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "mount", "umount2", "pivot_root", "chroot", "unshare",
    "setns", "fsopen", "fsmount", "open_tree", "move_mount", "mount_setattr", "add_key", "request_key", "keyctl", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at",
    "kexec_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
)  # fmt: skip
_COMMON = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442, "pidfd_getfd": 438,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
}  # fmt: skip
_NUMBERS: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, {
        **_COMMON, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "umount2": 166,
        "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "add_key": 248, "request_key": 249, "keyctl": 250,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "open_by_handle_at": 304, "kexec_load": 246,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167,
        "fork": 57, "vfork": 58, "clone": 56, "socket": 41,
    }),
    "aarch64": (0xC00000B7, {
        **_COMMON, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "mount": 40, "umount2": 39,
        "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "add_key": 217, "request_key": 218, "keyctl": 219,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "open_by_handle_at": 265, "kexec_load": 104,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142, "swapon": 224,
        "clone": 220, "socket": 198,
    }),
}  # fmt: skip
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000


def seccomp_filter(machine: str, may_open_sockets: bool, may_start_processes: bool) -> bytes:
    """A BPF program that answers EPERM to system calls a program does not need; empty for machines it is not written for.

    Each step is a classic BPF instruction: code, jump if true, jump if false, operand. The data it loads from is
    `struct seccomp_data`: the call's number at offset 0, the architecture at 4, its first argument at 16. See seccomp(2).
    A jump skips so many of the following steps. On x86_64, numbers from `_X32` on are a second way to make all calls,
    and are refused.
    """
    if machine not in _NUMBERS:
        return b""
    architecture, numbers = _NUMBERS[machine]
    denied = [*_KERNEL_CALLS, *(() if may_open_sockets else ("socket",))]
    denied += [] if may_start_processes else ["fork", "vfork"]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _EPERM), (_LOAD, 0, 0, 0)]
    steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)] if machine == "x86_64" else []
    for name in denied:
        if name in numbers:
            steps += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _EPERM)]
    if not may_start_processes:
        # Threads are allowed. The flags of clone3 cannot be seen, and without it the C library uses clone.
        steps += [
            (_EQUAL, 0, 1, numbers["clone3"]),
            (_RETURN, 0, 0, _ENOSYS),
            (_EQUAL, 0, 3, numbers["clone"]),
        ]
        steps += [(_LOAD, 0, 0, 16), (_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _EPERM)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
