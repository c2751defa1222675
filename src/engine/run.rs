//! Runs: segments with disjoint, ascending key ranges, read as one sorted list.
//!
//! All versions of a key lie in one segment: whoever writes a run cuts it between keys only.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::compaction::KeySpan;
use super::cursor::{Cursor, Entry};
use super::error::{Error, Result};
use super::range::{Direction, KeyRange};
use super::segment::{self, LastBlock, Reading, Segment, SegmentCursor, Separators};
use super::stored::Stored;

/// An ordered list of segments. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Run(Arc<Segments>);

struct Segments {
    list: Box<[Arc<Segment>]>,
    /// Their largest keys.
    ends: Separators,
}

impl Run {
    /// Refuses segments that overlap, or share a key.
    pub(crate) fn new(segments: Vec<Arc<Segment>>) -> Result<Self> {
        for pair in segments.windows(2) {
            let (before, after) = (pair[0].meta(), pair[1].meta());
            if before.largest >= after.smallest {
                return Err(Error::corruption(
                    &segment::file_name(after.number),
                    0,
                    "key range in its run",
                    format!("keys after the last of segment {}", before.number),
                    format!("\"{}\"", after.smallest.escape_ascii()),
                ));
            }
        }
        let smallest = segments.first().map_or(&[][..], |first| &first.meta().smallest);
        let ends = Separators::new(smallest, segments.iter().map(|segment| segment.meta().largest.as_slice()));
        Ok(Self(Arc::new(Segments { list: segments.into(), ends })))
    }

    #[inline]
    pub(crate) fn segments(&self) -> &[Arc<Segment>] {
        &self.0.list
    }

    /// From the first key to the last; `None` for a run of nothing.
    pub(crate) fn span(&self) -> Option<KeySpan> {
        let (first, last) = (self.segments().first()?, self.segments().last()?);
        Some(KeySpan { smallest: first.meta().smallest.clone(), largest: last.meta().largest.clone() })
    }

    /// Number of its blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.segments().iter().map(|segment| segment.blocks()).sum()
    }

    /// A key that about `part` of `parts` of all blocks do not lie above.
    pub(crate) fn key_at(&self, part: u64, parts: u64) -> Option<&[u8]> {
        let mut block = (self.blocks() as u64 * part / parts).checked_sub(1)? as usize;
        self.segments().iter().find_map(|segment| {
            let separator = segment.separator(block);
            block = block.wrapping_sub(segment.blocks());
            separator
        })
    }

    /// As [`Segment::get`], in the one segment that can hold `key`.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        key: &[u8],
        sequence: u64,
        read: impl FnOnce(Option<Stored<'_>>) -> R,
    ) -> Result<Option<R>> {
        match self.segments().get(self.find(key)) {
            Some(segment) if segment.meta().smallest.as_slice() <= key => segment.get(key, sequence, read),
            _ => Ok(None),
        }
    }

    /// For lookups in a run of live entries only, each key once.
    pub(crate) fn settled_reader(&self) -> SettledReader<'_> {
        SettledReader { run: self, segment: 0, last: LastBlock::default() }
    }

    /// Hands every entry of `range`, in order, to `visit` until it breaks. As above, all entries are live. If only the
    /// last `tail` bytes of a key are wanted, what comes before them may be missing.
    pub(crate) fn visit_settled(
        &self,
        range: &KeyRange,
        direction: Direction,
        tail: Option<usize>,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let (from, to) = range.half_open();
        let to = to.as_deref();
        let last = to.map_or(self.segments().len(), |to| self.find(to).saturating_add(1).min(self.segments().len()));
        // Bounds that lie the wrong way round hold nothing.
        let segments = self.segments().get(self.find(&from)..last).unwrap_or_default();
        let mut key = Vec::new();
        let mut visit_segment = |segment: &Arc<Segment>| {
            segment.visit_settled((&from, to), direction, tail, &mut key, &mut visit).map(|flow| flow.is_break())
        };
        for index in 0..segments.len() {
            let is_over = match direction {
                Direction::Forward => visit_segment(&segments[index])?,
                Direction::Reverse => visit_segment(&segments[segments.len() - 1 - index])?,
            };
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Number of entries in `range`. As above, all entries are live.
    pub(crate) fn count_settled(&self, range: &KeyRange) -> Result<u64> {
        let (from, to) = range.half_open();
        let below = self.rank_settled(&from)?;
        let below_end = match to {
            Some(to) => self.rank_settled(&to)?,
            None => self.segments().iter().map(|segment| segment.meta().entries).sum(),
        };
        Ok(below_end.saturating_sub(below))
    }

    fn rank_settled(&self, key: &[u8]) -> Result<u64> {
        let index = self.find(key);
        let before: u64 = self.segments()[..index].iter().map(|segment| segment.meta().entries).sum();
        Ok(before + self.segments().get(index).map_or(Ok(0), |segment| segment.rank_settled(key))?)
    }

    pub(crate) fn cursor(&self, reading: Reading) -> RunCursor {
        RunCursor { run: self.clone(), reading, current: None }
    }

    /// The first segment that can hold `key`, or a later key.
    #[inline]
    fn find(&self, key: &[u8]) -> usize {
        if self.segments().len() == 1 { 0 } else { self.0.ends.find(key) }
    }
}

/// Looks up one key after another in a run of live entries only, each key once.
pub(crate) struct SettledReader<'a> {
    run: &'a Run,
    segment: usize,
    last: LastBlock,
}

impl SettledReader<'_> {
    /// Hands the value of `key` to `read`, or nothing if it is not there.
    #[inline]
    pub(crate) fn get<R>(&mut self, key: &[u8], read: impl FnOnce(Option<Stored<'_>>) -> R) -> Result<R> {
        if let Some(value) = self.last.get(key) {
            return Ok(read(Some(value)));
        }
        let segment = self.run.find(key);
        if segment != self.segment {
            self.segment = segment;
            self.last = LastBlock::default();
        }
        match self.run.segments().get(segment) {
            Some(segment) => segment.get_settled(key, &mut self.last, read),
            None => Ok(read(None)),
        }
    }
}

/// A cursor over a run; one segment of it is open at a time. After an error it is on no entry.
pub(crate) struct RunCursor {
    run: Run,
    reading: Reading,
    /// Index of a segment, and a cursor in it; kept on no entry too, for the next seek.
    current: Option<(usize, SegmentCursor)>,
}

impl RunCursor {
    /// A cursor in segment `index`; `None` if there is no such segment, and then the cursor is on no entry.
    fn enter(&mut self, index: usize) -> Option<&mut SegmentCursor> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != index) {
            let segment = self.run.segments().get(index);
            self.current = segment.map(|segment| (index, SegmentCursor::new(Arc::clone(segment), self.reading)));
        }
        self.current.as_mut().map(|(_, cursor)| cursor)
    }
}

impl Cursor for RunCursor {
    fn first(&mut self) -> Result<()> {
        self.enter(0).map_or(Ok(()), Cursor::first)
    }

    fn last(&mut self) -> Result<()> {
        // An empty run has no last segment either: the index is out of range.
        self.enter(self.run.segments().len().wrapping_sub(1)).map_or(Ok(()), Cursor::last)
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        let index = self.run.find(key);
        let Some(cursor) = self.enter(index) else { return Ok(()) };
        cursor.seek(key, sequence)?;
        if cursor.entry().is_none() {
            // The key is the last of its segment, and all of its versions are newer.
            return self.enter(index + 1).map_or(Ok(()), Cursor::first);
        }
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        let index = self.run.find(key);
        let Some(cursor) = self.enter(index) else { return self.last() };
        cursor.seek_before(key, sequence)?;
        if cursor.entry().is_none() && index > 0 {
            return self.enter(index - 1).map_or(Ok(()), Cursor::last);
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some((index, cursor)) = self.current.as_mut().filter(|(_, cursor)| cursor.is_on_entry()) else {
            return Ok(());
        };
        cursor.next()?;
        if cursor.is_on_entry() {
            return Ok(());
        }
        let index = *index + 1;
        self.enter(index).map_or(Ok(()), Cursor::first)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some((index, cursor)) = self.current.as_mut().filter(|(_, cursor)| cursor.is_on_entry()) else {
            return Ok(());
        };
        cursor.prev()?;
        if cursor.is_on_entry() || *index == 0 {
            return Ok(());
        }
        let index = *index - 1;
        self.enter(index).map_or(Ok(()), Cursor::last)
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.current.as_ref()?.1.entry()
    }
}
