//! The writes: a few keys are created, updated and deleted; no two values are the same.

use bytes::Bytes;
use drydock_storage::backend::{Backend, BackendError, CompareAndSwap, Revision, WriteOutcome};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::model::Wrote;

/// Keys of one writer.
const KEYS: u32 = 4;

/// One writer: no other writes its keys.
pub struct CrashWriter {
    name: String,
    chance: StdRng,
    count: u64,
}

/// A write that is about to be sent.
pub struct NextWrite {
    /// What it is.
    pub wrote: Wrote,
    write: CompareAndSwap,
}

impl CrashWriter {
    /// `life` makes its values different from those that it wrote before.
    pub fn new(number: u32, life: u64, chance: StdRng) -> Self {
        Self { name: format!("w{number}-{life}"), chance, count: 0 }
    }

    /// Chooses the next write by the current value of its key.
    pub async fn next(&mut self, store: &dyn Backend) -> Result<NextWrite, BackendError> {
        let number = self.name.split('-').next().unwrap_or_default();
        let name = format!("{number}-{}", self.chance.random_range(0..KEYS));
        let key = format!("/registry/crash/plural/{name}");
        let (present, _) = store.get(&key, None).await?;
        let expected = present.map(|pair| pair.mod_revision);
        self.count += 1;
        let value = match expected.is_some() && self.chance.random_range(0..6) == 0 {
            true => None,
            false => Some(self.value(&name)),
        };
        let bytes = value.clone().map(Bytes::from);
        let write = CompareAndSwap {
            key: key.clone(),
            expected,
            value: bytes,
            guard: None,
            priority: Default::default(),
        };
        Ok(NextWrite { wrote: (key, value), write })
    }

    fn value(&mut self, name: &str) -> String {
        let (writer, count) = (&self.name, self.count);
        let filling = "x".repeat(self.chance.random_range(0..2500));
        format!(r#"{{"metadata":{{"name":"{name}"}},"spec":"{writer}-{count}","filling":"{filling}"}}"#)
    }
}

impl NextWrite {
    /// Sends the write. `Ok(None)` if it was not made.
    pub async fn send(self, store: &dyn Backend) -> Result<Option<Revision>, BackendError> {
        match store.write(self.write).await? {
            WriteOutcome::Committed(revision) => Ok(Some(revision)),
            WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => Ok(None),
        }
    }
}
