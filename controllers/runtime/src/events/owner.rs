//! Events for the owner of a pod about its eviction.

use drydock_api::eviction_request::{Blocked, EvictionRequest, maintenances};
use drydock_api::text::cut_bytes;

use super::reasons::EVICTION_BLOCKED;
use super::{EventRecorder, MAX_MESSAGE, Regarding, Severity};
use crate::cache::{Cacheable, Pod, resource};
use crate::guide;

impl EventRecorder {
    /// Records an event about a pod's eviction on its request and on the pod, where its owner looks. Pod, node and
    /// maintenance stand in the message.
    pub fn publish_to_owner(
        &self,
        request: &EvictionRequest,
        severity: Severity,
        reason: &'static str,
        message: &str,
    ) {
        self.publish_to_readers(request, severity, reason, message);
        let message = format!("{}: {message}", subject(request));
        if let Some(pod) = target(request) {
            self.publish_related(pod, Some(Regarding::of(request)), severity, reason, message);
        }
    }

    /// Publishes to the owner what blocks the eviction, and what the owner can do: only admins can read the
    /// maintenance, which says it too. The words are cut if both do not fit.
    pub fn publish_block_to_owner(&self, request: &EvictionRequest, blocked: &Blocked, words: &str) {
        let way_out = guide::way_out(&blocked.reason, &blocked.state);
        // A colon and a space.
        let most = MAX_MESSAGE.saturating_sub(subject(request).len() + 2 + way_out.len());
        let message = cut_bytes(words.trim_end_matches('.'), most) + &way_out;
        self.publish_to_owner(request, Severity::Warning, EVICTION_BLOCKED, &message);
    }

    /// Records an event about a pod's eviction on its request alone, in the same words.
    pub fn publish_to_readers(
        &self,
        request: &EvictionRequest,
        severity: Severity,
        reason: &'static str,
        message: &str,
    ) {
        let message = format!("{}: {message}", subject(request));
        self.publish(Regarding::of(request), severity, reason, message);
    }
}

/// Names the eviction that an event or a log line is about, as in `Eviction of pod web-0 for NodeMaintenance
/// tidy (RAM swap) on node n1`.
pub fn subject(request: &EvictionRequest) -> String {
    let pod = request.spec.target.pod.as_ref().map_or("", |pod| pod.name.as_str());
    let node = request.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str());
    match (maintenances::clause_of(request), node) {
        (clause, "") if clause.is_empty() => format!("Eviction of pod {pod}"),
        (clause, node) if clause.is_empty() => format!("Eviction of pod {pod} on node {node}"),
        (clause, _) => format!("Eviction of pod {pod} {clause}"),
    }
}

fn target(request: &EvictionRequest) -> Option<Regarding> {
    let pod = request.spec.target.pod.as_ref()?;
    Some(Regarding {
        api_version: resource::<Pod>().api_version,
        kind: Pod::KIND,
        namespace: request.metadata.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        resource_version: String::new(),
        creator: String::new(),
        comes_first: false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use drydock_api::eviction_request::PodInfo;
    use drydock_api::eviction_request::maintenances::MAINTENANCES_ANNOTATION;
    use drydock_api::reasons::{ADMISSION_WEBHOOK, NEVER_ALLOWS, POD_DISRUPTION_BUDGET};
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::metrics::Metrics;

    #[test]
    fn pod_and_request_get_the_same_words_and_the_pod_names_the_request() {
        let recorder = EventRecorder::disconnected(&Metrics::new(), Clock::SYSTEM);
        let mut request = EvictionRequest::named("shop", "u1");
        request.metadata.uid = "r1".into();
        request.spec.target.pod = serde_json::from_value(json!({ "name": "web-0", "uid": "u1" })).unwrap();
        request.status.pod_info = Some(PodInfo { node_name: "n1".into(), ..Default::default() });
        recorder.publish_to_owner(&request, Severity::Normal, "R", "it goes");
        let annotation = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
        Arc::make_mut(&mut request.metadata.annotations).insert(MAINTENANCES_ANNOTATION.into(), annotation);
        recorder.publish_to_owner(&request, Severity::Normal, "R", "it goes");
        recorder.publish_to_readers(&request, Severity::Normal, "R", "it goes");
        let mut waiting = recorder.queue.waiting.lock();
        let notes: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let words: Vec<&str> = notes.iter().map(|event| event.message.as_str()).collect();
        let plain = "Eviction of pod web-0 on node n1: it goes";
        let full = "Eviction of pod web-0 for NodeMaintenance tidy (RAM swap) on node n1: it goes";
        assert_eq!(words, [plain, plain, full, full, full]);
        let about: Vec<_> = notes.iter().map(|event| (event.regarding.kind, &*event.regarding.uid)).collect();
        let (request, pod) = (("EvictionRequest", "r1"), ("Pod", "u1"));
        assert_eq!(about, [request, pod, request, pod, request]);
        let related = notes[1].related.as_ref().map(|related| (related.kind, &*related.uid));
        assert_eq!((notes[0].related.is_none(), related), (true, Some(("EvictionRequest", "r1"))));
    }

    /// A budget that never allows an eviction had the same event as one that is short for now, and owners
    /// cannot read the NodeMaintenance, which had the way out.
    #[test]
    fn what_blocks_is_told_with_the_way_out_however_long_the_words() {
        let recorder = EventRecorder::disconnected(&Metrics::new(), Clock::SYSTEM);
        let blocked = |reason: &str, state: &str| Blocked {
            reason: reason.into(),
            state: state.into(),
            ..Default::default()
        };
        let tell = |blocked: Blocked, words: &str| {
            recorder.publish_block_to_owner(&EvictionRequest::named("shop", "u1"), &blocked, words);
            recorder.take_all().remove(0).1
        };
        let never = tell(blocked(POD_DISRUPTION_BUDGET, NEVER_ALLOWS), "PodDisruptionBudget \"b\" allows 0.");
        let words = "Eviction of pod : PodDisruptionBudget \"b\" allows 0. The budget never allows an eviction: add a replica, \
                     lower its minAvailable, or raise its maxUnavailable (see NeverAllows in controllers/README.md)";
        assert_eq!(never, words);
        let long = tell(blocked(ADMISSION_WEBHOOK, ""), &"\u{e9}".repeat(4000));
        let end = "\u{e9}\u{2026}. Ask whoever runs the webhook or policy; the eviction is tried again (see AdmissionWebhook in \
                   controllers/README.md)";
        assert!(long.ends_with(end) && long.len() <= MAX_MESSAGE, "{long}");
    }
}
