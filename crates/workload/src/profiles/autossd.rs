//! The eight traces of AutoSSD, of Microsoft production servers.

use super::Characteristics;
use super::sizes::WHOLE_PAGES;

const SOURCE: &str = "AutoSSD (USENIX ATC 2018), table 2";
const ASSUMED: &str = "the random share, 80 % as in a public excerpt of DTRS";

/// A row of table 2; of randomness and skew the paper says nothing.
const fn row(
    name: &'static str,
    what: &'static str,
    hours: f64,
    [writes_millions, reads_millions]: [f64; 2],
    [write_kb, read_kb]: [f64; 2],
    [inter_arrival_mean_ms, inter_arrival_median_ms]: [f64; 2],
) -> Characteristics {
    Characteristics {
        name,
        what,
        source: SOURCE,
        assumed: ASSUMED,
        hours: Some(hours),
        writes_millions,
        reads_millions,
        write_kb,
        read_kb,
        inter_arrival_mean_ms,
        inter_arrival_median_ms,
        random_percent: 80.0,
        sizes_kib: WHOLE_PAGES,
        zipf_theta: 0.9,
    }
}

pub(super) const DAP_DS: Characteristics =
    row("dap-ds", "display advertisement data server", 23.5, [0.1, 1.3], [7.2, 31.5], [56.9, 31.6]);
pub(super) const DAP_PS: Characteristics =
    row("dap-ps", "display advertisement payload server", 23.5, [0.5, 0.6], [96.7, 62.1], [79.9, 1.7]);
pub(super) const DTRS: Characteristics = Characteristics {
    assumed: "the random share, 80 % as in a public excerpt of it",
    ..row("dtrs", "developer tools release server", 23.0, [5.8, 12.0], [31.9, 21.8], [4.6, 1.5])
};
pub(super) const LM_TBE: Characteristics = Characteristics {
    assumed: "the random share, 50.5 % as SSDcheck (MICRO 2018), table II, has it of LiveMapsBackEnd",
    random_percent: 50.5,
    ..row("lm-tbe", "Live Maps tile back end", 23.0, [9.2, 34.7], [61.9, 53.2], [1.9, 0.8])
};
pub(super) const MSN_CFS: Characteristics =
    row("msn-cfs", "MSN storage metadata server", 5.9, [1.1, 3.2], [12.9, 8.9], [4.9, 2.0]);
pub(super) const MSN_BEFS: Characteristics =
    row("msn-befs", "MSN storage back-end file server", 5.9, [9.2, 18.9], [11.6, 10.7], [0.8, 0.3]);
const RAD_AS: Characteristics =
    row("rad-as", "RADIUS authentication server", 15.3, [2.0, 0.2], [9.9, 11.0], [24.9, 0.8]);
const RAD_BE: Characteristics =
    row("rad-be", "RADIUS back-end SQL server", 17.0, [4.3, 1.0], [13.0, 106.2], [11.7, 2.6]);

pub(super) const PROFILES: &[Characteristics] =
    &[DAP_DS, DAP_PS, DTRS, LM_TBE, MSN_CFS, MSN_BEFS, RAD_AS, RAD_BE];
