//! Writes: each is one transaction, which compares everything that it depends on.

use drydock_storage::backend::{BackendError, CompareAndSwap, Result, WriteOutcome};
use etcd_client::proto::{PbKeyValue, PbResponseOp, PbTxnOpResponse};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use crate::record;
use crate::requests::PrefixRequests;
use crate::write_permission::WritePermission;

/// How often a write is tried with a newer record of the prefix.
const TRIES: usize = 5;

/// A key, and the mod revision that it must have in etcd.
type Expected = (String, i64);

impl PrefixRequests {
    /// Compares and swaps. The outcome is unknown only after an `Unavailable` error.
    pub async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        self.space.check(&write)?;
        for _ in 0..TRIES {
            let outcome = match self.attempt(&write).await {
                Err(BackendError::NoSpace(why)) => {
                    self.space.exceeded();
                    self.read_back(&write).await?.map(Some).ok_or(BackendError::NoSpace(why))?
                }
                outcome => outcome?,
            };
            if let Some(outcome) = outcome {
                self.note(&write, &outcome);
                return Ok(outcome);
            }
        }
        let why = "the prefix record went back to an older revision (was etcd restored?): restart the server";
        Err(BackendError::Closed(why.to_owned()))
    }

    /// Returns the outcome of a write that etcd refused for lack of space, if etcd carried it out: etcd does both with the
    /// first put that goes past the quota (etcd: server/etcdserver/apply/quota.go).
    async fn read_back(&self, write: &CompareAndSwap) -> Result<Option<WriteOutcome>> {
        let stored = self.get(&write.key, None).await?.0;
        let stored = stored.filter(|stored| Some(stored.mod_revision) > write.expected);
        let ours = stored.filter(|stored| write.value.as_ref() == Some(&stored.value));
        Ok(ours.map(|stored| WriteOutcome::Committed(stored.mod_revision)))
    }

    fn note(&self, write: &CompareAndSwap, outcome: &WriteOutcome) {
        if let WriteOutcome::Committed(revision) = outcome {
            self.space
                .wrote(write.key.len() + write.value.as_ref().map_or(0, |value| value.len()), *revision);
        }
    }

    /// Tries a write once. Returns `None` if the record of the prefix has changed; the new record is then known.
    async fn attempt(&self, write: &CompareAndSwap) -> Result<Option<WriteOutcome>> {
        let revision_offset = &self.prefix.revision_offset;
        let key = self.prefix.key(&write.key);
        let operation = match &write.value {
            Some(value) => TxnOp::put(key.clone(), value.clone(), None),
            None => TxnOp::delete(key.clone(), None),
        };
        let expected = (key, write.expected.map_or(0, |at| revision_offset.compared(at)));
        let record = self.permission.as_ref().map(WritePermission::record).transpose()?;
        let record = record.map(|revision| (self.prefix.key(record::KEY), revision));
        let guard = write.guard.as_ref();
        let guard =
            guard.map(|guard| (self.prefix.key(&guard.key), revision_offset.compared(guard.revision)));
        let depends: Vec<&Expected> =
            [Some(&expected), record.as_ref(), guard.as_ref()].into_iter().flatten().collect();
        let compares: Vec<_> = depends.iter().map(|at| compare(at)).collect();
        let reads: Vec<_> = depends.iter().map(|(key, _)| TxnOp::get(key.as_str(), None)).collect();
        let transaction = Txn::new().when(compares).and_then([operation]).or_else(reads);
        let response = self.members.transact(transaction).await?;
        let at = self.header(response.header.as_ref())?;
        if response.succeeded {
            return Ok(Some(WriteOutcome::Committed(at)));
        }
        let mut present = response.responses.into_iter().map(present);
        let written = present.next().flatten();
        if let (Some(permission), Some(record)) = (&self.permission, &record) {
            let there = present.next().flatten();
            if !is_at(there.as_ref(), record) {
                permission.learn(there.as_ref().map(|pair| (pair.mod_revision, &*pair.value)));
                return Ok(None);
            }
        }
        if let Some(guard) = &guard
            && !is_at(present.next().flatten().as_ref(), guard)
        {
            return Ok(Some(WriteOutcome::GuardFailed));
        }
        let written = written.map(|pair| self.prefix.pair(pair)).transpose()?;
        Ok(Some(WriteOutcome::Conflict(written, at)))
    }
}

fn compare((key, revision): &Expected) -> Compare {
    Compare::mod_revision(key.as_str(), CompareOp::Equal, *revision)
}

fn is_at(pair: Option<&PbKeyValue>, (_, revision): &Expected) -> bool {
    pair.is_some_and(|pair| pair.mod_revision == *revision)
}

fn present(response: PbResponseOp) -> Option<PbKeyValue> {
    match response.response? {
        PbTxnOpResponse::ResponseRange(range) => range.kvs.into_iter().next(),
        _ => None,
    }
}
