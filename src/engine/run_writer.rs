//! Writes a merge as one sorted run: the body of every flush, compaction and recovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compaction::{Fate, Retention};
use super::cursor::Entry;
use super::disk::Disk;
use super::error::Result;
use super::layout::Layout;
use super::options::Options;
use super::range::KeyRange;
use super::scan::Merge;
use super::segment::{self, SegmentMeta, SegmentWriter, WriterParams};

/// What writing a run needs, and no more.
pub(crate) struct RunWriter<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) database_id: u128,
    pub(crate) options: &'a Options,
    pub(crate) next_number: &'a AtomicU64,
}

impl RunWriter<'_> {
    /// Writes what `retention` keeps of `merge`. The segments are synced; the caller syncs the directory and enters
    /// them in the manifest. Segments end between keys, never between versions of one.
    ///
    /// After a failure nothing of it stays behind, if the disk still lets go of files: they may be what filled it.
    pub(crate) fn write(
        &self,
        layout: &Arc<Layout>,
        merge: &mut Merge,
        retention: &mut Retention,
    ) -> Result<Vec<SegmentMeta>> {
        let mut started = Vec::new();
        self.write_segments(layout, merge, retention, &mut started).inspect_err(|_| {
            for number in started {
                // The failure to report is the first one; what cannot be removed now is removed by the next open.
                let _ = self.disk.remove(&segment::file_name(number));
            }
        })
    }

    fn write_segments(
        &self,
        layout: &Arc<Layout>,
        merge: &mut Merge,
        retention: &mut Retention,
        started: &mut Vec<u64>,
    ) -> Result<Vec<SegmentMeta>> {
        let mut segments = Vec::new();
        let mut writer: Option<SegmentWriter> = None;
        let mut last_key = Vec::new();
        merge.start(&KeyRange::all())?;
        while let Some(entry) = merge.entry() {
            if let Fate::Keep { sequence } = retention.decide(entry.key, entry.sequence, entry.value.is_none()) {
                let full = writer.as_ref().is_some_and(|writer| writer.file_bytes() >= self.options.segment_bytes);
                if full && entry.key != last_key.as_slice() {
                    segments.extend(writer.take().map(SegmentWriter::finish).transpose()?);
                }
                let segment = match &mut writer {
                    Some(segment) => segment,
                    none => none.insert(self.start_segment(layout, !retention.is_bottom(), started)?),
                };
                segment.add(Entry { sequence, ..entry })?;
                last_key.clear();
                last_key.extend_from_slice(entry.key);
            }
            merge.step()?;
        }
        segments.extend(writer.map(SegmentWriter::finish).transpose()?);
        Ok(segments)
    }

    /// The oldest run of a tree has no filter: a key that is nowhere else is mostly there.
    fn start_segment(&self, layout: &Arc<Layout>, filter: bool, started: &mut Vec<u64>) -> Result<SegmentWriter> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let params = WriterParams {
            block_bytes: self.options.block_bytes,
            compression: self.options.compression,
            filter,
            layout: Arc::clone(layout),
        };
        let writer = SegmentWriter::new(self.disk, self.database_id, number, &params)?;
        started.push(number);
        Ok(writer)
    }
}
