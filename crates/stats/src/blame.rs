//! The blame table: who owned the latency, by latency.

use flashkeel_engine::{Cause, Ledger, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    CauseTotals, Class,
    buckets::{bucket_of, ends_of},
    class::Group,
};

/// 64 rows to each doubling, so a row is at most 1.6 % wide.
const BITS: u32 = 6;

/// Requests of one latency bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub count: u64,
    /// Nanoseconds each cause owned.
    pub ns: CauseTotals,
    /// Requests in which each cause owned anything.
    pub requests: CauseTotals,
}

impl Row {
    pub const EMPTY: Row = Row { count: 0, ns: CauseTotals::ZERO, requests: CauseTotals::ZERO };

    pub fn add(&mut self, other: &Row) {
        self.count = self.count.saturating_add(other.count);
        self.ns.add(&other.ns);
        self.requests.add(&other.requests);
    }
}

/// For every latency bucket of every group of requests: how many, and who
/// owned their time.
///
/// The latencies of one bucket together must stay below 2^64 ns (584 years).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlameTable {
    groups: [Vec<Sums>; Group::COUNT],
}

/// A row as it is gathered: what belongs to one cause stands together, because
/// few causes own time of any one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    count: u64,
    owned: [Owned; Cause::COUNT],
}

/// Nanoseconds that a cause owned, and of how many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owned {
    ns: u64,
    requests: u64,
}

impl Sums {
    const EMPTY: Sums = Sums { count: 0, owned: [Owned { ns: 0, requests: 0 }; Cause::COUNT] };

    #[inline]
    fn record(&mut self, ledger: &Ledger) {
        self.count += 1;
        // Most groups own nothing, and are passed over at once.
        for (owned, group) in self.owned.chunks_mut(Ledger::GROUP).zip(ledger.groups()) {
            if *group == [0; Ledger::GROUP] {
                continue;
            }
            for (owned, &ns) in owned.iter_mut().zip(group) {
                if ns > 0 {
                    owned.ns = owned.ns.saturating_add(ns);
                    owned.requests += 1;
                }
            }
        }
    }

    fn row(&self) -> Row {
        let column = |of: fn(&Owned) -> u64| CauseTotals(std::array::from_fn(|cause| of(&self.owned[cause])));
        Row { count: self.count, ns: column(|owned| owned.ns), requests: column(|owned| owned.requests) }
    }

    fn add(&mut self, other: &Row) {
        self.count = self.count.saturating_add(other.count);
        for (mine, (ns, requests)) in self.owned.iter_mut().zip(other.ns.0.iter().zip(&other.requests.0)) {
            mine.ns = mine.ns.saturating_add(*ns);
            mine.requests = mine.requests.saturating_add(*requests);
        }
    }
}

impl BlameTable {
    #[inline]
    pub(crate) fn record(&mut self, group: Group, latency: Span, ledger: &Ledger) {
        debug_assert_eq!(ledger.total(), latency, "a ledger must sum to the latency: {ledger:?}");
        let row = bucket_of::<BITS>(latency.as_ns());
        let rows = &mut self.groups[group as usize];
        if row >= rows.len() {
            grow(rows, row);
        }
        rows[row].record(ledger);
    }

    pub(crate) fn merge(&mut self, other: &BlameTable) {
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            if theirs.len() > mine.len() {
                mine.resize(theirs.len(), Sums::EMPTY);
            }
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.add(&theirs.row());
            }
        }
    }

    /// Nanoseconds each cause owned, over all requests.
    pub fn totals_ns(&self) -> CauseTotals {
        let mut totals = CauseTotals::ZERO;
        for row in self.groups.iter().flatten() {
            totals.add(&row.row().ns);
        }
        totals
    }

    /// The rows of a class that hold anything, highest latency first, with the
    /// smallest latency each stands for.
    pub(crate) fn rows_from_the_top(&self, class: Class) -> impl Iterator<Item = (u64, Row)> + '_ {
        let groups = class.groups();
        let rows = groups.iter().map(|&group| self.groups[group as usize].len()).max().unwrap_or(0);
        (0..rows).rev().filter_map(move |index| {
            let mut row = Row::EMPTY;
            for &group in groups {
                if let Some(part) = self.groups[group as usize].get(index) {
                    row.add(&part.row());
                }
            }
            (row.count > 0).then(|| (ends_of::<BITS>(index).0, row))
        })
    }
}

#[cold]
fn grow(rows: &mut Vec<Sums>, row: usize) {
    rows.resize(row + 1, Sums::EMPTY);
}

/// One row as a result holds it.
#[derive(Serialize, Deserialize)]
struct SavedRow {
    group: Group,
    from_ns: u64,
    count: u64,
    #[serde(serialize_with = "CauseTotals::serialize_sparse")]
    ns: CauseTotals,
    #[serde(serialize_with = "CauseTotals::serialize_sparse")]
    requests: CauseTotals,
}

impl Serialize for BlameTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(Group::ALL.into_iter().flat_map(|group| {
            let rows = self.groups[group as usize].iter().enumerate();
            rows.filter(|(_, sums)| sums.count > 0).map(move |(index, sums)| {
                let Row { count, ns, requests } = sums.row();
                SavedRow { group, from_ns: ends_of::<BITS>(index).0, count, ns, requests }
            })
        }))
    }
}

impl<'de> Deserialize<'de> for BlameTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = BlameTable::default();
        for saved in Vec::<SavedRow>::deserialize(deserializer)? {
            let rows = &mut table.groups[saved.group as usize];
            let index = bucket_of::<BITS>(saved.from_ns);
            if index >= rows.len() {
                grow(rows, index);
            }
            rows[index].add(&Row { count: saved.count, ns: saved.ns, requests: saved.requests });
        }
        Ok(table)
    }
}
