//! LUN 0 of the virtual desktops of SYSTOR '17, by class of day, as chapter 3 of Roy's
//! dissertation uses it. The text has pictures, hardly a number; what is known is this:
//!
//! - read mostly, writes of 512 B to 128 KB, with larger writes on busy days than on
//!   others; days are busy, moderate or low by their requests; 22 February is a busy day,
//!   five hours of which are looked at: Roy, §3.2 and §3.6.5 to 3.6.8;
//! - what is written is above the 110 GB a day of a QLC drive on busy and moderate days,
//!   and within the 252.5 of a TLC drive: Roy, §3.6.9 (behind a memory cache);
//! - all six LUNs alike: Roy, §3.6.5. In 26 days they have 3,694 million requests of
//!   88 TB: S3-FIFO (SOSP 2023), table 1, from memory, not verified. So a LUN has 23.7
//!   million requests a day, of 23.8 KB.
//!
//! The rest is ours: a day's traffic falls into five hours; a week has two busy days,
//! three moderate and two low ones, which write 220, 160 and 60 GB; 26 % of the requests
//! are writes. With those the mean of a week is 23.7 million requests a day.

use super::{Characteristics, MEAN_TO_MEDIAN};

const SOURCE: &str = "Roy's dissertation, sections 3.2 and 3.6.5 to 3.6.9, and S3-FIFO (SOSP 2023), table 1";
const ASSUMED: &str = "bytes written a day (220 GB if busy, 160 if moderate, 60 if low), all in five hours; \
                       26 % writes; mean sizes; the random share, 80 %";
/// From a sector to 128 KB.
const SIZES_KIB: &[f64] = &[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const WRITE_SHARE: f64 = 0.26;
const HOURS: f64 = 5.0;

/// A day that writes so much, in writes and reads of these means in KiB.
const fn day(
    name: &'static str,
    what: &'static str,
    written_gb: f64,
    [write_kb, read_kb]: [f64; 2],
) -> Characteristics {
    let writes_millions = written_gb * 1e3 / (write_kb * 1.024);
    let writes_millions = writes_millions / 1e3;
    let requests_millions = writes_millions / WRITE_SHARE;
    let inter_arrival_mean_ms = HOURS * 3.6 / requests_millions;
    Characteristics {
        name,
        what,
        source: SOURCE,
        assumed: ASSUMED,
        hours: Some(HOURS),
        writes_millions,
        reads_millions: requests_millions - writes_millions,
        write_kb,
        read_kb,
        inter_arrival_mean_ms,
        inter_arrival_median_ms: inter_arrival_mean_ms / MEAN_TO_MEDIAN,
        random_percent: 80.0,
        sizes_kib: SIZES_KIB,
        zipf_theta: 0.9,
    }
}

pub(super) const PROFILES: &[Characteristics] = &[
    day("systor-busy", "virtual desktops, LUN 0 of SYSTOR '17, a busy day", 220.0, [28.0, 24.0]),
    day("systor-moderate", "virtual desktops, LUN 0 of SYSTOR '17, a moderate day", 160.0, [22.0, 24.0]),
    day("systor-low", "virtual desktops, LUN 0 of SYSTOR '17, a day of low traffic", 60.0, [18.0, 24.0]),
];
