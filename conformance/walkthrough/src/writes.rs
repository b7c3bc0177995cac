//! Clients that write while servers are killed: each acknowledged write must be there afterwards.
//!
//! Each writer has maintenances of its own that select nothing, and records for each what was acknowledged and what was
//! only attempted: an unanswered write may have happened or not, an acknowledged one must have.

use std::time::Duration;

use anyhow::{Context, Result};
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_api::text::counted;
use drydock_testkit::finding::Finding;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The pause between two writes of one writer: short enough that each kill hits some of them.
const PACE: Duration = Duration::from_millis(50);
/// Writes of one object.
const WRITES: u64 = 30;

/// One object, as far as its writer knows.
#[derive(Clone, Debug, Default)]
struct WrittenObject {
    name: String,
    /// Of the acknowledged create.
    uid: Option<String>,
    /// Last acknowledged number, and its revision.
    acknowledged: u64,
    revision: u64,
    /// Last number that was sent.
    attempted: u64,
    removal: ObservedRemoval,
    /// An acknowledgement that came with no newer revision than the one before.
    backwards: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ObservedRemoval {
    #[default]
    None,
    Attempted,
    Acknowledged,
}

/// The running writers.
pub struct Writers {
    tasks: Vec<JoinHandle<Vec<WrittenObject>>>,
    stop: CancellationToken,
}

impl Writers {
    /// Starts a writer for each client.
    pub fn start(clients: impl IntoIterator<Item = Client>) -> Writers {
        let stop = CancellationToken::new();
        let start = |(i, client)| tokio::spawn(write(format!("written-{i}"), api(client), stop.clone()));
        let tasks = clients.into_iter().enumerate().map(start).collect();
        Writers { tasks, stop }
    }

    /// Ends them and compares what they know with what is there.
    pub async fn finish(self, client: Client) -> Result<Vec<Finding>> {
        self.stop.cancel();
        let mut records = Vec::new();
        for task in self.tasks {
            records.extend(task.await.context("a writer panicked")?);
        }
        let api = api(client);
        let (mut wrong, mut acknowledged, mut unanswered) = (Vec::new(), 0, 0);
        for record in &records {
            let found = api.get_opt(&record.name).await?.map(State::read).transpose()?;
            wrong.extend(record.contradiction(found.as_ref()));
            acknowledged += record.acknowledged;
            unanswered += u64::from(record.acknowledged < record.attempted);
        }
        if acknowledged == 0 {
            return Ok(vec![Finding::new(false, "no write was acknowledged")]);
        }
        let writes = counted(acknowledged, "acknowledged write", "acknowledged writes");
        let objects = counted(records.len() as u64, "object", "objects");
        let unanswered = counted(unanswered, "last write was", "last writes were");
        let good = format!("no loss among {writes} of {objects}; {unanswered} unanswered");
        Ok(vec![Finding::of_nothing(&wrong, &good, "lost or wrong writes")])
    }
}

/// An object, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    uid: String,
    revision: u64,
    number: u64,
}

impl State {
    fn read(object: DynamicObject) -> Result<State> {
        let read: NodeMaintenance = serde_json::from_value(serde_json::to_value(object)?)?;
        let revision = read.metadata.resource_version.parse().context("resourceVersion")?;
        Ok(State { uid: read.metadata.uid, revision, number: read.spec.reason.parse().context("reason")? })
    }
}

impl WrittenObject {
    /// How the state on the server contradicts what was acknowledged, if it does.
    fn contradiction(&self, found: Option<&State>) -> Option<String> {
        if let Some(revision) = self.backwards {
            return Some(format!("{}: revision {revision} was acknowledged after a newer one", self.name));
        }
        let Some(found) = found else {
            let may_miss = self.acknowledged == 0 || self.removal != ObservedRemoval::None;
            return (!may_miss)
                .then(|| format!("{}: {} was acknowledged, gone", self.name, self.acknowledged));
        };
        let numbers = self.acknowledged..=self.attempted;
        let wrong = match self.uid.as_ref() {
            _ if self.removal == ObservedRemoval::Acknowledged => "its removal was acknowledged",
            Some(uid) if *uid != found.uid => "another UID",
            _ if !numbers.contains(&found.number) => "another state",
            _ if found.revision < self.revision => "an older revision",
            _ => return None,
        };
        Some(format!("{}: {wrong}: {self:?}, {found:?}", self.name))
    }

    fn acknowledge(&mut self, state: State) {
        self.uid.get_or_insert(state.uid);
        if state.revision <= self.revision {
            self.backwards = Some(state.revision);
        }
        (self.acknowledged, self.revision) = (state.number, state.revision);
    }
}

async fn write(prefix: String, api: Api<DynamicObject>, stop: CancellationToken) -> Vec<WrittenObject> {
    let mut records = Vec::new();
    let mut pace = tokio::time::interval(PACE);
    while !stop.is_cancelled() {
        let mut record =
            WrittenObject { name: format!("{prefix}-{}", records.len()), ..WrittenObject::default() };
        while !stop.is_cancelled() && record.attempted < WRITES {
            pace.tick().await;
            // After an error the outcome is unknown: the next write has the next number.
            let _ = step(&api, &mut record).await;
        }
        if records.len() % 2 == 1 && !stop.is_cancelled() {
            record.removal = ObservedRemoval::Attempted;
            if api.delete(&record.name, &DeleteParams::default()).await.is_ok() {
                record.removal = ObservedRemoval::Acknowledged;
            }
        }
        records.push(record);
    }
    records
}

/// Creates the object, or writes its next number.
async fn step(api: &Api<DynamicObject>, record: &mut WrittenObject) -> Result<()> {
    let known = record.uid.is_some();
    record.attempted += 1;
    let written = if known {
        let patch = Patch::Merge(json!({"spec": {"reason": record.attempted.to_string()}}));
        api.patch(&record.name, &PatchParams::default(), &patch).await?
    } else {
        // An unanswered create is applied, not created, the next time.
        let object = object(&record.name, record.attempted)?;
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                api.patch(&record.name, &PatchParams::apply("writer").force(), &Patch::Apply(&object)).await?
            }
            other => other?,
        }
    };
    record.acknowledge(State::read(written)?);
    Ok(())
}

fn object(name: &str, number: u64) -> Result<DynamicObject> {
    let nothing = json!({"key": "selects", "operator": "In", "values": ["nothing"]});
    Ok(serde_json::from_value(json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "NodeMaintenance", "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [nothing]}]},
            "stage": "Idle", "reason": number.to_string(),
        },
    }))?)
}

fn api(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(drydock_api::GROUP, drydock_api::VERSION, "NodeMaintenance");
    Api::all_with(client, &ApiResource::from_gvk_with_plural(&kind, drydock_api::node_maintenance::RESOURCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> WrittenObject {
        WrittenObject {
            name: "a".into(),
            uid: Some("u".into()),
            acknowledged: 3,
            revision: 30,
            attempted: 4,
            removal: ObservedRemoval::None,
            backwards: None,
        }
    }

    fn state(uid: &str, number: u64, revision: u64) -> State {
        State { uid: uid.into(), revision, number }
    }

    #[test]
    fn what_was_acknowledged_or_only_attempted_is_no_contradiction() {
        assert_eq!(record().contradiction(Some(&state("u", 3, 30))), None);
        assert_eq!(record().contradiction(Some(&state("u", 4, 31))), None);
        let removing = WrittenObject { removal: ObservedRemoval::Attempted, ..record() };
        assert_eq!(removing.contradiction(None), None);
        assert_eq!(removing.contradiction(Some(&state("u", 4, 31))), None);
    }

    #[test]
    fn an_injected_loss_is_a_contradiction() {
        let contradiction = |record: &WrittenObject, found: Option<State>| {
            record.contradiction(found.as_ref()).unwrap_or_default()
        };
        assert!(contradiction(&record(), None).contains("gone"));
        assert!(contradiction(&record(), Some(state("u", 2, 29))).contains("another state"));
        assert!(contradiction(&record(), Some(state("v", 3, 30))).contains("another UID"));
        assert!(contradiction(&record(), Some(state("u", 3, 29))).contains("an older revision"));
        let removed = WrittenObject { removal: ObservedRemoval::Acknowledged, ..record() };
        assert!(contradiction(&removed, Some(state("u", 3, 30))).contains("removal"));
        let mut late = record();
        late.acknowledge(state("u", 4, 30));
        assert!(contradiction(&late, Some(state("u", 4, 30))).contains("after a newer one"));
    }
}
