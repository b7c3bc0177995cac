//! The gauges that KEP-4563 names, worked out of the cache at each scrape: series exist only for unfinished requests.

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::{Caches, Context};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfInterceptor {
    namespace: String,
    name: String,
    pod: String,
    interceptor: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRequester {
    namespace: String,
    name: String,
    pod: String,
    requester: String,
}

/// The gauges.
#[derive(Clone, Default)]
pub(crate) struct RequestMetrics {
    active: Family<OfInterceptor, Gauge>,
    processed: Family<OfInterceptor, Gauge>,
    requesters: Family<OfRequester, Gauge>,
    of_pod: Family<OfInterceptor, Gauge>,
}

impl RequestMetrics {
    /// Registers the gauges; with `aggregate` they count by namespace, with empty names.
    pub(crate) fn register(context: &Context, aggregate: bool) {
        let all = Self::default();
        let metrics = &context.metrics;
        metrics.register(
            "evictionrequest_controller_active_interceptor",
            "Active interceptors of unfinished EvictionRequests",
            all.active.clone(),
        );
        metrics.register(
            "evictionrequest_controller_processed_interceptor",
            "Processed interceptors of unfinished EvictionRequests",
            all.processed.clone(),
        );
        metrics.register(
            "evictionrequest_controller_active_requester",
            "Requesters of unfinished EvictionRequests",
            all.requesters.clone(),
        );
        metrics.register(
            "evictionrequest_controller_pod_interceptors",
            "Interceptors of the pods of unfinished EvictionRequests",
            all.of_pod.clone(),
        );
        let caches = context.caches.clone();
        metrics.before_scrape(move || all.refresh(&caches, aggregate));
    }

    fn refresh(&self, caches: &Caches, aggregate: bool) {
        self.active.clear();
        self.processed.clear();
        self.requesters.clear();
        self.of_pod.clear();
        for request in caches.requests.all().iter().filter(|r| !r.is_finished()) {
            self.count(request, aggregate);
        }
    }

    fn count(&self, request: &EvictionRequest, aggregate: bool) {
        let pod = request.spec.target.pod.as_ref().map(|p| p.name.clone()).unwrap_or_default();
        let shown = |s: &str| if aggregate { String::new() } else { s.to_owned() };
        let (name, pod) = (shown(&request.metadata.name), shown(&pod));
        let namespace = request.metadata.namespace.clone();
        let of = |interceptor: &str| OfInterceptor {
            namespace: namespace.clone(),
            name: name.clone(),
            pod: pod.clone(),
            interceptor: interceptor.to_owned(),
        };
        let status = &request.status;
        for interceptor in &status.active_interceptors {
            self.active.get_or_create(&of(interceptor)).inc();
        }
        for interceptor in &status.processed_interceptors {
            self.processed.get_or_create(&of(interceptor)).inc();
        }
        for interceptor in &status.target_interceptors {
            self.of_pod.get_or_create(&of(&interceptor.name)).inc();
        }
        for requester in &request.spec.requesters {
            let label = OfRequester {
                namespace: namespace.clone(),
                name: name.clone(),
                pod: pod.clone(),
                requester: requester.name.clone(),
            };
            self.requesters.get_or_create(&label).inc();
        }
    }
}
