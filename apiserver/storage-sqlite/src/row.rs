//! A row of the log, with a checksum: SQLite detects damage to its own structure, but not to the values that it
//! stores.

use bytes::Bytes;
use drydock_storage::backend::Result;
use rusqlite::{Connection, params};

use crate::error::translate;
use crate::schema;

/// The content of a row.
pub(super) struct LogRow<'a> {
    /// The revision of the write.
    pub revision: u64,
    /// The key that was written.
    pub key: &'a str,
    /// The revision of the write that created the key.
    pub create_revision: u64,
    /// The revision of the write that this one replaced; 0 if the key did not exist.
    pub prev_revision: u64,
    /// The value; `None` for a delete.
    pub value: Option<&'a [u8]>,
}

impl LogRow<'_> {
    /// Appends the row to the log.
    pub fn insert(&self, transaction: &Connection) -> Result<()> {
        let mut statement = transaction.prepare_cached(schema::INSERT).map_err(translate)?;
        let Self { revision, key, create_revision, prev_revision, value } = self;
        let deleted = value.is_none();
        let fields = params![revision, key, create_revision, prev_revision, deleted, value, self.checksum()];
        statement.execute(fields).map_err(translate).map(drop)
    }

    /// Whether the row has this checksum.
    pub fn has(&self, checksum: u32) -> bool {
        self.checksum() == checksum
    }

    /// Returns a copy of the value; empty, which no valid value is, if the checksum differs.
    pub fn value_if(&self, checksum: u32) -> Bytes {
        match self.value {
            Some(value) if self.has(checksum) => Bytes::copy_from_slice(value),
            _ => Bytes::new(),
        }
    }

    /// Returns the CRC-32 of all fields.
    fn checksum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        for number in [self.revision, self.create_revision, self.prev_revision] {
            sum.update(&number.to_le_bytes());
        }
        sum.update(self.key.as_bytes());
        sum.update(&[u8::from(self.value.is_some())]);
        sum.update(self.value.unwrap_or_default());
        sum.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_row_is_in_its_checksum() {
        let row =
            || LogRow { revision: 7, key: "/a", create_revision: 3, prev_revision: 5, value: Some(b"value") };
        let written = row().checksum();
        assert_eq!(&*row().value_if(written), b"value");
        for other in [
            LogRow { revision: 8, ..row() },
            LogRow { key: "/b", ..row() },
            LogRow { create_revision: 4, ..row() },
            LogRow { prev_revision: 6, ..row() },
            LogRow { value: Some(b"valuf"), ..row() },
            LogRow { value: None, ..row() },
        ] {
            assert!(!other.has(written) && other.value_if(written).is_empty());
        }
        let empty = LogRow { value: Some(b""), ..row() };
        assert!(!empty.has(LogRow { value: None, ..row() }.checksum()));
    }
}
