//! The watch of the record of a prefix, by which a server learns that it may no longer write, or may again.

use std::time::Duration;

use drydock_storage::backend::{Revision, WatchItem};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::keys::{Prefix, RevisionOffset};
use crate::members::Members;
use crate::record;
use crate::requests::PrefixRequests;
use crate::watch::EtcdWatch;
use crate::write_permission::WritePermission;

/// The pause before the record is read again after a read or a watch of it has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches the record for `permission` until the returned guard is dropped.
pub(super) fn follow(permission: &WritePermission, members: &Members, prefix: &str) -> DropGuard {
    let stop = CancellationToken::new();
    // These revisions are etcd's own.
    let prefix = Prefix::new(prefix, RevisionOffset::default());
    let (permission, members, stopped) = (permission.clone(), members.clone(), stop.clone());
    tokio::spawn(async move {
        stopped.run_until_cancelled(listen(permission, members, prefix)).await;
    });
    stop.drop_guard()
}

async fn listen(permission: WritePermission, members: Members, prefix: Prefix) {
    let requests = PrefixRequests::new(members.clone(), prefix.clone());
    // No caller requests progress of this watch.
    let progress = tokio::sync::watch::Sender::new(0);
    loop {
        match requests.get(record::KEY, None).await {
            Ok((pair, at)) => {
                permission.learn(pair.as_ref().map(|pair| (raw(pair.mod_revision), &*pair.value)));
                let watch = EtcdWatch::of_record(members.clone(), prefix.clone(), at, progress.subscribe());
                receive(&permission, watch).await;
            }
            Err(error) => tracing::debug!(%error, "the record of the prefix cannot be read"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Receives events until the watch ends.
async fn receive(permission: &WritePermission, watch: EtcdWatch) {
    let mut items = watch.start();
    while let Some(item) = items.recv().await {
        match item {
            WatchItem::Events(events) => events.iter().for_each(|event| {
                permission.learn(event.value.as_ref().map(|value| (raw(event.revision), &**value)));
            }),
            WatchItem::Progress(_) => {}
            WatchItem::Failed(error) => tracing::debug!(%error, "the record of the prefix is read again"),
        }
    }
}

fn raw(revision: Revision) -> i64 {
    RevisionOffset::default().signed(revision)
}
