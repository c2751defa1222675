//! The bytes of keys and values: appended, never moved, freed all at once.
//!
//! ```text
//! chunk   := version*
//! version := key value        one after the other; their lengths are in the `Place`
//! ```
//!
//! A chunk is a quarter as large as everything before it, within bounds: a tree with three entries holds a kilobyte, a
//! large one makes few allocations, and a delta that is full holds little more than it was meant to. A version that would
//! waste much of a chunk gets one of its own.

const CHUNK_BYTES_MIN: usize = 1 << 10;
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// The `value_len` of a version without a value. Values are at most `VALUE_BYTES_MAX` long, far below.
const TOMBSTONE: u32 = u32::MAX;

/// Where the bytes of one version are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: u32,
    offset: u32,
    key_len: u32,
    value_len: u32,
}

impl Place {
    pub(super) fn key_len(self) -> usize {
        self.key_len as usize
    }

    /// The key and the value in the bytes of this version.
    pub(super) fn split(self, bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
        let (key, value) = bytes.split_at(self.key_len());
        (key, (self.value_len != TOMBSTONE).then_some(value))
    }

    pub(super) fn byte_len(self) -> usize {
        self.key_len() + if self.value_len == TOMBSTONE { 0 } else { self.value_len as usize }
    }
}

#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The chunk that small versions go to.
    open: usize,
    bytes: usize,
}

impl Arena {
    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Place {
        let index = self.chunk_with_room(key.len() + value.map_or(0, <[u8]>::len));
        let chunk = &mut self.chunks[index];
        let place = Place {
            chunk: index as u32,
            offset: chunk.len() as u32,
            key_len: key.len() as u32,
            value_len: value.map_or(TOMBSTONE, |value| value.len() as u32),
        };
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value.unwrap_or_default());
        place
    }

    /// Key and value, one after the other.
    pub(super) fn bytes(&self, place: Place) -> &[u8] {
        let offset = place.offset as usize;
        &self.chunks[place.chunk as usize][offset..offset + place.byte_len()]
    }

    pub(super) fn key(&self, place: Place) -> &[u8] {
        let offset = place.offset as usize;
        &self.chunks[place.chunk as usize][offset..offset + place.key_len()]
    }

    pub(super) fn byte_size(&self) -> usize {
        self.bytes + self.chunks.capacity() * size_of::<Vec<u8>>()
    }

    fn chunk_with_room(&mut self, len: usize) -> usize {
        if self.chunks.get(self.open).is_some_and(|chunk| chunk.capacity() - chunk.len() >= len) {
            return self.open;
        }
        let ordinary = (self.bytes / 4).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let is_large = len > ordinary / 4;
        let capacity = if is_large { len } else { ordinary };
        self.bytes += capacity;
        self.chunks.push(Vec::with_capacity(capacity));
        let index = self.chunks.len() - 1;
        if !is_large {
            self.open = index;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_value_leaves_the_open_chunk_open() {
        let mut arena = Arena::default();
        let before = arena.push(b"a", Some(b"1"));
        let large = arena.push(b"b", Some(&[7; 10_000]));
        let after = arena.push(b"c", None);
        assert_eq!(before.chunk, after.chunk);
        assert_ne!(before.chunk, large.chunk);
        assert_eq!(large.split(arena.bytes(large)), (&b"b"[..], Some(&[7; 10_000][..])));
        assert_eq!(after.split(arena.bytes(after)), (&b"c"[..], None));
    }

    #[test]
    fn chunks_grow_with_the_arena_up_to_a_bound() {
        let mut arena = Arena::default();
        for _ in 0..40_000 {
            arena.push(b"key", Some(&[0; 97]));
        }
        assert_eq!(arena.chunks[0].capacity(), CHUNK_BYTES_MIN);
        assert_eq!(arena.chunks.last().map(Vec::capacity), Some(CHUNK_BYTES_MAX));
        assert!(arena.chunks.len() < 48, "{} chunks", arena.chunks.len());
    }

    #[test]
    fn an_arena_holds_little_more_than_was_put_into_it() {
        let mut arena = Arena::default();
        for pushed in 1..40_000 {
            arena.push(b"key", Some(&[0; 97]));
            let room = (pushed * 100 * 9 / 7).max(16 * CHUNK_BYTES_MIN);
            assert!(arena.byte_size() <= room, "{} bytes for {pushed} versions", arena.byte_size());
        }
    }

    #[test]
    fn an_empty_value_is_a_value() {
        let mut arena = Arena::default();
        let (empty, tombstone) = (arena.push(b"", Some(b"")), arena.push(b"", None));
        assert_eq!(empty.split(arena.bytes(empty)), (&b""[..], Some(&b""[..])));
        assert_eq!(tombstone.split(arena.bytes(tombstone)), (&b""[..], None));
    }
}
