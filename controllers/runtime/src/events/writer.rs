//! Writes events as core/v1 Events, which `kubectl describe` shows.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::aggregate::{Action, Aggregator};
use super::{Note, Queue, Severity};
use crate::error::{Failure, classify};

/// Writes until `stop`.
pub(super) async fn write_events(
    client: Client,
    component: &'static str,
    queue: Arc<Queue>,
    stop: CancellationToken,
) {
    let mut aggregator = Aggregator::default();
    loop {
        let note = tokio::select! {
            () = stop.cancelled() => return,
            note = queue.next() => note,
        };
        let write = write(&client, component, &mut aggregator, &note);
        match tokio::time::timeout(Duration::from_secs(10), write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, reason = note.reason, "event not written"),
            Err(_) => debug!(reason = note.reason, "event not written in time"),
        }
    }
}

async fn write(
    client: &Client,
    component: &'static str,
    aggregator: &mut Aggregator,
    note: &Note,
) -> Result<(), kube::Error> {
    let namespace = namespace_of(note);
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    match aggregator.take(note) {
        Action::Drop => return Ok(()),
        Action::Count { name, count } => {
            let patch = json!({"count": count, "lastTimestamp": Time(note.time)});
            match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                Err(error) if classify(&error) == Failure::NotFound => aggregator.gone(note),
                result => return result.map(drop),
            }
        }
        Action::Create => {}
    }
    let event = event(note, namespace, component);
    let name = event.metadata.name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &event).await?;
    aggregator.created(note, name);
    Ok(())
}

/// Events of cluster-scoped objects live in `default`.
fn namespace_of(note: &Note) -> &str {
    if note.regarding.namespace.is_empty() { "default" } else { &note.regarding.namespace }
}

fn event(note: &Note, namespace: &str, component: &str) -> Event {
    let regarding = &note.regarding;
    let time = Time(note.time);
    // As client-go names them: the object's name and the time in hex.
    let name = format!("{}.{:x}", regarding.name, note.time.as_nanosecond());
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            ..Default::default()
        },
        involved_object: ObjectReference {
            api_version: Some(regarding.api_version.clone()),
            kind: Some(regarding.kind.to_owned()),
            namespace: (!regarding.namespace.is_empty()).then(|| regarding.namespace.clone()),
            name: Some(regarding.name.clone()),
            uid: Some(regarding.uid.clone()),
            resource_version: Some(regarding.resource_version.clone()),
            field_path: None,
        },
        type_: Some(
            match note.severity {
                Severity::Normal => "Normal",
                Severity::Warning => "Warning",
            }
            .to_owned(),
        ),
        reason: Some(note.reason.to_owned()),
        message: Some(note.message.clone()),
        source: Some(EventSource { component: Some(component.to_owned()), host: None }),
        reporting_component: Some(component.to_owned()),
        first_timestamp: Some(time.clone()),
        last_timestamp: Some(time),
        count: Some(1),
        ..Default::default()
    }
}
