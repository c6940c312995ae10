//! Large pages for memory that is looked up at random.
//!
//! A table of 64 MiB in pages of 4 KiB has more pages than the processor remembers: each lookup then pays for the walk to
//! its page as well, and in a virtual machine for a walk at each step of that walk.
#![allow(unsafe_code)]

use std::ops::Range;

/// A large page of x86-64, and of aarch64 with pages of 4 KiB.
const LARGE: usize = 2 << 20;

/// Puts `part` of `all` (indices) into large pages, as far as such pages lie within `all`; touches what of them is not in
/// use yet. Takes about 0.2 ms per MiB, in the caller's time. False if the kernel did not: too old (before 6.1), or no
/// memory in one piece. The contents are the same before and after.
pub fn collapse<T>(all: &[T], part: Range<usize>) -> bool {
    let bytes = |i: usize| all.as_ptr() as usize + i.min(all.len()) * size_of::<T>();
    let (first, last) = (bytes(0), bytes(all.len()));
    // the large pages whose middle is in the part: parts that touch share none and leave none out
    let page = |at: usize| (at + LARGE / 2) / LARGE * LARGE;
    let from = page(bytes(part.start)).max(first.next_multiple_of(LARGE));
    let to = page(bytes(part.end)).min(last / LARGE * LARGE);
    if from >= to {
        return false;
    }
    // SAFETY: the range lies within `all`, which is borrowed for the length of the call, and MADV_COLLAPSE leaves the
    // contents of memory as they are.
    let answer =
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_COLLAPSE) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_stay() {
        let mut v = vec![0u32; 4 << 20];
        for i in (0..v.len()).step_by(4096) {
            v[i] = i as u32;
        }
        for at in 0..8 {
            // what the kernel says depends on its memory
            collapse(&v, at << 19..(at + 1) << 19);
        }
        assert!(v.iter().enumerate().all(|(i, w)| match i % 4096 {
            0 => *w == i as u32,
            _ => *w == 0,
        }));
        assert!(!collapse(&v[..100], 0..100) && !collapse::<u32>(&[], 0..0));
        assert!(!collapse(&v, 5..5));
    }
}
