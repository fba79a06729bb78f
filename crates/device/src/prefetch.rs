//! Prefetch hints.

/// Asks the processor to fetch `slice[index]` into its caches; a hint only.
#[inline]
pub fn read<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < slice.len() {
        // SAFETY: the address lies inside the slice, and a prefetch reads
        // nothing that the program can see.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                slice.as_ptr().add(index).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
