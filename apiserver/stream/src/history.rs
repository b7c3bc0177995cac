//! Removals from before a hub started, for streams that come from another hub. They are read once, with a watch that
//! the cache serves from the backend's history.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::Revision;
use drydock_storage::storage::{Scope, Storage, StorageError, WatchEvent, WatchFrom};
use tokio::time::timeout;

/// How long to wait for a silent watch before its progress is checked.
const QUIET: Duration = Duration::from_millis(20);

/// Returns the keys that were removed after one revision and up to another, with the revisions. A key that was removed
/// several times is listed several times.
///
/// # Errors
/// [`StorageError::Expired`] if the history is compacted, or if there are more than `most` changes.
pub async fn removals(
    storage: &dyn Storage,
    after: u64,
    upto: u64,
    most: usize,
) -> Result<Vec<(Arc<str>, u64)>, StorageError> {
    let mut watcher = storage.watch(Scope::all(), WatchFrom::After(Revision(after))).await?;
    let (mut removed, mut changes) = (Vec::new(), 0);
    while watcher.progress().0 < upto {
        let events = match timeout(QUIET, watcher.next()).await {
            Ok(Some(events)) => events,
            Ok(None) => return Err(StorageError::NotReady),
            Err(_) => continue,
        };
        changes += events.len();
        if changes > most {
            return Err(StorageError::Expired { requested: after, oldest: upto });
        }
        for event in events {
            match event {
                WatchEvent::Deleted(stored) => removed.push((Arc::from(&*stored.key), stored.revision.0)),
                WatchEvent::Failed(error) => return Err(error),
                WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark { .. } => {}
            }
        }
    }
    Ok(removed)
}
