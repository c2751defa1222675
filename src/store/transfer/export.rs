//! Records out, in the order of their ids, on one snapshot.

use std::io::Write;

use super::lines;
use super::{Format, TransferError};
use crate::store::codec;
use crate::store::collection::Collection;
use crate::store::error::Error;
use crate::store::index::describe_id;
use crate::store::kv::Kv;
use crate::store::record::Record;
use crate::store::walk::Walk;

impl<R: Record, V: Kv> Collection<R, V> {
    /// Writes every record to `out` and answers how many there were. Others may write meanwhile: what is exported is the
    /// state at the call. Memory is that of one record.
    pub fn export(&self, format: Format, mut out: impl Write) -> Result<u64, TransferError> {
        let mut stopped = None;
        let (mut records, mut text) = (0, Vec::new());
        let walked = Walk::all(self.trees.primary).visit(&self.kv.snapshot()?, usize::MAX, |id, stored| {
            let record = codec::record::<R>(id, stored)?;
            text.clear();
            let written = write_checked(&record, id, format, records == 0, &mut text)
                .and_then(|()| out.write_all(&text).map_err(TransferError::Write));
            records += 1;
            written.map_err(|error| {
                stopped = Some(error);
                // Ends the walk; what is told is what stopped it.
                Error::invalid("export", "stopped", "to go on")
            })
        });
        match (stopped, walked) {
            (Some(error), _) => return Err(error),
            (None, walked) => walked?,
        };
        out.flush().map_err(TransferError::Write)?;
        Ok(records)
    }
}

/// The text of a record, that leads back to it; of the first one with what comes before all records.
fn write_checked<R: Record>(
    record: &R,
    id: &[u8],
    format: Format,
    is_first: bool,
    text: &mut Vec<u8>,
) -> Result<(), TransferError> {
    let refused =
        |reason: String| Err(TransferError::NotWritten { collection: R::COLLECTION, id: describe_id::<R>(id), reason });
    let body = match lines::write(record, format, text) {
        Ok(body) => body,
        Err(reason) => return refused(reason),
    };
    let back = match lines::read_back::<R>(text, format) {
        Ok(back) => back,
        Err(reason) => return refused(format!("it could not be read back: {reason}")),
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    codec::encode(record, &mut before)?;
    codec::encode(&back, &mut after)?;
    if before != after {
        return refused("it would be another record when it is read back".to_owned());
    }
    if !is_first {
        text.drain(..body);
    }
    Ok(())
}
