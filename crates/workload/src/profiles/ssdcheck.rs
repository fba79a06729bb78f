//! The six traces of SSDcheck, and its random mix. The paper gives requests,
//! share of writes and random share; it replays without the recorded times.

use super::sizes::WHOLE_PAGES;
use super::{Characteristics, MEAN_TO_MEDIAN};
use crate::profiles::autossd::{DTRS, LM_TBE};

const SOURCE: &str = "SSDcheck (MICRO 2018), table II";

/// A row of table II with the sizes and gaps assumed for it.
const fn row(
    [name, what, assumed]: [&'static str; 3],
    requests_millions: f64,
    write_percent: f64,
    random_percent: f64,
    [write_kb, read_kb]: [f64; 2],
    inter_arrival_mean_ms: f64,
) -> Characteristics {
    Characteristics {
        name,
        what,
        source: SOURCE,
        assumed,
        hours: None,
        writes_millions: requests_millions * write_percent / 100.0,
        reads_millions: requests_millions * (100.0 - write_percent) / 100.0,
        write_kb,
        read_kb,
        inter_arrival_mean_ms,
        inter_arrival_median_ms: inter_arrival_mean_ms / MEAN_TO_MEDIAN,
        random_percent,
        sizes_kib: WHOLE_PAGES,
        zipf_theta: 0.9,
    }
}

const TPCE: Characteristics = row(
    [
        "tpce",
        "TPC-E benchmark on SQL Server",
        "8 KB, the page of SQL Server; its requests in 14 minutes, a sixth of the 84 that the public trace's six files hold",
    ],
    1.3,
    92.4,
    99.9,
    [8.0, 8.0],
    14.0 * 60e3 / 1.3e6,
);
const HOMES: Characteristics = row(
    [
        "homes",
        "home directories",
        "4 KB, a page of its file system; 1 ms between requests, for want of anything better",
    ],
    2.0,
    90.4,
    53.8,
    [4.0, 4.0],
    1.0,
);
const WEB: Characteristics = row(
    [
        "web",
        "web server",
        "4 KB, a page of its file system; 1 ms between requests, for want of anything better",
    ],
    2.0,
    91.5,
    14.8,
    [4.0, 4.0],
    1.0,
);
pub(super) const EXCHANGE: Characteristics = row(
    [
        "exchange",
        "Exchange mail server",
        "8 KB, the page of Exchange 2007; gaps with which 9.4 % of writes make the 20.61 GB an hour that READY (FAST 2012) has of its trace of that name",
    ],
    7.6,
    9.4,
    99.8,
    [8.0, 8.0],
    // 8192 B per write / (20.61 GB/h) is 1.431 ms between writes.
    8192.0 / 20.61e9 * 3.6e6 * 0.094,
);
const LIVE_MAPS_BACK_END: Characteristics = Characteristics {
    inter_arrival_median_ms: LM_TBE.inter_arrival_median_ms,
    ..row(
        [
            "live-maps-back-end",
            "Live Maps back end",
            "sizes and gaps of AutoSSD's LM-TBE, which is the same server",
        ],
        3.6,
        22.2,
        50.5,
        [LM_TBE.write_kb, LM_TBE.read_kb],
        LM_TBE.inter_arrival_mean_ms,
    )
};
const BUILD_SERVER: Characteristics = row(
    [
        "build-server",
        "software build server",
        "sizes of AutoSSD's DTRS, which serves builds; 1 ms between requests, for want of anything better",
    ],
    0.6,
    53.9,
    85.6,
    [DTRS.write_kb, DTRS.read_kb],
    1.0,
);
const RW_MIXED: Characteristics = Characteristics {
    source: "SSDcheck (MICRO 2018), section V-B, the generated trace RW Mixed",
    // Those of a Poisson process: the median is ln 2 of the mean.
    inter_arrival_median_ms: 0.693,
    zipf_theta: 0.0,
    ..row(
        [
            "rw-mixed",
            "random reads and writes, half of each",
            "4 KB everywhere alike, 2 M requests as in most of its traces, 1 ms between them with the median of a Poisson process",
        ],
        2.0,
        50.0,
        100.0,
        [4.0, 4.0],
        1.0,
    )
};

pub(super) const PROFILES: &[Characteristics] =
    &[TPCE, HOMES, WEB, EXCHANGE, LIVE_MAPS_BACK_END, BUILD_SERVER, RW_MIXED];
