//! Requests under one deadline: how often each is retried, and which members it is sent to.
//!
//! A read may be retried at any time, and sent to several members at once ([`crate::hedge`]). A write is retried only
//! if it certainly was not carried out: otherwise the retry would find the effect of the first attempt and report a
//! conflict to its own caller.

use std::future::Future;
use std::time::Duration;

use drydock_storage::backend::{BackendError, Result};
use etcd_client::proto::PbTxnResponse;
use etcd_client::{GetOptions, GetResponse, Txn};
use tokio::time::Instant;

use crate::error::{is_not_carried_out, translate};
use crate::hedge::HedgedRead;
use crate::members::{MemberChoice, Members, PAUSE, SILENCE, longer};
use crate::space::DatabaseSize;

/// How long a caller waits for an answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// The pause after a probe that failed.
const PROBE_RETRY: Duration = Duration::from_secs(1);

impl Members {
    /// Reads a key or a range. Retries, on as many members as needed, up to the deadline.
    pub async fn read(&self, key: String, options: GetOptions) -> Result<GetResponse> {
        let answer = self.within(HedgedRead::new(self, key, options).answer()).await;
        self.contact().ended(&answer);
        answer
    }

    /// Makes the cheapest request that needs the quorum: it counts one key.
    pub async fn revision(&self, key: String) -> Result<GetResponse> {
        self.read(key, GetOptions::new().with_count_only()).await
    }

    /// Sends a probe read whenever no answer has arrived for a while, so that [`QuorumContact`](crate::quorum_contact)
    /// notices a failure. Never returns.
    pub async fn probe(self, key: String) {
        loop {
            let due = self.contact().probe_due();
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
                continue;
            }
            if self.revision(key.clone()).await.is_err() {
                tokio::time::sleep(PROBE_RETRY).await;
            }
        }
    }

    /// Runs one transaction. Retries only if it was certainly not carried out.
    pub async fn transact(&self, transaction: Txn) -> Result<PbTxnResponse> {
        let answer = self.within(async {
            let mut pause = PAUSE;
            loop {
                let chosen = self.chosen();
                let mut client = self.client(chosen);
                match self.with_silence_timeout(chosen, client.txn(transaction.clone())).await {
                    Ok(response) => return Ok(response.0),
                    Err(error) if is_not_carried_out(&error) => {
                        tracing::debug!(%error, "writing to etcd again");
                        self.contact().failed(&translate(error));
                        self.switch_from(chosen);
                        wait(&mut pause).await;
                    }
                    Err(error) => return Err(self.failed(chosen, translate(error))),
                }
            }
        });
        let answer = answer.await;
        self.contact().wrote(&answer);
        answer
    }

    /// Compacts: discards the history below a revision.
    pub async fn compact(&self, at: i64) -> Result<()> {
        let chosen = self.chosen();
        let mut client = self.client(chosen);
        let compacted = self.within(async { client.compact(at, None).await.map_err(translate) }).await;
        compacted.map(drop).map_err(|error| self.failed(chosen, error))
    }

    /// Returns the size of the store of the member in use.
    pub async fn size(&self) -> Result<DatabaseSize> {
        let chosen = self.chosen();
        let mut client = self.member(chosen);
        let status = self.within(async { client.status().await.map_err(translate) }).await;
        let status = status.map_err(|error| self.failed(chosen, error))?;
        Ok(DatabaseSize::new(status.db_size(), status.raft_used_db_size(), status.db_size_quota()))
    }

    /// Runs `work` under the deadline. The error after the deadline includes why the last attempt failed.
    async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| {
            let late = format!("etcd did not answer within {} s", DEADLINE.as_secs());
            BackendError::Unavailable(match self.contact().silence() {
                Some(why) if !why.starts_with(&late) => format!("{late}: {why}"),
                _ => late,
            })
        };
        tokio::time::timeout(DEADLINE, work).await.map_err(late)?
    }

    /// Waits for a member's answer. After [`SILENCE`], other requests switch to another member; this one still waits,
    /// because only the answer tells whether it was carried out.
    async fn with_silence_timeout<T>(&self, chosen: MemberChoice, answer: impl Future<Output = T>) -> T {
        let mut answer = std::pin::pin!(answer);
        match tokio::time::timeout(SILENCE, answer.as_mut()).await {
            Ok(answer) => answer,
            Err(_) => {
                self.switch_from(chosen);
                answer.await
            }
        }
    }

    /// Returns the error of a request. Switches to another member if the member was unavailable.
    fn failed(&self, chosen: MemberChoice, error: BackendError) -> BackendError {
        if matches!(error, BackendError::Unavailable(_)) {
            self.switch_from(chosen);
        }
        error
    }
}

async fn wait(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = longer(*pause);
}
