//! Any bytes as logs: what is replayed is a beginning of the frames that are there, and the same each time.
//!
//! ```text
//! input := split:u16 bytes        `split` bytes are the first log, the rest is the second
//! ```

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    HEAD_BYTES, LogImage, Place, RecoveryReport, ReplayContext, encode_frame, head_check, location_seed, replay,
    survivors,
};
use crate::engine::batch::{self, Batch, TreeId};

const DATABASE: u128 = 7;
const TREES: usize = 2;

/// Sequence number of a batch, and its operations.
type Applied = (u64, Vec<(u32, Vec<u8>, Option<Vec<u8>>)>);

pub(crate) fn run(input: &[u8]) {
    let Some((split, bytes)) = input.split_first_chunk() else { return };
    let (first, second) = bytes.split_at(usize::from(u16::from_le_bytes(*split)).min(bytes.len()));
    let mut logs = [(1, first), (2, second)].map(|(number, bytes)| LogImage { number, bytes: bytes.to_vec() });
    check(&logs);
    for log in &mut logs {
        repair(DATABASE, log.number, &mut log.bytes);
    }
    check(&logs);
}

/// Makes the checks of all frames right again, one behind the other; a length beyond the end becomes the rest.
pub(crate) fn repair(database_id: u128, number: u64, bytes: &mut [u8]) {
    let mut offset = 0;
    while let Some((head, rest)) = bytes
        .get_mut(offset..)
        .and_then(|rest| rest.split_first_chunk_mut::<HEAD_BYTES>())
        .filter(|(_, r)| !r.is_empty())
    {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]).min(rest.len() as u32);
        if length == 0 {
            return;
        }
        let seed = location_seed(database_id, number, offset as u64);
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[HEAD_BYTES - 8..].copy_from_slice(&xxh3_64_with_seed(&rest[..length as usize], seed).to_le_bytes());
        let check = head_check(head, seed);
        head[4..8].copy_from_slice(&check.to_le_bytes());
        offset += HEAD_BYTES + length as usize;
    }
}

fn check(logs: &[LogImage]) {
    let valid: Vec<_> = logs.iter().flat_map(valid_frames).collect();
    for restarted in [false, true] {
        let context = ReplayContext { database_id: DATABASE, flushed: 0, previous: 0, trees: TREES, restarted };
        let (applied, outcome) = replayed(logs, context);
        assert_eq!((&applied, &outcome), (&replayed(logs, context).0, &replayed(logs, context).1), "read twice");
        assert!(valid.starts_with(&applied), "what is replayed is no beginning of the valid frames");
        assert!(applied.is_sorted_by(|one, next| one.0 < next.0), "batches out of order");
        let Ok(report) = outcome else { continue };
        assert_eq!(report.replayed_batches, applied.len() as u64);
        assert_eq!(report.last_sequence, applied.last().map_or(0, |(sequence, _)| *sequence));
        assert!(report.dropped_bytes <= logs.iter().map(|log| log.bytes.len() as u64).sum());
        assert_eq!(report.dropped_bytes > 0, report.dropped_from.is_some());
        assert!(report.dropped_from.is_some() || applied.len() == valid.len(), "a frame was passed over in silence");
    }
    for log in logs {
        let mut found = Vec::new();
        let each = |sequence: u64, operations: &[batch::Operation<'_>]| {
            found.push((sequence, copied(operations)));
            Ok(())
        };
        let gaps = survivors(log, DATABASE, TREES, each).expect("nothing is refused");
        assert!(found.starts_with(&valid_frames(log)), "a valid frame did not survive");
        assert!(gaps.is_sorted_by(|one, next| one.end < next.start) && gaps.iter().all(|gap| gap.start < gap.end));
        assert!(gaps.last().is_none_or(|gap| gap.end <= log.bytes.len()));
    }
}

fn replayed(logs: &[LogImage], context: ReplayContext) -> (Vec<Applied>, std::result::Result<RecoveryReport, String>) {
    let mut applied = Vec::new();
    let outcome =
        replay(logs.iter().map(Ok), context, |sequence, operations| applied.push((sequence, copied(operations))));
    (applied, outcome.map_err(|error| error.to_string()))
}

/// Frames with a batch that decodes, one behind the other from the start, read by the grammar alone.
fn valid_frames(log: &LogImage) -> Vec<Applied> {
    let (mut rest, mut frames) = (log.bytes.as_slice(), Vec::new());
    while let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let (halves, _) = head.as_chunks::<4>();
        let (words, _) = head.as_chunks::<8>();
        let length = u32::from_le_bytes(halves[0]) as usize;
        let seed = location_seed(DATABASE, log.number, (log.bytes.len() - rest.len()) as u64);
        let head_is_right = u32::from_le_bytes(halves[1]) == head_check(head, seed);
        let Some((batch, next)) = behind.split_at_checked(length).filter(|_| length > 0 && head_is_right) else {
            break;
        };
        let Some(operations) =
            batch::decode(batch).filter(|_| u64::from_le_bytes(words[4]) == xxh3_64_with_seed(batch, seed))
        else {
            break;
        };
        if operations.iter().any(|operation| operation.tree.0 as usize >= TREES) {
            break;
        }
        frames.push((u64::from_le_bytes(words[1]), copied(&operations)));
        rest = next;
    }
    frames
}

fn copied(operations: &[batch::Operation<'_>]) -> Vec<(u32, Vec<u8>, Option<Vec<u8>>)> {
    let copy = |operation: &batch::Operation<'_>| {
        (operation.tree.0, operation.key.to_vec(), operation.value.map(<[u8]>::to_vec))
    };
    operations.iter().map(copy).collect()
}

/// A log of frames with these numbers, each after the one before it.
pub(crate) fn log_of(database_id: u128, number: u64, sequences: std::ops::Range<u64>, synced: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sequence in sequences {
        let mut batch = Batch::new();
        batch.put(TreeId((sequence % 2) as u32), &sequence.to_be_bytes(), format!("value {sequence}").as_bytes());
        batch.delete(TreeId(0), &(sequence - 1).to_be_bytes());
        let seed = location_seed(database_id, number, bytes.len() as u64);
        encode_frame(&mut bytes, seed, Place { sequence, previous: sequence - 1, synced }, batch.as_bytes());
    }
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (first, second) = (log_of(DATABASE, 1, 1..4, 2), log_of(DATABASE, 2, 4..6, 3));
    let input = |first: &[u8], second: &[u8]| [&(first.len() as u16).to_le_bytes(), first, second].concat();
    let torn = &second[..second.len() - 5];
    let with_room = [&first[..], &[0; 100]].concat();
    vec![input(&first, &second), input(&first, torn), input(&with_room, &second), input(&[], &first), vec![0; 60]]
}
