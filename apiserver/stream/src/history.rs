//! Removals from before a hub began, for streams that come from another hub: read once from the watch cache, which has
//! them from the backend.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::Revision;
use drydock_storage::storage::{Scope, Storage, StorageError, WatchEvent, WatchFrom};
use tokio::time::timeout;

/// How long a watch that says nothing is waited for before it is asked how far it has come.
const QUIET: Duration = Duration::from_millis(20);

/// The keys that were removed after one revision and up to another, with the revisions; a key that was removed more than
/// once is there more than once.
///
/// # Errors
/// [`StorageError::Expired`] if they are not known any more, or if there are more than `most` changes.
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
