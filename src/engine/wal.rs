//! The log: one file for all trees, one frame for each batch, so that a batch over several trees is there or is not.
//!
//! ```text
//! log   := frame*
//! frame := length:u32 head_check:u32 sequence:u64 previous:u64 synced:u64 body_check:u64 batch:length*u8
//! ```
//!
//! Integers are little-endian. `batch` is the encoding at the head of `batch.rs`. `previous` is the sequence number of
//! the frame before it, in this log or in the one before, and `synced` the highest sequence number known to be durable
//! when the frame was written. `body_check` is the xxh3-64 of the batch, `head_check` the low half of the xxh3-64 of
//! the other fields; both are seeded with database, log number and offset, so that a misplaced, stale or foreign
//! frame is none. The head has a check of its own so that the search for frames behind a damaged one costs a few
//! nanoseconds a byte instead of a hash over every possible length, see [`Search`]. No batch is empty, so no frame begins with four zero
//! bytes, and zeros cost next to nothing.
//!
//! # How a log ends
//!
//! At its last good frame. What follows is one of four things, and [`replay`] tells them apart:
//!
//! - *Unused room*: zeros to the end of the file. A disk allocates room for a log before it is used. It ends the log as
//!   the end of the file would, and the next log must go on where this one ends.
//! - *A torn tail*: nothing valid follows. An interrupted append; dropped and reported.
//! - *A hole*: valid frames follow. If the system was not restarted since (a process may have died, but the page cache
//!   lost nothing), or if a later frame says that the missing one was durable, the log is damaged and is refused with
//!   file and offset. Otherwise a power loss kept later pages and lost earlier ones, which it may do to frames that
//!   were never synced: the log ends before the hole, and the rest is dropped and reported.
//! - *Bytes that somebody made up*: more right heads of wrong frames than any log has. Refused like a hole.
//!
//! A frame that reads as zeros looks like unused room. If it is the very last, nothing tells that it was ever there. If any
//! frame follows, it does: in this log the zeros are a hole like any other, and the first frame of the next log names one
//! before it that is missing.
//!
//! # Why no log file is used twice
//!
//! A file that is overwritten by the next log needs no new room, but then old frames follow the last good one instead of
//! zeros. They are no frames under the number of the new log, so nothing wrong would ever be replayed; but every log would
//! end like a torn one, and a report of dropped bytes would mean nothing any more. To tell old bytes from torn ones takes
//! the older numbers of the file, and a search under each of them at every byte. What it saves is small: of the 80 ns
//! that room for a frame of 260 bytes costs, 50 are for making pages ready, which a file that is used again needs too.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::batch::{self, BATCH_BYTES_MAX};
use super::codec::{Reader, location_seed};
use super::disk::{self, DiskFile};
use super::error::{Error, Result};
use super::manifest::NUMBER_MAX;
use super::sync::{AtomicU64, Ordering};

/// Bytes of a frame before its batch.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8 + 8 + 8;

/// File name of a log.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:020}.wal")
}

/// A log being written.
pub(crate) struct Log {
    pub(crate) number: u64,
    file: Box<dyn DiskFile>,
    database_id: u128,
    offset: AtomicU64,
    /// Sequence number of the last frame appended; 0 when there is none.
    last: AtomicU64,
}

impl Log {
    pub(crate) fn new(file: Box<dyn DiskFile>, database_id: u128, number: u64) -> Arc<Self> {
        Arc::new(Self { number, file, database_id, offset: AtomicU64::new(0), last: AtomicU64::new(0) })
    }

    /// Appends one frame; `buffer` is scratch. Called by one writer at a time.
    pub(crate) fn append(&self, buffer: &mut Vec<u8>, place: Place, batch: &[u8]) -> Result<()> {
        let offset = self.offset.load(Ordering::Relaxed);
        buffer.clear();
        encode_frame(buffer, location_seed(self.database_id, self.number, offset), place, batch);
        self.file.append(buffer)?;
        self.offset.store(offset + buffer.len() as u64, Ordering::Relaxed);
        self.last.store(place.sequence, Ordering::Release);
        Ok(())
    }

    pub(crate) fn last_sequence(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

/// Where a frame stands in the order of all frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) previous: u64,
    pub(crate) synced: u64,
}

fn encode_frame(out: &mut Vec<u8>, seed: u64, place: Place, batch: &[u8]) {
    let length = u32::try_from(batch.len()).expect("batches are limited to less than 4 GiB");
    let start = out.len();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&place.sequence.to_le_bytes());
    out.extend_from_slice(&place.previous.to_le_bytes());
    out.extend_from_slice(&place.synced.to_le_bytes());
    out.extend_from_slice(&xxh3_64_with_seed(batch, seed).to_le_bytes());
    let head = &mut out[start..start + HEAD_BYTES];
    let check = head_check(head, seed);
    head[4..8].copy_from_slice(&check.to_le_bytes());
    out.extend_from_slice(batch);
}

/// Over the head with the check itself left out.
fn head_check(head: &[u8], seed: u64) -> u32 {
    let length = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
    xxh3_64_with_seed(&head[8..HEAD_BYTES], seed ^ length.rotate_left(32)) as u32
}

/// A valid frame of a log that was read.
#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    place: Place,
    batch: &'a [u8],
}

/// Why there is no frame at an offset.
enum NoFrame {
    End,
    Bad { what: &'static str, expected: String, found: String },
}

/// What a head says.
struct Head {
    length: usize,
    stored_check: u32,
    place: Place,
    body_check: u64,
}

impl Head {
    /// Whatever is written in the first bytes; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (length, stored_check) = (reader.u32()? as usize, reader.u32()?);
        let place = Place { sequence: reader.u64()?, previous: reader.u64()?, synced: reader.u64()? };
        Some(Self { length, stored_check, place, body_check: reader.u64()? })
    }

    /// The batch behind it, in the bytes that begin with it, if it can be one.
    fn batch<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let batch = bytes.get(HEAD_BYTES..HEAD_BYTES + self.length)?;
        self.has_length().then_some(batch)
    }

    fn has_length(&self) -> bool {
        (1..=BATCH_BYTES_MAX).contains(&self.length)
    }
}

/// The head at the beginning of some bytes, if it is right.
fn right_head(bytes: &[u8], seed: u64) -> Option<Head> {
    let head = Head::read(bytes)?;
    (head_check(&bytes[..HEAD_BYTES], seed) == head.stored_check).then_some(head)
}

fn decode_frame(bytes: &[u8], offset: usize, seed: u64) -> std::result::Result<Frame<'_>, NoFrame> {
    let bad = |what, expected: String, found: String| Err(NoFrame::Bad { what, expected, found });
    let rest = &bytes[offset..];
    if rest.is_empty() {
        return Err(NoFrame::End);
    }
    let Some(head) = Head::read(rest) else {
        return bad("frame head", format!("{HEAD_BYTES} bytes"), format!("{} bytes", rest.len()));
    };
    let computed = head_check(&rest[..HEAD_BYTES], seed);
    if computed != head.stored_check {
        return bad("frame head checksum", format!("{computed:08X}"), format!("{:08X}", head.stored_check));
    }
    if !head.has_length() {
        return bad("frame length", format!("1 to {BATCH_BYTES_MAX}"), head.length.to_string());
    }
    let Some(batch) = head.batch(rest) else {
        return bad("frame", format!("{} bytes", head.length), format!("{} bytes", rest.len() - HEAD_BYTES));
    };
    let computed = xxh3_64_with_seed(batch, seed);
    if computed != head.body_check {
        return bad("frame checksum", format!("{:016X}", head.body_check), format!("{computed:016X}"));
    }
    Ok(Frame { place: head.place, batch })
}

/// A log file read whole.
pub(crate) struct LogImage {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

impl LogImage {
    pub(crate) fn read(file: &dyn DiskFile, number: u64) -> Result<Self> {
        let len = usize::try_from(file.len()?).expect("64-bit systems only");
        let mut bytes = Vec::new();
        disk::resize(&mut bytes, len, &file_name(number))?;
        file.read_at(0, &mut bytes)?;
        Ok(Self { number, bytes })
    }

    fn seed(&self, database_id: u128, offset: usize) -> u64 {
        location_seed(database_id, self.number, offset as u64)
    }

    fn frame(&self, database_id: u128, offset: usize) -> std::result::Result<Frame<'_>, NoFrame> {
        decode_frame(&self.bytes, offset, self.seed(database_id, offset))
    }

    /// Where the zeros begin that it ends with.
    fn used(&self) -> usize {
        let zeros = self.bytes.rchunks_exact(ZEROS.len()).take_while(|chunk| **chunk == ZEROS).count();
        let rest = &self.bytes[..self.bytes.len() - zeros * ZEROS.len()];
        rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
    }
}

/// What there is behind damage.
#[derive(Debug, PartialEq, Eq)]
enum Behind<'a> {
    Frame {
        offset: usize,
        frame: Frame<'a>,
    },
    /// More right heads of wrong frames than any log has, the last of them here.
    Overlap {
        offset: usize,
    },
}

/// Finds the frames of a log wherever they begin, in time proportional to its length.
///
/// At every byte a head is looked for, which costs the same anywhere; the batch behind a right head costs its length.
/// Heads of frames that were appended do not overlap one another's batches, so all batches together are no longer than
/// the log, whatever became of them; of other bytes one head in 2^32 is right by chance. So a search that has read more
/// of batches that are wrong than [`WRONG_MAX`] times the log is in bytes that somebody made up.
struct Search<'a> {
    log: &'a LogImage,
    database_id: u128,
    offset: usize,
    /// Bytes of batches that were read and are wrong.
    wrong: usize,
}

/// As many times the length of a log are read in vain, at most.
const WRONG_MAX: usize = 4;

impl<'a> Search<'a> {
    fn new(log: &'a LogImage, database_id: u128, from: usize) -> Self {
        Self { log, database_id, offset: from, wrong: 0 }
    }

    /// Goes on behind the head of a frame that is wrong, at `offset`; `true` if there were too many of them.
    fn is_too_wrong(&mut self, offset: usize, batch_bytes: usize) -> bool {
        self.offset = offset + 1;
        self.wrong += batch_bytes;
        self.wrong > WRONG_MAX * self.log.bytes.len()
    }
}

impl<'a> Iterator for Search<'a> {
    type Item = Behind<'a>;

    fn next(&mut self) -> Option<Behind<'a>> {
        let bytes = &self.log.bytes;
        while self.offset + HEAD_BYTES <= bytes.len() {
            let offset = self.offset;
            // No frame begins with four zero bytes; most of a log may be zeros.
            let zeros = leading_zeros(&bytes[offset..]);
            if zeros >= 4 {
                self.offset += zeros - 3;
                continue;
            }
            let seed = self.log.seed(self.database_id, offset);
            let head = right_head(&bytes[offset..], seed);
            let Some((head, batch)) = head.and_then(|head| head.batch(&bytes[offset..]).map(|batch| (head, batch)))
            else {
                self.offset += 1;
                continue;
            };
            if head.body_check == xxh3_64_with_seed(batch, seed) {
                self.offset += HEAD_BYTES + batch.len();
                return Some(Behind::Frame { offset, frame: Frame { place: head.place, batch } });
            }
            if self.is_too_wrong(offset, batch.len()) {
                return Some(Behind::Overlap { offset });
            }
        }
        None
    }
}

/// Zeros are skipped by so many at a time.
const ZEROS: [u8; 64] = [0; 64];

fn leading_zeros(bytes: &[u8]) -> usize {
    let zeros = ZEROS.len() * bytes.chunks_exact(ZEROS.len()).take_while(|chunk| **chunk == ZEROS).count();
    zeros + bytes[zeros..].iter().take_while(|&&byte| byte == 0).count()
}

/// What opening a database found in its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Batches read back from logs.
    pub replayed_batches: u64,
    /// Bytes of logs dropped behind the last good frame; zeros that a log ends with do not count.
    pub dropped_bytes: u64,
    /// Where the first dropped byte was, as file name and offset.
    pub dropped_from: Option<(String, u64)>,
    /// Sequence number of the last batch that is there.
    pub last_sequence: u64,
}

/// What [`replay`] must know besides the logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayContext {
    pub(crate) database_id: u128,
    /// Everything up to this sequence number is in segments.
    pub(crate) flushed: u64,
    /// Sequence number the first frame names as the one before it.
    pub(crate) previous: u64,
    /// How many trees there are.
    pub(crate) trees: usize,
    /// Whether unsynced writes may have been lost since the logs were written.
    pub(crate) restarted: bool,
}

/// Hands every batch that survived, in order, to `apply`, and says what was dropped. See the head of this file for
/// the rule that tells a torn tail from damage. One log is held at a time.
pub(crate) fn replay<L: Borrow<LogImage>>(
    logs: impl IntoIterator<Item = Result<L>>,
    context: ReplayContext,
    mut apply: impl FnMut(u64, &[batch::Operation<'_>]),
) -> Result<RecoveryReport> {
    let mut logs = logs.into_iter();
    let mut report = RecoveryReport { last_sequence: context.flushed, ..RecoveryReport::default() };
    let mut previous = context.previous;
    while let Some(held) = logs.next().transpose()? {
        let log: &LogImage = held.borrow();
        let mut offset = 0;
        loop {
            let damage = match log.frame(context.database_id, offset) {
                Ok(frame) if frame.place.previous != previous => NoFrame::Bad {
                    what: "frame order",
                    expected: format!("a frame after {previous}"),
                    found: format!("a frame after {}", frame.place.previous),
                },
                Ok(frame) if !(report.last_sequence + 1..=NUMBER_MAX).contains(&frame.place.sequence) => NoFrame::Bad {
                    what: "sequence number",
                    expected: format!("{} to {NUMBER_MAX}", report.last_sequence + 1),
                    found: frame.place.sequence.to_string(),
                },
                Ok(frame) => {
                    // A batch that was written whole and does not decode is no torn tail, wherever it stands.
                    let operations = decode_batch(frame.batch, context.trees).map_err(|(what, expected, found)| {
                        Error::corruption(&file_name(log.number), offset as u64, what, expected, found)
                    })?;
                    apply(frame.place.sequence, &operations);
                    previous = frame.place.sequence;
                    report.last_sequence = report.last_sequence.max(previous);
                    report.replayed_batches += 1;
                    offset += HEAD_BYTES + frame.batch.len();
                    continue;
                }
                Err(no_frame) => no_frame,
            };
            let NoFrame::Bad { what, expected, found } = damage else { break };
            if offset >= log.used() {
                break;
            }
            let name = file_name(log.number);
            let mut rest = Rest::default();
            rest.add(log, offset, previous, context);
            drop(held);
            for later in logs {
                rest.add(later?.borrow(), 0, previous, context);
            }
            if rest.is_damage {
                return Err(Error::corruption(&name, offset as u64, what, expected, found));
            }
            report.dropped_bytes = rest.bytes;
            report.dropped_from = Some((name, offset as u64));
            return Ok(report);
        }
    }
    Ok(report)
}

/// Hands every batch of a log that is whole to `each`, however much is damaged between them; answers what is damaged.
/// Ends where [`Search`] does.
pub(crate) fn survivors(
    log: &LogImage,
    database_id: u128,
    trees: usize,
    mut each: impl FnMut(u64, &[batch::Operation<'_>]) -> Result<()>,
) -> Result<Vec<Range<usize>>> {
    let used = log.used();
    let (mut end, mut gaps) = (0, Vec::new());
    let mut search = Search::new(log, database_id, 0);
    while let Some(Behind::Frame { offset, frame }) = search.next() {
        let Ok(operations) = decode_batch(frame.batch, trees) else {
            if search.is_too_wrong(offset, frame.batch.len()) {
                break;
            }
            continue;
        };
        if offset > end {
            gaps.push(end..offset);
        }
        each(frame.place.sequence, &operations)?;
        end = offset + HEAD_BYTES + frame.batch.len();
    }
    if end < used {
        gaps.push(end..used);
    }
    Ok(gaps)
}

/// What is wrong with a batch: the part, what was expected, and what was found.
type BadBatch = (&'static str, String, String);

/// The operations of a batch, all of them on trees there are.
fn decode_batch(bytes: &[u8], trees: usize) -> std::result::Result<Vec<batch::Operation<'_>>, BadBatch> {
    let operations =
        batch::decode(bytes).ok_or_else(|| ("batch", "operations".to_owned(), "other bytes".to_owned()))?;
    match operations.iter().find(|operation| operation.tree.0 as usize >= trees) {
        Some(operation) => Err(("tree of a batch", format!("one of {trees}"), format!("tree {}", operation.tree.0))),
        None => Ok(operations),
    }
}

/// Everything from the first bad byte on.
#[derive(Default)]
struct Rest {
    bytes: u64,
    is_damage: bool,
}

impl Rest {
    /// Adds what a log holds from `from` on; `previous` is the last batch before the first bad byte.
    fn add(&mut self, log: &LogImage, from: usize, previous: u64, context: ReplayContext) {
        self.is_damage |= Search::new(log, context.database_id, from).any(|behind| match behind {
            Behind::Frame { frame, .. } => !context.restarted || frame.place.synced > previous,
            Behind::Overlap { .. } => true,
        });
        self.bytes += (log.used() - from) as u64;
    }
}

#[cfg(feature = "cli")]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
