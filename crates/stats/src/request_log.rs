//! One row per measured request, for those who want to look at each.

use std::sync::mpsc::SyncSender;

use flashkeel_engine::{Cause, Completion};

use crate::{Asked, Column, class::OPERATION_NAMES};

/// The log of measured requests, in order of completion. It goes to who writes it down some
/// rows at a time: all of it may be larger than memory.
#[derive(Clone, Debug)]
pub(crate) struct RequestLog {
    rows_left: u64,
    pub not_logged: u64,
    rows: LogRows,
    out: SyncSender<LogRows>,
}

/// Rows of the log, one after another.
#[derive(Clone, Debug)]
pub struct LogRows {
    id: Vec<u64>,
    operation: Vec<u8>,
    /// By its number; none where there is only one.
    tenant: Option<Vec<u64>>,
    lba: Vec<u64>,
    sectors: Vec<u64>,
    submitted_ns: Vec<u64>,
    completed_ns: Vec<u64>,
    /// Of each cause; empty as long as no request has met it, as most are for good.
    cause_ns: [Vec<u64>; Cause::COUNT],
    /// Causes that requests up to the last of these have met.
    met: Vec<Cause>,
}

impl RequestLog {
    pub fn new(max_rows: u64, out: SyncSender<LogRows>, has_tenants: bool) -> Self {
        RequestLog { rows_left: max_rows, not_logged: 0, rows: LogRows::new(Vec::new(), has_tenants), out }
    }

    pub fn record(&mut self, asked: &Asked, completion: &Completion) {
        if self.rows_left == 0 {
            self.not_logged += 1;
            return;
        }
        self.rows_left -= 1;
        let rows = &mut self.rows;
        rows.id.push(completion.id.0);
        rows.operation.push(asked.operation as u8);
        if let Some(tenant) = &mut rows.tenant {
            tenant.push(u64::from(asked.tenant.0));
        }
        rows.lba.push(asked.lba.0);
        rows.sectors.push(u64::from(asked.sectors));
        rows.submitted_ns.push(asked.arrived.0);
        rows.completed_ns.push(completion.time.0);
        // A ledger sums to its latency, so that nothing is left where no other cause was met.
        let mut left = completion.time.since(asked.arrived).as_ns();
        for &cause in &rows.met {
            let ns = completion.ledger.ns(cause);
            rows.cause_ns[cause as usize].push(ns);
            left = left.wrapping_sub(ns);
        }
        if left > 0 {
            self.meet(completion);
        }
        if self.rows.len() == LogRows::MOST {
            self.flush();
        }
    }

    /// Begins the columns of causes that no request before this one, the last, had met.
    #[cold]
    fn meet(&mut self, completion: &Completion) {
        let rows = &mut self.rows;
        let before = rows.len() - 1;
        for (cause, ns) in completion.ledger.iter() {
            let column = &mut rows.cause_ns[cause as usize];
            if ns > 0 && !rows.met.contains(&cause) {
                column.reserve(LogRows::MOST);
                column.resize(before, 0);
                column.push(ns);
                rows.met.push(cause);
            }
        }
    }

    /// Hands over the rows there are.
    pub fn flush(&mut self) {
        let next = LogRows::new(self.rows.met.clone(), self.rows.tenant.is_some());
        let rows = std::mem::replace(&mut self.rows, next);
        // Who takes no more of them has failed, and says so.
        let _ = self.out.send(rows);
    }
}

impl LogRows {
    /// Rows that come together, but for the last.
    pub const MOST: usize = 1 << 17;

    fn new(met: Vec<Cause>, has_tenants: bool) -> Self {
        let mut cause_ns = std::array::from_fn(|_| Vec::new());
        met.iter().for_each(|&cause| cause_ns[cause as usize] = Vec::with_capacity(Self::MOST));
        LogRows {
            id: Vec::with_capacity(Self::MOST),
            operation: Vec::with_capacity(Self::MOST),
            tenant: has_tenants.then(|| Vec::with_capacity(Self::MOST)),
            lba: Vec::with_capacity(Self::MOST),
            sectors: Vec::with_capacity(Self::MOST),
            submitted_ns: Vec::with_capacity(Self::MOST),
            completed_ns: Vec::with_capacity(Self::MOST),
            cause_ns,
            met,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// The columns: `id`, `operation`, of several tenants `tenant` by its number, `lba` (512-byte
    /// sectors), `sectors`, `submitted_ns`, `completed_ns`, `latency_ns`, and for each cause that
    /// any request up to the last of these has met its label with `_ns` after it, in the order
    /// of [`Cause::ALL`].
    pub fn into_columns(self) -> Vec<(String, Column)> {
        let times = self.submitted_ns.iter().zip(&self.completed_ns);
        let latency = times.map(|(submitted, completed)| completed - submitted).collect();
        let operation = Column::Word { indices: self.operation, vocabulary: OPERATION_NAMES };
        let mut columns = vec![("id".to_owned(), Column::U64(self.id)), ("operation".to_owned(), operation)];
        columns.extend(self.tenant.map(|tenant| ("tenant".to_owned(), Column::U64(tenant))));
        columns.extend([
            ("lba".to_owned(), Column::U64(self.lba)),
            ("sectors".to_owned(), Column::U64(self.sectors)),
            ("submitted_ns".to_owned(), Column::U64(self.submitted_ns)),
            ("completed_ns".to_owned(), Column::U64(self.completed_ns)),
            ("latency_ns".to_owned(), Column::U64(latency)),
        ]);
        for (&cause, ns) in Cause::ALL.iter().zip(self.cause_ns) {
            if self.met.contains(&cause) {
                columns.push((format!("{}_ns", cause.label()), Column::U64(ns)));
            }
        }
        columns
    }
}
