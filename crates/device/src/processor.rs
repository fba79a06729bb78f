//! Functions compiled twice: for any processor, and for one with AVX2, which is chosen when
//! the program runs.
//!
//! It is for the few loops that gain much by it; what each gains is said beside it. Both
//! copies are of the same source and give the same results to the bit: nothing is
//! contracted or put in another order.

/// Defines a function in both copies. What it calls becomes part of them where that is
/// `#[inline(always)]`.
macro_rules! twice {
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block) => {
        $(#[$meta])*
        fn $name($($argument: $type),*) -> $result {
            #[inline(always)]
            fn portable($($argument: $type),*) -> $result $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn wide($($argument: $type),*) -> $result {
                    #[cfg(test)]
                    $crate::processor::copies::note_wide();
                    portable($($argument),*)
                }
                if $crate::processor::is_wide() {
                    // SAFETY: the processor has been found to have every feature named above.
                    return unsafe { wide($($argument),*) };
                }
            }
            portable($($argument),*)
        }
    };
}

pub(crate) use twice;

/// Whether the processor has what the second copies are compiled for.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn is_wide() -> bool {
    #[cfg(test)]
    if copies::IS_PORTABLE.get() {
        return false;
    }
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(test)]
pub(crate) mod copies {
    use std::cell::Cell;

    thread_local! {
        pub(super) static IS_PORTABLE: Cell<bool> = const { Cell::new(false) };
        static WIDE: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn note_wide() {
        WIDE.set(WIDE.get() + 1);
    }

    /// What `work` gives by the copies for any processor.
    pub(crate) fn portably<R>(work: impl FnOnce() -> R) -> R {
        IS_PORTABLE.set(true);
        let result = work();
        IS_PORTABLE.set(false);
        result
    }

    /// How often a copy for AVX2 has been taken since this was asked.
    pub(crate) fn taken() -> u64 {
        WIDE.take()
    }
}
