//! Asking for memory that will be read soon.
//!
//! A load that misses the cache holds up the end of everything behind it, so that only as many are under way as fit
//! into the processor's window with the work between them; a prefetch ends at once.
#![allow(unsafe_code)]

/// Lets the line of the cache come in which an entry begins. An index beyond the end does no harm.
#[inline]
pub(crate) fn prefetch<T>(of: &[T], at: usize) {
    let entry = of.as_ptr().wrapping_add(at);
    // SAFETY: a hint, which reads nothing and takes any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(entry.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
}
