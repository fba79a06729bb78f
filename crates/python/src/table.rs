//! Tables as Arrow capsules.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, ListArray, RecordBatch, RecordBatchIterator, StringArray,
    UInt8Array, UInt64Array,
    ffi_stream::FFI_ArrowArrayStream,
    types::{UInt8Type, UInt64Type},
};
use flashkeel_stats::Column;
use pyo3::{
    prelude::*,
    types::{PyAny, PyCapsule},
};

/// A table for any Arrow library: it has `__arrow_c_stream__`.
#[pyclass(frozen, module = "flashkeel._core", name = "Table")]
#[derive(Clone)]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// A table of columns of equal length.
    pub fn new(columns: Vec<(String, Column)>) -> Table {
        let arrays = columns.into_iter().map(|(name, column)| (name, array(column)));
        Table { batch: RecordBatch::try_from_iter(arrays).expect("columns of equal length") }
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow C stream; a requested schema is not honoured, as
    /// the protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

fn array(column: Column) -> ArrayRef {
    match column {
        Column::U64(values) => Arc::new(UInt64Array::from(values)),
        Column::F64(values) => Arc::new(Float64Array::from(values)),
        Column::Word { indices, vocabulary } => {
            let words = Arc::new(StringArray::from(vocabulary.to_vec()));
            Arc::new(DictionaryArray::<UInt8Type>::new(UInt8Array::from(indices), words))
        }
        Column::Lists(rows) => {
            let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
            Arc::new(ListArray::from_iter_primitive::<UInt64Type, _, _>(rows))
        }
    }
}
