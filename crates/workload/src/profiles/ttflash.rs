//! The six traces of ttFlash, of Microsoft servers, by the names of its
//! figures. It publishes nothing else of them, so each is what another paper or
//! a public excerpt says of the same server. `dtrs` is AutoSSD's.

use super::Characteristics;
use super::autossd::{DAP_PS, LM_TBE, MSN_BEFS};
use super::sizes::WHOLE_PAGES;
use super::ssdcheck::EXCHANGE;

const DAPPS: Characteristics = Characteristics {
    name: "dapps",
    source: "DAP-PS of AutoSSD (USENIX ATC 2018), table 2, for ttFlash's (FAST 2017) DAPPS",
    ..DAP_PS
};
const EXCH: Characteristics = Characteristics {
    name: "exch",
    source: "Exchange of SSDcheck (MICRO 2018), table II, for ttFlash's (FAST 2017) EXCH",
    ..EXCHANGE
};
const LMBE: Characteristics = Characteristics {
    name: "lmbe",
    source: "LM-TBE of AutoSSD (USENIX ATC 2018), table 2, for ttFlash's (FAST 2017) LMBE",
    ..LM_TBE
};
const MSNFS: Characteristics = Characteristics {
    name: "msnfs",
    source: "MSN-BEFS of AutoSSD (USENIX ATC 2018), table 2, for ttFlash's (FAST 2017) MSNFS",
    assumed: "that it is the back end: READY (FAST 2012) has 18.19 GB an hour written of its trace of that name, \
              and MSN-BEFS writes 18.5, MSN-CFS 2.5; the random share, 80 % as in a public excerpt of DTRS",
    ..MSN_BEFS
};
const TPCC: Characteristics = Characteristics {
    name: "tpcc",
    what: "TPC-C benchmark on SQL Server",
    source: "MQSim's excerpt tpcc-small of a TPC-C trace (6999 requests), for ttFlash's (FAST 2017) TPCC",
    assumed: "2 M requests, at the gaps of one of the excerpt's 16 devices",
    hours: None,
    // 2618 writes and 4381 reads, 8.73 and 8.09 KB; each device's requests
    // begin where the one before ended in 1.2 % of all cases. 6999 requests in
    // 136.4 ms are one in 0.312 ms on each of 16 devices.
    writes_millions: 0.748,
    reads_millions: 1.252,
    write_kb: 8.73,
    read_kb: 8.09,
    inter_arrival_mean_ms: 0.312,
    // 13.0 µs to 19.5 µs over all devices.
    inter_arrival_median_ms: 0.208,
    random_percent: 98.8,
    sizes_kib: WHOLE_PAGES,
    zipf_theta: 0.9,
};

pub(super) const PROFILES: &[Characteristics] = &[DAPPS, EXCH, LMBE, MSNFS, TPCC];
