//! A value as it lies in the store: bytes, or a row of columns that renders them.

use super::segment::Row;

/// A value that is lent to a reader, in the form in which it is there. Either form gives the bytes that were put.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// The bytes.
    Bytes(&'a [u8]),
    /// A row of a block that stores columns: who knows their meaning need not render the bytes to read some of them.
    Row(Row<'a>),
}

impl<'a> Stored<'a> {
    /// The bytes, put together in `buffer` if they do not lie anywhere.
    #[inline]
    pub fn bytes<'b>(&self, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Row(row) => {
                buffer.clear();
                row.write_to(buffer);
                buffer
            }
        }
    }

    /// Appends the bytes to `out`.
    #[inline]
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Row(row) => row.write_to(out),
        }
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes);
        bytes
    }
}

impl<'a> From<&'a [u8]> for Stored<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}
