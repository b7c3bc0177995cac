//! The watchers and reflectors of kube-rs see everything, once and in order.

use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use drydock_testkit::kinds::{node_maintenance, node_maintenance_resource, node_maintenances};
use drydock_testkit::wait::until;
use futures::stream::{BoxStream, Stream, StreamExt};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{self, reflector, store::Writer};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use crate::shared::{LIMIT, shared};

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_holds_what_it_selects() -> Result<()> {
    let api = node_maintenances(&shared().await?.drydock.host.client().await?);
    create(&api, "reflected-a", "reflected").await?;
    create(&api, "reflected-b", "other").await?;
    let writer = Writer::new(node_maintenance_resource());
    let reader = writer.as_reader();
    let selected = watcher::Config::default().labels("suite=reflected");
    let mut changes = Changes::of(reflector(writer, watcher(api.clone(), selected)));
    changes.listed().await?;
    assert_eq!(held(&reader), ["reflected-a"]);

    create(&api, "reflected-c", "reflected").await?;
    assert_eq!(changes.next().await?, "+reflected-c");
    // One comes into the selection, and one leaves it, by their labels alone.
    label(&api, "reflected-b", "reflected").await?;
    assert_eq!(changes.next().await?, "+reflected-b");
    label(&api, "reflected-a", "other").await?;
    assert_eq!(changes.next().await?, "-reflected-a");
    assert_eq!(held(&reader), ["reflected-b", "reflected-c"]);

    for name in ["reflected-a", "reflected-b", "reflected-c"] {
        api.delete(name, &DeleteParams::default()).await?;
    }
    // The first was no longer selected: no event reports its end.
    assert_eq!(changes.next().await?, "-reflected-b");
    assert_eq!(changes.next().await?, "-reflected-c");
    assert_eq!(held(&reader), Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_may_come_as_a_stream() -> Result<()> {
    let api = node_maintenances(&shared().await?.drydock.host.client().await?);
    create(&api, "streamed", "streamed").await?;
    let config = watcher::Config::default().labels("suite=streamed").streaming_lists();
    let mut changes = Changes::of(watcher(api.clone(), config));
    assert_eq!(changes.listed().await?, ["streamed"]);
    api.delete("streamed", &DeleteParams::default()).await?;
    assert_eq!(changes.next().await?, "-streamed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_alone_may_be_watched() -> Result<()> {
    let api = node_maintenances(&shared().await?.drydock.host.client().await?);
    create(&api, "metadata", "metadata").await?;
    let config = watcher::Config::default().labels("suite=metadata");
    let metadata: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(api.clone().into_client(), &node_maintenance_resource());
    let mut changes = Changes::of(watcher(metadata, config));
    assert_eq!(changes.listed().await?, ["metadata"]);
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"x": "y"}}}));
    api.patch("metadata", &PatchParams::default(), &patch).await?;
    assert_eq!(changes.next().await?, "+metadata");
    api.delete("metadata", &DeleteParams::default()).await?;
    assert_eq!(changes.next().await?, "-metadata");
    Ok(())
}

/// Events of a watch in short: `+NAME` or `-NAME`.
struct Changes<K> {
    events: BoxStream<'static, Result<Event<K>, watcher::Error>>,
    last: String,
}

impl<K: ResourceExt + Debug> Changes<K> {
    fn of(events: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static) -> Self {
        Self { events: events.boxed(), last: String::new() }
    }

    /// Reads on until the first list is complete; what was in it.
    async fn listed(&mut self) -> Result<Vec<String>> {
        let mut listed = Vec::new();
        loop {
            match self.event().await? {
                Event::Init => listed.clear(),
                Event::InitApply(object) => listed.push(object.name_any()),
                Event::InitDone => return Ok(listed),
                early => bail!("before the list was complete: {early:?}"),
            }
        }
    }

    /// The next change, where several in a row of one object are one: the controller writes its status meanwhile.
    async fn next(&mut self) -> Result<String> {
        loop {
            let change = match self.event().await? {
                Event::Apply(object) => format!("+{}", object.name_any()),
                Event::Delete(object) => format!("-{}", object.name_any()),
                again => bail!("the watch started anew: {again:?}"),
            };
            if change != self.last {
                self.last.clone_from(&change);
                return Ok(change);
            }
        }
    }

    async fn event(&mut self) -> Result<Event<K>> {
        let event = tokio::time::timeout(LIMIT, self.events.next()).await.context("no event in time")?;
        Ok(event.context("the watch ended")??)
    }
}

fn held(reader: &reflector::Store<DynamicObject>) -> Vec<String> {
    let mut names: Vec<String> = reader.state().iter().map(|object| object.name_any()).collect();
    names.sort();
    names
}

/// Creates a maintenance and waits until its controller has nothing more to say of it.
async fn create(api: &Api<DynamicObject>, name: &str, suite: &str) -> Result<()> {
    let mut object = node_maintenance(name, "Idle", &["nowhere"]);
    object["metadata"]["labels"] = json!({"suite": suite});
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let observed = |object: Option<&DynamicObject>| {
        object.is_some_and(|found| found.data["status"]["observedGeneration"] == 1)
    };
    until(api.clone(), name, LIMIT, "observed", observed).await.map(drop)
}

async fn label(api: &Api<DynamicObject>, name: &str, suite: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"suite": suite}}}));
    api.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
