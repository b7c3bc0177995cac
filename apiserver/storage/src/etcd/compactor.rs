//! One replica compacts at a time (Kubernetes: storage/etcd3/compact.go).
//!
//! All replicas, and a kube-apiserver on the same etcd, share one key; its version is the time of the protocol, and
//! its value is a revision of etcd's.
//! In a turn a replica compares that version with what it saw in its last turn. If nobody else had a turn in
//! between, it writes the key, and compacts to the revision that was current at its own last turn: at least one
//! interval old for everyone. Otherwise it takes note of the time and waits for its next turn.

use etcd_client::proto::{PbTxnOpResponse, PbTxnResponse};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use super::requests::Requests;
use crate::backend::{BackendError, Result, Revision, Turn};

/// Kubernetes' key, outside any prefix: compaction is about the whole etcd.
const KEY: &str = "compact_rev_key";

/// Takes a turn.
pub(super) async fn turn(requests: &Requests, last: Turn) -> Result<Turn> {
    let time = i64::try_from(last.time).unwrap_or(i64::MAX);
    let transaction = Txn::new()
        .when([Compare::version(KEY, CompareOp::Equal, time)])
        .and_then([TxnOp::put(KEY, requests.signed(last.revision).max(0).to_string(), None)])
        .or_else([TxnOp::get(KEY, None)]);
    let response = requests.members().transact(transaction).await?;
    let revision = requests.header(response.header.as_ref())?;
    if !response.succeeded {
        return Ok(Turn { time: others_turn(requests, response), revision });
    }
    // The first turn of all knows no revision yet.
    if last.revision > Revision(0) {
        match requests.compact(last.revision).await {
            Ok(()) | Err(BackendError::Compacted { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Turn { time: last.time + 1, revision })
}

/// Notes what the other replica did, and returns its time.
fn others_turn(requests: &Requests, response: PbTxnResponse) -> u64 {
    let Some(PbTxnOpResponse::ResponseRange(range)) =
        response.responses.into_iter().next().and_then(|response| response.response)
    else {
        return 0;
    };
    let Some(pair) = range.kvs.into_iter().next() else { return 0 };
    if let Some(at) = std::str::from_utf8(&pair.value).ok().and_then(|text| text.parse().ok()) {
        requests.compacted(requests.revision(at));
    }
    pair.version.max(0).unsigned_abs()
}
