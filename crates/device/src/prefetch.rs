//! Hints to the memory system: prefetching and huge pages.

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

/// A table of `len` zeros that the kernel is asked to back with huge pages.
/// Tables of hundreds of megabytes are accessed at random, and with 4 KiB pages
/// every access would miss the TLB as well. No memory is taken before it is used:
/// the kernel gives pages of zeros.
pub fn table<T: Clone + Default>(len: usize) -> Vec<T> {
    let table = vec![T::default(); len];
    #[cfg(target_os = "linux")]
    {
        const HUGE: usize = 2 << 20;
        let start = (table.as_ptr() as usize).next_multiple_of(HUGE);
        let end = table.as_ptr() as usize + size_of_val(&*table);
        if start + HUGE <= end {
            // SAFETY: the range lies inside the vector's own allocation, and
            // the advice changes nothing but the size of its pages.
            unsafe {
                libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
            }
        }
    }
    table
}
