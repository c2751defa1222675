//! Writes a merge as one sorted run: the body of every flush, compaction and recovery.

use std::sync::Arc;

use super::compaction::{Fate, Retention};
use super::cursor::Entry;
use super::disk::Disk;
use super::error::Result;
use super::layout::Layout;
use super::numbers::FileNumbers;
use super::options::Options;
use super::range::KeyRange;
use super::scan::Merge;
use super::segment::{self, SegmentMeta, SegmentWriter, WriterParams};

/// Versions that are read between two looks at whether the run is still wanted.
const GIVES_UP_EVERY: u64 = 1024;

/// What writing a run needs, and no more.
pub(crate) struct RunWriter<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) database_id: u128,
    pub(crate) options: &'a Options,
    pub(crate) numbers: &'a FileNumbers,
}

impl RunWriter<'_> {
    /// Writes what `retention` keeps of `merge` in `range`. The segments are synced; the caller syncs the directory and
    /// enters them in the manifest. Segments end between keys, never between versions of one.
    ///
    /// `None` if `gives_up`, which is asked now and then, says so. After that, or a failure, nothing stays behind.
    pub(crate) fn write(
        &self,
        layout: &Arc<Layout>,
        merge: &mut Merge,
        range: &KeyRange,
        retention: &mut Retention,
        gives_up: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<SegmentMeta>>> {
        let mut started = Vec::new();
        let written = self.write_segments(layout, merge, range, retention, gives_up, &mut started);
        if !matches!(written, Ok(Some(_))) {
            discard(self.disk, started);
        }
        written
    }

    fn write_segments(
        &self,
        layout: &Arc<Layout>,
        merge: &mut Merge,
        range: &KeyRange,
        retention: &mut Retention,
        gives_up: &dyn Fn() -> bool,
        started: &mut Vec<u64>,
    ) -> Result<Option<Vec<SegmentMeta>>> {
        let mut segments = Vec::new();
        let mut writer: Option<SegmentWriter> = None;
        let mut versions = 0_u64;
        merge.start(range)?;
        while let Some(entry) = merge.entry().filter(|entry| !range.is_above(entry.key)) {
            versions += 1;
            if versions.is_multiple_of(GIVES_UP_EVERY) && gives_up() {
                return Ok(None);
            }
            if let Fate::Keep { sequence } = retention.decide(entry.key, entry.sequence, entry.value.is_none()) {
                let is_full = |writer: &SegmentWriter| {
                    writer.is_full(self.options.segment_bytes) && writer.last_key() != entry.key
                };
                if writer.as_ref().is_some_and(is_full) {
                    segments.extend(writer.take().map(SegmentWriter::finish).transpose()?);
                }
                let segment = match &mut writer {
                    Some(segment) => segment,
                    none => none.insert(self.start_segment(layout, retention.is_bottom(), started)?),
                };
                segment.add(Entry { sequence, ..entry })?;
            }
            merge.step()?;
        }
        segments.extend(writer.map(SegmentWriter::finish).transpose()?);
        Ok(Some(segments))
    }

    /// The oldest run of a tree has no filter: a key that is nowhere else is mostly there. The others will soon be merged
    /// again, and to be written quickly is worth more than to be small.
    fn start_segment(&self, layout: &Arc<Layout>, bottom: bool, started: &mut Vec<u64>) -> Result<SegmentWriter> {
        let number = self.numbers.allot()?;
        let params = WriterParams {
            block_bytes: self.options.block_bytes,
            compression: if bottom { self.options.compression } else { self.options.compression.fast() },
            filter: !bottom,
            layout: Arc::clone(layout),
        };
        let writer = SegmentWriter::new(self.disk, self.database_id, number, &params)?;
        started.push(number);
        Ok(writer)
    }
}

/// Removes segments that no manifest names, if the disk lets go of files: they may be what filled it. What cannot be
/// removed now is removed by the next open.
pub(crate) fn discard(disk: &dyn Disk, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let _ = disk.remove(&segment::file_name(number));
    }
}
