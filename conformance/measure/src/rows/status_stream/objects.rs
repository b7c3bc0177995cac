//! The objects that the stream delivers: EvictionRequests of one node, whose imperative interceptor's message
//! is the number of the write.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::frames;
use super::seen::SubscribersSeen;
use crate::client::{HttpClient, SubjectClient};
use crate::object::{self, SMALL};

/// Number in the name of the first one: the watchers' objects have lower ones.
pub const FIRST: u64 = 1 << 40;
/// The node on which their pods are.
pub const NODE: &str = "status-stream";
const INTERCEPTOR: &str = "imperative-eviction.k8s.io";

/// Objects as they were last written.
pub struct StreamObjects {
    /// Each is locked from a write until its answer.
    all: Vec<Mutex<Value>>,
    beats: Cell<u64>,
}

impl StreamObjects {
    /// Creates so many, in the turn of an interceptor who has said nothing.
    pub async fn create(client: &HttpClient, count: usize) -> Result<Self> {
        let mut all = Vec::with_capacity(count);
        for index in 0..count {
            let name = name(index);
            let sent = client.object(&name, SMALL)?;
            client.create(0, &name, sent.clone()).await?;
            let mut object: Value = serde_json::from_slice(&sent)?;
            object["metadata"]["resourceVersion"] = client.revision_of(0, &name).await?.into();
            object["status"] = json!({
                "podInfo": {"nodeName": NODE, "podType": "Default", "priority": 0},
                "targetInterceptors": [{"name": INTERCEPTOR}],
                "activeInterceptors": [INTERCEPTOR],
                "activationTime": format!("{:.6}", Timestamp::now()),
                "interceptors": [{"name": INTERCEPTOR, "message": ""}],
            });
            report(client, 0, &name, &mut object).await?;
            all.push(Mutex::new(object));
        }
        Ok(Self { all, beats: Cell::new(1) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The first of so many writes that follow one another.
    pub fn take_beats(&self, writes: usize) -> u64 {
        self.beats.replace(self.beats.get() + writes as u64)
    }

    /// Writes objects in turn at a fixed rate, whether or not the writes before have been answered; those of
    /// one object are made one after another.
    pub async fn write(
        self: &Rc<Self>,
        client: &Rc<HttpClient>,
        lane: usize,
        rate: u32,
        seen: &SubscribersSeen,
    ) -> Result<()> {
        let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
        let mut writes = Vec::with_capacity(seen.writes);
        for (turn, beat) in seen.beats().enumerate() {
            tick.tick().await;
            seen.send();
            let (objects, client, index) = (self.clone(), client.clone(), turn % self.count());
            writes.push(tokio::task::spawn_local(async move {
                let mut object = objects.all[index].lock().await;
                object["status"]["interceptors"][0]["message"] = frames::message(beat).into();
                report(&client, lane, &name(index), &mut object).await
            }));
        }
        for write in writes {
            write.await??;
        }
        Ok(())
    }
}

/// Writes the status of an object, and notes its new revision.
async fn report(client: &HttpClient, lane: usize, name: &str, object: &mut Value) -> Result<()> {
    let revision = client.report(lane, name, serde_json::to_vec(object)?.into()).await?;
    object["metadata"]["resourceVersion"] = revision.into();
    Ok(())
}

fn name(index: usize) -> String {
    object::name(FIRST + index as u64)
}
