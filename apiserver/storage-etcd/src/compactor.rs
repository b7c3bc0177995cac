//! Periodic compaction of etcd: one replica compacts at a time (Kubernetes: storage/etcd3/compact.go).
//!
//! All replicas, and a kube-apiserver on the same etcd, share one key. Its version is the logical time of the
//! protocol, and its value is one of etcd's revisions. In a turn, a replica compares the version with the one that it
//! saw in its last turn. If no other replica had a turn in between, it compacts to the revision that was current at
//! its own last turn, which is at least one interval old for everyone. Otherwise it records the new time and waits
//! for its next turn.
//!
//! Kubernetes writes the key first, and compacts if its write succeeded. An etcd without space refuses every put:
//! there that protocol would never compact again, and never free space. So the key is written last here. Two replicas
//! whose turns overlap may both compact, each to a revision that is one interval old for itself and so for the other.

use std::time::Duration;

use drydock_storage::backend::{BackendError, CompactionTurn, Result, Revision};
use drydock_storage::retention::RevisionSample;
use etcd_client::proto::{PbKeyValue, PbTxnOpResponse, PbTxnResponse};
use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp};

use crate::requests::PrefixRequests;

/// The key that Kubernetes uses. It is outside any prefix, because compaction affects the whole etcd.
const KEY: &str = "compact_rev_key";
/// The pause between two requests for the size.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes one turn. Returns what the next turn needs.
pub(super) async fn turn(requests: &PrefixRequests, last: CompactionTurn) -> Result<CompactionTurn> {
    let response = requests.members().read(KEY.to_owned(), GetOptions::new()).await?.0;
    let revision = requests.header(response.header.as_ref())?;
    let time = record_boundary(requests, response.kvs.into_iter().next());
    if time != last.time {
        return Ok(CompactionTurn { time, revision });
    }
    // The first turn knows no revision yet.
    if last.revision > Revision(0) {
        match requests.compact(last.revision).await {
            Ok(()) | Err(BackendError::Compacted { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    match write(requests, last).await {
        Ok(time) => Ok(CompactionTurn { time, revision }),
        // etcd has no space, so no other replica can write the key either.
        Err(BackendError::NoSpace(_)) => Ok(CompactionTurn { time, revision }),
        Err(error) => Err(error),
    }
}

/// Requests the size of the store when it is due, and compacts between turns if space is short. Never returns.
pub(super) async fn compact_early(requests: &PrefixRequests) {
    let space = &requests.space;
    loop {
        let written = space.written();
        match requests.members().size().await {
            Ok(size) => space.set_size(size, written),
            Err(error) => tracing::debug!(%error, "cannot read etcd's database size"),
        }
        let is_compacted = match space.due() {
            Some(sample) => compact_for_space(requests, sample).await,
            None => false,
        };
        tokio::time::sleep(PAUSE).await;
        if !is_compacted {
            space.until_due().await;
        }
    }
}

/// Returns whether history was discarded.
async fn compact_for_space(requests: &PrefixRequests, sample: RevisionSample) -> bool {
    match requests.compact(sample.revision).await {
        Ok(()) | Err(BackendError::Compacted { .. }) => {
            requests.space.compacted(sample);
            true
        }
        Err(error) => {
            tracing::warn!(%error, "early compaction failed although etcd is low on space");
            false
        }
    }
}

/// Writes the key if its version is that of the last turn. Returns the version that it has afterwards.
async fn write(requests: &PrefixRequests, last: CompactionTurn) -> Result<u64> {
    let time = i64::try_from(last.time).unwrap_or(i64::MAX);
    let transaction = Txn::new()
        .when([Compare::version(KEY, CompareOp::Equal, time)])
        .and_then([TxnOp::put(KEY, requests.signed(last.revision).max(0).to_string(), None)])
        .or_else([TxnOp::get(KEY, None)]);
    let response = requests.members().transact(transaction).await?;
    Ok(if response.succeeded { last.time + 1 } else { record_boundary(requests, found(response)) })
}

/// Records the compaction boundary that the key holds, and returns its version; 0 if there is no key.
fn record_boundary(requests: &PrefixRequests, pair: Option<PbKeyValue>) -> u64 {
    let Some(pair) = pair else { return 0 };
    if let Some(at) = std::str::from_utf8(&pair.value).ok().and_then(|text| text.parse().ok()) {
        requests.compacted(requests.revision(at));
    }
    pair.version.max(0).unsigned_abs()
}

fn found(response: PbTxnResponse) -> Option<PbKeyValue> {
    match response.responses.into_iter().next()?.response? {
        PbTxnOpResponse::ResponseRange(range) => range.kvs.into_iter().next(),
        _ => None,
    }
}
