//! The application id and the layout version in the header of a file, by which other files are recognized.

use drydock_storage::backend::Result;
use rusqlite::Connection;

use crate::check::damaged;
use crate::error::translate;
use crate::schema;

/// Bytes of the header that contains them (sqlite.org/fileformat.html).
pub(super) const HEADER: usize = 100;

/// The application id and the layout version of a file.
pub(super) struct StoreFormat {
    application: u32,
    layout: u32,
}

impl StoreFormat {
    /// Reads the format from the file's first bytes, before SQLite opens a file that may belong to another
    /// application.
    pub fn of(header: &[u8; HEADER]) -> Self {
        let number =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Self { application: number(68), layout: number(60) }
    }

    /// Reads the format through SQLite. A file that SQLite has open must not be opened otherwise in the same process:
    /// closing it would drop SQLite's locks.
    pub fn read(connection: &Connection) -> Result<Self> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let read = || Ok(Self { application: pragma("application_id")?, layout: pragma("user_version")? });
        read().map_err(translate)
    }

    /// Fails if the file belongs to another application or has another layout.
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
