//! The format, the tables and the statements of the SQLite file.
//!
//! `log` holds one row for each write, and `meta` holds the compaction boundary. Only compaction removes a row, and
//! only below the boundary. The current revision is the higher of the log's highest revision and the boundary. No
//! crash can lower it: no reader sees a new value of either before COMMIT. In a store that was restored, or whose
//! objects came from etcd, the boundary is above every row until the first write.

use drydock_storage::backend::Result;
use rusqlite::Connection;

use crate::error::{damaged, translate};

/// Marks the file as ours (`PRAGMA application_id`): "DryD".
pub(super) const APPLICATION_ID: u32 = 0x4472_7944;
/// The layout below (`PRAGMA user_version`). Layout 1, from before the first release, had no checksums and is not
/// read.
pub(super) const VERSION: u32 = 2;

/// The tables. An empty store is at revision 1, as in etcd.
/// `prev_revision` is the write that this one replaced, 0 if the key did not exist.
/// `checksum` covers the whole row (row.rs).
/// The index carries `deleted` so that counting and paging never touch values.
pub(super) const CREATE: &str = "
    CREATE TABLE log (
        revision INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        create_revision INTEGER NOT NULL,
        prev_revision INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        value BLOB,
        checksum INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX log_by_key ON log (key, revision, deleted);
    CREATE TABLE meta (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta (name, number) VALUES ('compacted', 1), ('scrubbed', 1);
";

/// The table in a store whose objects have been moved; its one row has their new location.
pub(super) const MOVED: &str = "CREATE TABLE moved (place TEXT NOT NULL) STRICT";

/// The table in a store whose objects are being moved, or whose move was aborted; its one row has the target and the
/// attempt.
pub(super) const MOVING: &str = "CREATE TABLE moving (place TEXT NOT NULL, attempt INTEGER NOT NULL) STRICT";

/// The oldest readable revision and the newest, in one snapshot.
pub(super) const BOUNDS: &str = "
    SELECT number, max(number, coalesce((SELECT max(revision) FROM log), 0)) FROM meta WHERE name = 'compacted'";

/// A key's last write at or before a revision.
pub(super) const LATEST: &str = "
    SELECT revision, create_revision, deleted, value, prev_revision, checksum FROM log
    WHERE key = ?1 AND revision <= ?2 ORDER BY revision DESC LIMIT 1";

/// Live pairs of a key range at a revision. `max` makes the bare column `deleted` that of the newest row
/// (sqlite.org/lang_select.html, 2.5); the inner part reads the index alone.
pub(super) const RANGE: &str = "
    SELECT log.key, log.create_revision, log.revision, log.value, log.prev_revision, log.checksum FROM (
        SELECT max(revision) AS newest, deleted AS gone FROM log
        WHERE key >= ?1 AND key < ?2 AND revision <= ?3 GROUP BY key
    ) CROSS JOIN log ON log.revision = newest
    WHERE NOT gone LIMIT ?4";

/// Number of live keys in a range at a revision.
pub(super) const COUNT: &str = "
    SELECT count(*) FROM (
        SELECT max(revision), deleted AS gone FROM log
        WHERE key >= ?1 AND key < ?2 AND revision <= ?3 GROUP BY key
    ) WHERE NOT gone";

/// Events of a key range in a window of revisions, with the rows that they replaced.
pub(super) const EVENTS: &str = "
    SELECT log.revision, log.key, log.create_revision, log.deleted, log.value, log.prev_revision, log.checksum,
           old.revision, old.create_revision, old.value, old.prev_revision, old.checksum
    FROM log LEFT JOIN log AS old ON old.revision = log.prev_revision
    WHERE log.revision > ?1 AND log.revision <= ?2 AND +log.key >= ?3 AND +log.key < ?4
    ORDER BY log.revision";

/// Every row as it was written, ordered by key and revision.
pub(super) const HISTORY: &str = "
    SELECT key, revision, create_revision, prev_revision, deleted, value, checksum FROM log ORDER BY key, revision";

/// Sets a number of `meta`.
pub(super) const SET: &str = "UPDATE meta SET number = ?2 WHERE name = ?1";

/// Records which import created the store.
pub(super) const MADE_BY: &str = "INSERT INTO meta (name, number) VALUES ('import', ?1)";

/// Takes as much space as a write of so many bytes, at the highest possible revision; it is never committed.
pub(super) const FILL: &str = "
    INSERT INTO log (revision, key, create_revision, prev_revision, deleted, value, checksum)
    VALUES (9223372036854775807, '', 0, 0, FALSE, randomblob(?1), 0)";

/// Appends a row.
pub(super) const INSERT: &str = "
    INSERT INTO log (revision, key, create_revision, prev_revision, deleted, value, checksum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

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
        let (layout, ours) = (self.layout, VERSION);
        match () {
            () if self.application != APPLICATION_ID => damaged("it is a SQLite file of another application"),
            () if layout > ours => damaged(format!(
                "schema version {layout} was made by a newer version (current: {ours}): use that version"
            )),
            () if layout < ours => damaged(format!(
                "schema version {layout} is no longer supported (current: {ours}): use a new --data-dir"
            )),
            () => Ok(()),
        }
    }
}
