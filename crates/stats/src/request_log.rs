//! One row per measured request, for those who want to look at each.

use flashkeel_engine::{Cause, Completion};

use crate::{Asked, Column, class::OPERATION_NAMES};

/// The log of measured requests, in order of completion.
#[derive(Clone, Debug)]
pub struct RequestLog {
    max_rows: u64,
    not_logged: u64,
    id: Vec<u64>,
    operation: Vec<u8>,
    lba: Vec<u64>,
    sectors: Vec<u64>,
    submitted_ns: Vec<u64>,
    completed_ns: Vec<u64>,
    /// Of each cause; empty as long as no request has met it, as most are for good.
    cause_ns: [Vec<u64>; Cause::COUNT],
    /// The others.
    met: Vec<Cause>,
}

impl RequestLog {
    pub(crate) fn new(max_rows: u64) -> Self {
        RequestLog {
            max_rows,
            not_logged: 0,
            id: Vec::new(),
            operation: Vec::new(),
            lba: Vec::new(),
            sectors: Vec::new(),
            submitted_ns: Vec::new(),
            completed_ns: Vec::new(),
            cause_ns: std::array::from_fn(|_| Vec::new()),
            met: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, asked: &Asked, completion: &Completion) {
        if self.len() as u64 >= self.max_rows {
            self.not_logged += 1;
            return;
        }
        let rows = self.len();
        self.id.push(completion.id.0);
        self.operation.push(asked.operation as u8);
        self.lba.push(asked.lba.0);
        self.sectors.push(u64::from(asked.sectors));
        self.submitted_ns.push(asked.arrived.0);
        self.completed_ns.push(completion.time.0);
        // A ledger sums to its latency, so that nothing is left where no other cause was met.
        let mut left = completion.time.since(asked.arrived).as_ns();
        for &cause in &self.met {
            let ns = completion.ledger.ns(cause);
            self.cause_ns[cause as usize].push(ns);
            left = left.wrapping_sub(ns);
        }
        if left > 0 {
            self.meet(rows, completion);
        }
    }

    /// Begins the columns of causes that no request before this one, the last, had met.
    #[cold]
    fn meet(&mut self, rows: usize, completion: &Completion) {
        for (cause, ns) in completion.ledger.iter() {
            let column = &mut self.cause_ns[cause as usize];
            if ns > 0 && column.is_empty() {
                column.resize(rows, 0);
                column.push(ns);
                self.met.push(cause);
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Measured requests that were not logged because the log was full.
    pub fn not_logged(&self) -> u64 {
        self.not_logged
    }

    /// The columns: `id`, `operation`, `lba` (512-byte sectors), `sectors`,
    /// `submitted_ns`, `completed_ns`, `latency_ns`, and for each cause that any of
    /// the requests has met its label with `_ns` after it.
    pub fn into_columns(self) -> Vec<(String, Column)> {
        let times = self.submitted_ns.iter().zip(&self.completed_ns);
        let latency = times.map(|(submitted, completed)| completed - submitted).collect();
        let operation = Column::Word { indices: self.operation, vocabulary: OPERATION_NAMES };
        let mut columns = vec![
            ("id".to_owned(), Column::U64(self.id)),
            ("operation".to_owned(), operation),
            ("lba".to_owned(), Column::U64(self.lba)),
            ("sectors".to_owned(), Column::U64(self.sectors)),
            ("submitted_ns".to_owned(), Column::U64(self.submitted_ns)),
            ("completed_ns".to_owned(), Column::U64(self.completed_ns)),
            ("latency_ns".to_owned(), Column::U64(latency)),
        ];
        for (cause, ns) in Cause::ALL.iter().zip(self.cause_ns).filter(|(_, ns)| !ns.is_empty()) {
            columns.push((format!("{}_ns", cause.label()), Column::U64(ns)));
        }
        columns
    }
}
