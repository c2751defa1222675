//! An atomic set of changes, encoded once: these bytes are the log record and what the delta is filled from.
//!
//! ```text
//! batch     := operation*
//! operation := tag:u8 tree:varint key_len:varint key            tag 2, delete
//!            | tag:u8 tree:varint key_len:varint key value_len:varint value   tag 1, put
//! ```
//!
//! Tags are on disk: do not renumber. Later operations on the same key win over earlier ones.

use super::codec::{self, Reader};
use super::error::{Error, Result};

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
/// Longest encoded batch, in bytes. A batch is held in memory once to be written and once to be replayed.
pub const BATCH_BYTES_MAX: usize = 512 << 20;

const TAG_PUT: u8 = 1;
const TAG_DELETE: u8 = 2;

/// Handle of a named tree of one database. Cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(pub u32);

/// One change: a put when `value` is there, a delete when it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The tree it changes.
    pub tree: TreeId,
    /// The key it changes.
    pub key: &'a [u8],
    /// The new value, or `None` to delete.
    pub value: Option<&'a [u8]>,
}

/// Changes that become visible, and durable, together or not at all, across any number of trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    operations: usize,
    largest: Largest,
}

/// What there is most of in a batch, so that it need not be read again to be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Largest {
    tree: u32,
    key_bytes: usize,
    value_bytes: usize,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` of `tree` to `value`. An empty value is a value.
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        self.operation(TAG_PUT, tree, key);
        codec::put_length_prefixed(&mut self.bytes, value);
        self.largest.value_bytes = self.largest.value_bytes.max(value.len());
    }

    /// Removes `key` from `tree`; nothing happens if it is not there.
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) {
        self.operation(TAG_DELETE, tree, key);
    }

    pub(crate) fn add(&mut self, Operation { tree, key, value }: Operation<'_>) {
        match value {
            Some(value) => self.put(tree, key, value),
            None => self.delete(tree, key),
        }
    }

    /// Refuses an operation that would be too large, or make the batch so.
    pub(crate) fn check_room(&self, Operation { key, value, .. }: Operation<'_>) -> Result<()> {
        /// A tag, and three numbers.
        const OTHER_BYTES_MAX: usize = 16;
        let value = value.unwrap_or_default();
        within("key", key.len(), KEY_BYTES_MAX)?;
        within("value", value.len(), VALUE_BYTES_MAX)?;
        within("batch", self.bytes.len() + key.len() + value.len() + OTHER_BYTES_MAX, BATCH_BYTES_MAX)
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Removes every operation and keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.operations = 0;
        self.largest = Largest::default();
    }

    /// The operations in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = Operation<'_>> {
        Operations { reader: Reader::new(&self.bytes) }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn operation(&mut self, tag: u8, tree: TreeId, key: &[u8]) {
        self.bytes.push(tag);
        codec::put_varint(&mut self.bytes, u64::from(tree.0));
        codec::put_length_prefixed(&mut self.bytes, key);
        self.operations += 1;
        self.largest.tree = self.largest.tree.max(tree.0);
        self.largest.key_bytes = self.largest.key_bytes.max(key.len());
    }

    /// The largest number of a tree that it changes; 0 if it is empty.
    pub(crate) fn largest_tree(&self) -> TreeId {
        TreeId(self.largest.tree)
    }

    /// Refuses what could be written and not be read back.
    pub(crate) fn check_limits(&self) -> Result<()> {
        within("batch", self.bytes.len(), BATCH_BYTES_MAX)?;
        within("key", self.largest.key_bytes, KEY_BYTES_MAX)?;
        within("value", self.largest.value_bytes, VALUE_BYTES_MAX)
    }
}

pub(crate) fn within(what: &'static str, len: usize, max: usize) -> Result<()> {
    if len > max {
        return Err(Error::TooLarge { what, len: len as u64, max: max as u64 });
    }
    Ok(())
}

/// Decodes operations until the bytes end or stop making sense; see [`decode`] for the checked form.
struct Operations<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Operations<'a> {
    type Item = Operation<'a>;

    fn next(&mut self) -> Option<Operation<'a>> {
        if self.reader.is_empty() {
            return None;
        }
        next_operation(&mut self.reader)
    }
}

fn next_operation<'a>(reader: &mut Reader<'a>) -> Option<Operation<'a>> {
    let tag = reader.u8()?;
    let tree = TreeId(u32::try_from(reader.varint()?).ok()?);
    let key = reader.length_prefixed()?;
    let value = match tag {
        TAG_PUT => Some(reader.length_prefixed()?),
        TAG_DELETE => None,
        _ => return None,
    };
    Some(Operation { tree, key, value })
}

/// The operations of an encoded batch, or `None` if the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Operation<'_>>> {
    let mut reader = Reader::new(bytes);
    let mut operations = Vec::new();
    while !reader.is_empty() {
        operations.push(next_operation(&mut reader)?);
    }
    Some(operations)
}

#[cfg(feature = "cli")]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_undoes_encode() {
        let mut batch = Batch::new();
        batch.put(TreeId(0), b"", b"");
        batch.put(TreeId(300), b"key", &[0xFF; 200]);
        batch.delete(TreeId(7), &[0; 130]);
        let decoded = decode(batch.as_bytes()).expect("a batch decodes");
        assert_eq!(decoded, batch.iter().collect::<Vec<_>>());
        assert_eq!(decoded.len(), batch.len());
        assert_eq!(decoded[1], Operation { tree: TreeId(300), key: b"key", value: Some(&[0xFF; 200]) });
        assert_eq!(decoded[2].value, None);
    }

    #[test]
    fn every_cut_inside_an_operation_is_refused() {
        let mut batch = Batch::new();
        batch.put(TreeId(1), b"key", b"value");
        for cut in 1..batch.as_bytes().len() {
            assert_eq!(decode(&batch.as_bytes()[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn one_byte_over_a_limit_is_refused() {
        let mut batch = Batch::new();
        batch.put(TreeId(0), &vec![1; KEY_BYTES_MAX], b"");
        batch.check_limits().expect("the longest key is allowed");
        batch.put(TreeId(0), &vec![1; KEY_BYTES_MAX + 1], b"");
        assert!(matches!(batch.check_limits(), Err(Error::TooLarge { what: "key", .. })));
        batch.clear();
        batch.put(TreeId(0), b"key", &vec![1; VALUE_BYTES_MAX + 1]);
        batch.delete(TreeId(7), b"key");
        assert!(matches!(batch.check_limits(), Err(Error::TooLarge { what: "value", .. })));
        assert_eq!(batch.largest_tree(), TreeId(7));
        batch.clear();
        batch.check_limits().expect("nothing is left of it");
        assert_eq!(batch, Batch::new());
    }
}
