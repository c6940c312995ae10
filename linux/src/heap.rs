// SPDX-License-Identifier: Apache-2.0
//! What the C library keeps of memory that was given back.
#![allow(unsafe_code)]

/// Large blocks are mappings of their own, which the kernel has back as soon as they are free. Left alone, glibc (mallopt(3),
/// `M_MMAP_THRESHOLD`) does so no more with blocks up to the size of the largest one that was freed, 32 MB at most, and each table that has
/// grown leaves a hole of its former size. With this it also keeps no more than 128 KB free at the heap's end. For a process whose large blocks
/// are tables that live long: each large block, a long answer's as well, costs system calls and its pages' zeros.
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 128 << 10;
        // SAFETY: it takes two numbers and no pointer; it is refused, and changes nothing, or is so from the next block on.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}
