//! Whose a file is, and of which layout: two numbers in its header, by which others are refused.

use rusqlite::Connection;

use super::check::damaged;
use super::error::translate;
use super::schema;
use crate::backend::Result;

/// Bytes of the header that they are among (sqlite.org/fileformat.html).
pub(super) const HEADER: usize = 100;

/// What a file says that it is.
pub(super) struct Stamp {
    application: u32,
    layout: u32,
}

impl Stamp {
    /// By the file's first bytes: so a file that may be foreign is read which SQLite has not opened yet.
    pub fn of(header: &[u8; HEADER]) -> Self {
        let number =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Self { application: number(68), layout: number(60) }
    }

    /// As SQLite reads it. A file that it has open must be opened by nobody else in its process: its locks would end.
    pub fn read(connection: &Connection) -> Result<Self> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let read = || Ok(Self { application: pragma("application_id")?, layout: pragma("user_version")? });
        read().map_err(translate)
    }

    /// Refuses one that is not of ours.
    pub fn is_ours(&self) -> Result<()> {
        let (layout, ours) = (self.layout, schema::VERSION);
        match () {
            () if self.application != schema::APPLICATION_ID => {
                damaged("it is a SQLite file of another application")
            }
            () if layout > ours => damaged(format!(
                "it has layout {layout}, made by a newer version (ours: {ours}): use that one"
            )),
            () if layout < ours => damaged(format!(
                "it has layout {layout}, which is no longer read (ours: {ours}): use a new --data-dir"
            )),
            () => Ok(()),
        }
    }
}
