//! Many short byte strings in one allocation, which is kept when the list is cleared.

/// A list of byte strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteList {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn push(&mut self, item: &[u8]) {
        self.push_with(|out| out.extend_from_slice(item));
    }

    /// Adds the string that `write` appends.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, i: usize) -> Option<&[u8]> {
        let end = *self.ends.get(i)?;
        Some(&self.bytes[self.start(i)..end])
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().enumerate().map(|(i, &end)| &self.bytes[self.start(i)..end])
    }

    fn start(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl std::ops::Index<usize> for ByteList {
    type Output = [u8];

    fn index(&self, i: usize) -> &[u8] {
        &self.bytes[self.start(i)..self.ends[i]]
    }
}
