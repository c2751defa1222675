//! Any bytes as a batch: it is refused, or its operations make a batch with the same ones.

use super::{Batch, Operations, Reader, TreeId, decode};

pub(crate) fn run(input: &[u8]) {
    let passed = Operations { reader: Reader::new(input) }.count();
    let Some(operations) = decode(input) else { return };
    assert_eq!(passed, operations.len());
    let mut batch = Batch::new();
    for operation in &operations {
        match operation.value {
            Some(value) => batch.put(operation.tree, operation.key, value),
            None => batch.delete(operation.tree, operation.key),
        }
    }
    assert!(batch.as_bytes().len() <= input.len(), "it is never longer than what it was read from");
    assert_eq!(decode(batch.as_bytes()).as_deref(), Some(&operations[..]));
    assert_eq!(batch.iter().collect::<Vec<_>>(), operations);
    assert_eq!((batch.len(), batch.is_empty()), (operations.len(), operations.is_empty()));
    let largest = operations.iter().map(|operation| operation.tree).max().unwrap_or(TreeId(0));
    assert_eq!(batch.largest_tree(), largest);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut batch = Batch::new();
    batch.put(TreeId(0), b"", b"");
    batch.put(TreeId(300), b"key", &[0xFF; 200]);
    batch.delete(TreeId(7), &[0; 130]);
    batch.put(TreeId(u32::MAX), b"key", b"value");
    vec![batch.as_bytes().to_vec(), Vec::new()]
}
