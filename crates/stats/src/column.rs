//! Columns of a table, ready to become Arrow arrays.

/// One column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Counts, bytes, nanoseconds.
    U64(Vec<u64>),
    /// Means; none where there was nothing to average.
    F64(Vec<Option<f64>>),
    /// Words of a small vocabulary, by index.
    Word {
        /// One index into `vocabulary` per row.
        indices: Vec<u8>,
        /// The words.
        vocabulary: &'static [&'static str],
    },
    /// Numbers, as many in a row as there are.
    Lists(Vec<Vec<u64>>),
}

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::U64(values) => values.len(),
            Column::F64(values) => values.len(),
            Column::Word { indices, .. } => indices.len(),
            Column::Lists(rows) => rows.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
