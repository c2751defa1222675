//! Logs as crashes, damage and old files leave them, and what is replayed of them.

use std::cell::Cell;

use super::super::batch::{Batch, TreeId};
use super::*;

const DATABASE: u128 = 7;
const SAME_BOOT: ReplayContext =
    ReplayContext { database_id: DATABASE, flushed: 0, previous: 0, trees: 1, restarted: false };
const RESTARTED: ReplayContext = ReplayContext { restarted: true, ..SAME_BOOT };

/// A log whose frame `i` puts one key, and names all up to `synced` as durable.
fn log(number: u64, sequences: std::ops::Range<u64>, synced: u64) -> LogImage {
    let mut bytes = Vec::new();
    for sequence in sequences {
        let mut batch = Batch::new();
        batch.put(TreeId(0), &sequence.to_be_bytes(), b"value");
        let seed = location_seed(DATABASE, number, bytes.len() as u64);
        encode_frame(&mut bytes, seed, Place { sequence, previous: sequence - 1, synced }, batch.as_bytes());
    }
    LogImage { number, bytes }
}

fn replayed(logs: &[LogImage], context: ReplayContext) -> Result<(Vec<u64>, RecoveryReport)> {
    let mut sequences = Vec::new();
    let report = replay(logs.iter().map(Ok), context, |sequence, operations| {
        assert_eq!(operations[0].key, sequence.to_be_bytes());
        sequences.push(sequence);
    })?;
    Ok((sequences, report))
}

fn frame_bytes() -> usize {
    log(1, 1..2, 0).bytes.len()
}

/// Counts how many of its kind there are.
struct Held<'a> {
    log: LogImage,
    held: &'a Cell<usize>,
}

impl Borrow<LogImage> for Held<'_> {
    fn borrow(&self) -> &LogImage {
        &self.log
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

#[test]
fn no_more_than_one_log_is_in_memory() {
    let held = Cell::new(0);
    let replayed = |logs: Vec<LogImage>| {
        let read = logs.into_iter().map(|log| {
            held.set(held.get() + 1);
            assert_eq!(held.get(), 1);
            Ok(Held { log, held: &held })
        });
        replay(read, RESTARTED, |_, _| {}).expect("nothing is damaged").replayed_batches
    };
    let logs = || vec![log(1, 1..4, 0), log(2, 4..6, 0), log(3, 6..9, 0)];
    assert_eq!(replayed(logs()), 8);
    let mut torn = logs();
    torn[0].bytes[3 * HEAD_BYTES] ^= 1;
    assert!(replayed(torn) < 8, "what comes behind the hole was read as well, to know that it is none");
}

#[test]
fn logs_are_replayed_in_order() {
    let (sequences, report) = replayed(&[log(1, 1..4, 0), log(2, 4..4, 0), log(3, 4..7, 0)], SAME_BOOT).expect("sound");
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
    assert_eq!(report, RecoveryReport { replayed_batches: 6, last_sequence: 6, ..RecoveryReport::default() });
}

#[test]
fn a_torn_tail_is_dropped_at_every_byte() {
    let whole = log(1, 1..4, 0);
    for cut in 2 * frame_bytes()..whole.bytes.len() {
        let torn = LogImage { number: 1, bytes: whole.bytes[..cut].to_vec() };
        let (sequences, report) = replayed(&[torn], SAME_BOOT).expect("opens");
        assert_eq!(sequences, [1, 2]);
        let left = whole.bytes[2 * frame_bytes()..cut].iter().rposition(|&byte| byte != 0);
        assert_eq!(report.dropped_bytes as usize, left.map_or(0, |last| last + 1));
        assert_eq!(report.dropped_from.is_some(), report.dropped_bytes > 0);
    }
}

#[test]
fn every_flipped_bit_before_valid_frames_is_refused_with_file_and_offset() {
    let at = frame_bytes();
    for bit in at * 8..2 * at * 8 {
        let mut damaged = log(1, 1..4, 0);
        damaged.bytes[bit / 8] ^= 1 << (bit % 8);
        let Err(Error::Corruption { file, offset, .. }) = replayed(&[damaged], SAME_BOOT) else {
            panic!("bit {bit} went unnoticed");
        };
        assert_eq!((file.as_str(), offset), ("00000000000000000001.wal", at as u64));
    }
}

#[test]
fn a_hole_in_frames_that_were_never_synced_ends_the_log_after_a_power_loss() {
    let mut holed = log(1, 1..4, 0);
    holed.bytes[frame_bytes()..2 * frame_bytes()].fill(0);
    let (sequences, report) = replayed(&[holed, log(2, 4..6, 0)], RESTARTED).expect("opens");
    assert_eq!(sequences, [1]);
    assert_eq!(report.dropped_from, Some((file_name(1), frame_bytes() as u64)));
    assert_eq!(report.dropped_bytes as usize, 4 * frame_bytes());
}

#[test]
fn a_hole_in_frames_that_were_synced_is_damage_even_after_a_power_loss() {
    let mut holed = log(1, 1..4, 0);
    holed.bytes[frame_bytes()..2 * frame_bytes()].fill(0);
    assert!(replayed(&[holed, log(2, 4..6, 3)], RESTARTED).is_err());
}

/// A checksum proves nothing about sense: such a frame is refused, and nobody counts on from its number.
#[test]
fn a_frame_with_a_number_or_a_tree_that_cannot_be_is_refused_with_file_and_offset() {
    let forged = |sequence, tree| {
        let mut batch = Batch::new();
        batch.put(tree, b"key", b"value");
        let mut bytes = log(1, 1..3, 0).bytes;
        let seed = location_seed(DATABASE, 1, bytes.len() as u64);
        encode_frame(&mut bytes, seed, Place { sequence, previous: 2, synced: 0 }, batch.as_bytes());
        LogImage { number: 1, bytes }
    };
    for (sequence, tree) in [(u64::MAX, 0), (NUMBER_MAX + 1, 0), (2, 0), (0, 0), (3, 1), (3, u32::MAX)] {
        let refused = replay([Ok(forged(sequence, TreeId(tree)))], SAME_BOOT, |_, _| {});
        let Err(Error::Corruption { offset, .. }) = refused else { panic!("{sequence} in tree {tree}") };
        assert_eq!(offset, 2 * frame_bytes() as u64);
    }
    assert!(replay([Ok(forged(7, TreeId(0)))], SAME_BOOT, |_, _| {}).is_ok(), "numbers may be left out");
}

#[test]
fn a_missing_log_is_noticed() {
    assert!(replayed(&[log(1, 1..3, 0), log(3, 4..6, 0)], SAME_BOOT).is_err());
    let (sequences, _) = replayed(&[log(1, 1..3, 0), log(3, 4..6, 0)], RESTARTED).expect("opens");
    assert_eq!(sequences, [1, 2]);
}

#[test]
fn frames_of_another_log_or_place_are_none() {
    let foreign = LogImage { number: 2, bytes: log(1, 1..3, 0).bytes };
    assert_eq!(replayed(&[foreign], SAME_BOOT).expect("opens").0, [0; 0]);
    let mut shifted = log(1, 1..3, 0);
    shifted.bytes.insert(0, 0);
    assert_eq!(replayed(&[shifted], SAME_BOOT).expect("opens").0, [0; 0]);
}

#[test]
fn garbage_behind_the_end_is_dropped() {
    for filler in [0xFF, 0x80, 1] {
        let mut padded = log(1, 1..3, 0);
        padded.bytes.extend_from_slice(&[filler; 5000]);
        let (sequences, report) = replayed(&[padded], SAME_BOOT).expect("opens");
        assert_eq!((sequences.as_slice(), report.dropped_bytes), ([1, 2].as_slice(), 5000));
    }
}

/// The log with room for more behind its end.
fn with_room(mut log: LogImage) -> LogImage {
    log.bytes.resize(log.bytes.len() + 5000, 0);
    log
}

#[test]
fn unused_room_ends_a_log_and_is_not_dropped() {
    for context in [SAME_BOOT, RESTARTED] {
        let logs = [with_room(log(1, 1..3, 0)), with_room(log(2, 3..3, 0)), with_room(log(3, 3..5, 0))];
        let (sequences, report) = replayed(&logs, context).expect("opens");
        assert_eq!(sequences, [1, 2, 3, 4]);
        assert_eq!((report.dropped_bytes, report.dropped_from), (0, None));
    }
}

/// What was lost reads as unused room.
#[test]
fn a_last_frame_of_zeros_is_missed_by_the_next_log() {
    let mut zeroed = with_room(log(1, 1..4, 0));
    zeroed.bytes[2 * frame_bytes()..].fill(0);
    let logs = [zeroed, with_room(log(2, 4..6, 3))];
    let refused = replayed(&logs, SAME_BOOT).expect_err("a frame is missing");
    assert!(matches!(refused, Error::Corruption { file, offset: 0, .. } if file == file_name(2)));
    assert!(replayed(&logs, RESTARTED).is_err(), "it was synced");
    let [zeroed, _] = logs;
    let (sequences, report) = replayed(&[zeroed, log(2, 4..6, 2)], RESTARTED).expect("opens");
    assert_eq!(sequences, [1, 2]);
    assert_eq!((report.dropped_bytes as usize, report.dropped_from), (2 * frame_bytes(), Some((file_name(2), 0))));
}

#[test]
fn a_tail_torn_in_unused_room_is_dropped_whatever_part_of_it_is_there() {
    let whole = with_room(log(1, 1..4, 0));
    let last = 2 * frame_bytes()..3 * frame_bytes();
    for lost in 0..frame_bytes() - 8 {
        let mut torn = LogImage { number: 1, bytes: whole.bytes.clone() };
        torn.bytes[last.clone()][lost..lost + 8].fill(0);
        if torn.bytes == whole.bytes {
            continue;
        }
        let (sequences, report) = replayed(&[torn], SAME_BOOT).expect("opens");
        assert_eq!(sequences, [1, 2]);
        assert_eq!(report.dropped_from, Some((file_name(1), last.start as u64)));
        assert!((1..=frame_bytes()).contains(&(report.dropped_bytes as usize)));
    }
}

#[test]
fn old_frames_behind_the_end_are_neither_a_hole_nor_replayed() {
    let mut recycled = log(7, 1..3, 0);
    let end = recycled.bytes.len();
    recycled.bytes.extend_from_slice(&log(4, 1..9, 8).bytes[end..]);
    let (sequences, report) = replayed(&[recycled], SAME_BOOT).expect("opens");
    assert_eq!(sequences, [1, 2]);
    assert_eq!(report.dropped_from, Some((file_name(7), end as u64)));
}

#[test]
fn a_frame_behind_zeros_of_any_length_is_found() {
    for zeros in 0..200 {
        let seed = location_seed(DATABASE, 1, 3 + zeros as u64);
        let mut bytes = [vec![1; 3], vec![0; zeros]].concat();
        let mut batch = Batch::new();
        batch.put(TreeId(0), b"key", b"value");
        encode_frame(&mut bytes, seed, Place { sequence: 1, previous: 0, synced: 9 }, batch.as_bytes());
        let image = LogImage { number: 1, bytes };
        let found: Vec<_> = Search::new(&image, DATABASE, 0).collect();
        assert!(matches!(&found[..], [Behind::Frame { frame, .. }] if frame.place.synced == 9), "behind {zeros} zeros");
        assert_eq!((image.used(), leading_zeros(&image.bytes[3..])), (image.bytes.len(), zeros));
    }
}

/// A log of heads that are right, so close together as they can be, each of a batch that goes on to the end of the log and
/// is wrong. All of these batches used to be read, whatever they took: hours for a log of this length.
fn log_of_heads(len: usize) -> LogImage {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() + HEAD_BYTES < len {
        let offset = bytes.len();
        let length = u32::try_from(len - offset - HEAD_BYTES).expect("it is short");
        let mut head = [9; HEAD_BYTES];
        head[..4].copy_from_slice(&length.to_le_bytes());
        let check = head_check(&head, location_seed(DATABASE, 1, offset as u64));
        head[4..8].copy_from_slice(&check.to_le_bytes());
        bytes.extend_from_slice(&head);
    }
    bytes.resize(len, 1);
    LogImage { number: 1, bytes }
}

fn damage_begins(log: &LogImage) -> Vec<usize> {
    let gaps = survivors(log, DATABASE, 1, |_, _| Ok(())).expect("it ends");
    gaps.into_iter().map(|gap| gap.start).collect()
}

#[test]
fn a_log_of_heads_whose_batches_overlap_is_refused_after_a_few_times_its_length() {
    let made_up = log_of_heads(4 << 20);
    let mut search = Search::new(&made_up, DATABASE, 0);
    assert!(matches!(search.next(), Some(Behind::Overlap { .. })));
    assert!(search.wrong <= (WRONG_MAX + 1) * made_up.bytes.len(), "{} bytes", search.wrong);
    for context in [SAME_BOOT, RESTARTED] {
        let refused = replay([Ok(&made_up)], context, |_, _| {});
        assert!(matches!(refused, Err(Error::Corruption { offset: 0, .. })), "{refused:?}");
    }
    assert_eq!(damage_begins(&made_up), [0]);
}

/// Frames within frames, each right and none of them a batch.
#[test]
fn frames_in_frames_that_are_no_batches_are_read_a_few_times_only() {
    const LEN: usize = 32 << 10;
    let mut bytes = vec![1; LEN];
    for offset in (0..LEN / HEAD_BYTES).rev().map(|frame| frame * HEAD_BYTES).skip(1) {
        let (seed, mut frame) = (location_seed(DATABASE, 1, offset as u64), Vec::new());
        encode_frame(&mut frame, seed, Place { sequence: 1, previous: 0, synced: 0 }, &bytes[offset + HEAD_BYTES..]);
        bytes[offset..].copy_from_slice(&frame);
    }
    let nested = LogImage { number: 1, bytes };
    let mut search = Search::new(&nested, DATABASE, 0);
    let mut frames = 0;
    while let Some(Behind::Frame { offset, frame }) = search.next() {
        frames += 1;
        if search.is_too_wrong(offset, frame.batch.len()) {
            break;
        }
    }
    assert!((2..=WRONG_MAX + 2).contains(&frames), "{frames} frames were read");
    assert_eq!(damage_begins(&nested), [0]);
}

/// What a power loss leaves of frames that were never synced: their heads, and nothing of their batches.
#[test]
fn heads_without_their_batches_are_a_torn_tail_however_many() {
    let mut torn = log(1, 1..200, 0);
    for offset in (2 * frame_bytes()..torn.bytes.len()).step_by(frame_bytes()) {
        torn.bytes[offset + HEAD_BYTES..offset + frame_bytes()].fill(0);
    }
    for context in [SAME_BOOT, RESTARTED] {
        let (sequences, report) =
            replayed(&[LogImage { number: 1, bytes: torn.bytes.clone() }], context).expect("opens");
        assert_eq!(
            (sequences.as_slice(), report.dropped_from),
            ([1, 2].as_slice(), Some((file_name(1), 2 * frame_bytes() as u64)))
        );
    }
}
