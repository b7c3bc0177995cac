//! Writes events as core/v1 Events, which `kubectl describe` shows.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::aggregate::{Aggregator, EventWrite, WriteMode};
use super::{EventQueue, RecordedEvent, Regarding, Severity};
use crate::clock::Clock;
use crate::error::{ApiErrorKind, classify};
use drydock_logging::with_causes;

/// Most characters of an event's name, which is a DNS subdomain.
const MAX_NAME: usize = 253;

/// Writes events until `stop`, and counts those that are lost.
pub(super) async fn write_events(
    client: Client,
    component: &'static str,
    queue: Arc<EventQueue>,
    dropped: Counter,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut aggregator = Aggregator::default();
    loop {
        let due = aggregator.next_due().map(|at| tokio::time::sleep(clock.until(at)));
        let write = tokio::select! {
            () = stop.cancelled() => return,
            event = queue.next() => aggregator.take(event),
            Some(()) = OptionFuture::from(due) => aggregator.due(clock.now()),
        };
        dropped.inc_by(aggregator.dropped());
        let Some(write) = write else { continue };
        let reason = write.event.reason;
        let written = send(&client, component, &mut aggregator, write);
        match tokio::time::timeout(Duration::from_secs(10), written).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => debug!(error = with_causes(&error), reason, "event not written"),
            Err(_) => debug!(reason, "event not written in time"),
        }
        dropped.inc();
    }
}

async fn send(
    client: &Client,
    component: &str,
    aggregator: &mut Aggregator,
    mut write: EventWrite,
) -> Result<(), kube::Error> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace_of(&write.event));
    if let WriteMode::Count { name, count } = &write.how {
        let event = &write.event;
        let patch = json!({"count": count, "lastTimestamp": Time(event.time), "message": event.message});
        match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(error) if classify(&error) == ApiErrorKind::NotFound => write = aggregator.gone(write),
            result => {
                result?;
                let name = name.clone();
                aggregator.written(&write, name);
                return Ok(());
            }
        }
    }
    let event = event(&write, component);
    let name = event.metadata.name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &event).await?;
    aggregator.written(&write, name);
    Ok(())
}

/// Events of cluster-scoped objects live in `default`.
fn namespace_of(event: &RecordedEvent) -> &str {
    if event.regarding.namespace.is_empty() { "default" } else { &event.regarding.namespace }
}

fn event(write: &EventWrite, component: &str) -> Event {
    let event = &write.event;
    let (WriteMode::Create { count } | WriteMode::Count { count, .. }) = write.how;
    let regarding = &event.regarding;
    let time = Time(event.time);
    // The name is made as by client-go, of the object's name and the time in hex; a name that leaves no room
    // for the time is shortened.
    let time_in_hex = format!(".{:x}", event.time.as_nanosecond());
    let name = shortened(&regarding.name, MAX_NAME.saturating_sub(time_in_hex.len())) + &time_in_hex;
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace_of(event).to_owned()),
            ..Default::default()
        },
        involved_object: reference(regarding),
        related: event.related.as_ref().map(reference),
        type_: Some(
            match event.severity {
                Severity::Normal => "Normal",
                Severity::Warning => "Warning",
            }
            .to_owned(),
        ),
        reason: Some(event.reason.to_owned()),
        message: Some(event.message.clone()),
        source: Some(EventSource { component: Some(component.to_owned()), host: None }),
        reporting_component: Some(component.to_owned()),
        first_timestamp: Some(time.clone()),
        last_timestamp: Some(time),
        count: Some(count),
        ..Default::default()
    }
}

/// Returns the first `most` bytes of a name at most, without '.' and '-' at a cut end, where a DNS label may
/// not have them.
fn shortened(name: &str, most: usize) -> String {
    let first = &name[..name.floor_char_boundary(most)];
    if first.len() == name.len() {
        return name.to_owned();
    }
    first.trim_end_matches(['.', '-']).to_owned()
}

fn reference(of: &Regarding) -> ObjectReference {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: Some(of.api_version.clone()),
        kind: Some(of.kind.to_owned()),
        namespace: given(&of.namespace),
        name: Some(of.name.clone()),
        uid: Some(of.uid.clone()),
        resource_version: given(&of.resource_version),
        field_path: None,
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
