//! The gauges that KEP-4563 names, computed from the cache at each scrape. Only unfinished requests have
//! series, and the number of series is bounded: their labels are names that tenants choose, a hundred for
//! each request.

use std::hash::Hash;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::metrics::series::{self, MAX_SERIES};
use drydock_runtime::metrics::{Metrics, SnapshotMetric};
use drydock_runtime::{ControllerContext, HostCaches};
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

type RequestGauges<L> = Family<L, Gauge>;

/// The gauges. Together they show at most [`MAX_SERIES`].
pub(crate) struct RequestMetrics {
    active: SnapshotMetric<RequestGauges<OfInterceptor>>,
    processed: SnapshotMetric<RequestGauges<OfInterceptor>>,
    requesters: SnapshotMetric<RequestGauges<OfRequester>>,
    of_pod: SnapshotMetric<RequestGauges<OfInterceptor>>,
    left_out: Gauge,
}

/// The gauges that one scrape shows.
#[derive(Default)]
struct EvictionRequestCounts {
    active: RequestGauges<OfInterceptor>,
    processed: RequestGauges<OfInterceptor>,
    requesters: RequestGauges<OfRequester>,
    of_pod: RequestGauges<OfInterceptor>,
}

/// How many more series one scrape may have, and how many were left out.
struct SeriesQuota {
    left: usize,
    left_out: usize,
}

impl RequestMetrics {
    /// Registers the gauges; with `aggregate` they count by namespace, with empty names.
    pub(crate) fn register(context: &ControllerContext, aggregate: bool) {
        let gauges = Self::add(&context.metrics);
        let caches = context.caches.clone();
        context.metrics.before_scrape(move || gauges.refresh(&caches, aggregate));
    }

    fn add(metrics: &Metrics) -> Self {
        Self {
            active: metrics.add(
                "evictionrequest_controller_active_interceptor",
                "Active interceptors of unfinished EvictionRequests",
            ),
            processed: metrics.add(
                "evictionrequest_controller_processed_interceptor",
                "Processed interceptors of unfinished EvictionRequests",
            ),
            requesters: metrics.add(
                "evictionrequest_controller_active_requester",
                "Requesters of unfinished EvictionRequests",
            ),
            of_pod: metrics.add(
                "evictionrequest_controller_pod_interceptors",
                "Interceptors of the pods of unfinished EvictionRequests",
            ),
            left_out: metrics.add(
                "drydock_evictionrequest_series_left_out",
                "Series of EvictionRequests that this scrape has no room for (see --aggregate-request-metrics)",
            ),
        }
    }

    fn refresh(&self, caches: &HostCaches, aggregate: bool) {
        let requests = caches.requests.all().into_iter().filter(|request| !request.is_finished());
        self.show(requests, aggregate, MAX_SERIES);
    }

    /// Shows these requests in at most `series` series.
    fn show(&self, requests: impl Iterator<Item = Arc<EvictionRequest>>, aggregate: bool, series: usize) {
        let (counted, mut quota) =
            (EvictionRequestCounts::default(), SeriesQuota { left: series, left_out: 0 });
        let requests = requests.map(|request| (request.metadata.namespace.clone(), request));
        series::each(requests, |request| {
            let before = quota.left;
            counted.count(&request, aggregate, &mut quota);
            before - quota.left
        });
        let EvictionRequestCounts { active, processed, requesters, of_pod } = counted;
        self.active.replace(active);
        self.processed.replace(processed);
        self.requesters.replace(requesters);
        self.of_pod.replace(of_pod);
        self.left_out.set(i64::try_from(quota.left_out).unwrap_or(i64::MAX));
    }
}

impl EvictionRequestCounts {
    fn count(&self, request: &EvictionRequest, aggregate: bool, quota: &mut SeriesQuota) {
        if quota.left == 0 && !aggregate {
            quota.left_out += values(request);
            return;
        }
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
            quota.count(&self.active, &of(interceptor));
        }
        for interceptor in &status.processed_interceptors {
            quota.count(&self.processed, &of(interceptor));
        }
        for interceptor in &status.target_interceptors {
            quota.count(&self.of_pod, &of(&interceptor.name));
        }
        for requester in &request.spec.requesters {
            let label = OfRequester {
                namespace: namespace.clone(),
                name: name.clone(),
                pod: pod.clone(),
                requester: requester.name.clone(),
            };
            quota.count(&self.requesters, &label);
        }
    }
}

impl SeriesQuota {
    /// Counts one more under a label, if the label has a series or one more is allowed; else counts it as
    /// left out.
    fn count<L: Clone + Eq + Hash>(&mut self, family: &Family<L, Gauge>, label: &L) {
        if let Some(gauge) = family.get(label) {
            gauge.inc();
            return;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                family.get_or_create(label).inc();
            }
            None => self.left_out += 1,
        }
    }
}

/// How many series a request has by itself.
fn values(request: &EvictionRequest) -> usize {
    let status = &request.status;
    let interceptors = [
        status.active_interceptors.len(),
        status.processed_interceptors.len(),
        status.target_interceptors.len(),
    ];
    interceptors.iter().sum::<usize>() + request.spec.requesters.len()
}

#[cfg(test)]
mod tests {
    use drydock_api::eviction_request::{Interceptor, LocalPodReference, Requester};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn request(namespace: &str, name: &str, requesters: usize) -> Arc<EvictionRequest> {
        let mut request = EvictionRequest::named(namespace, name);
        request.spec.requesters =
            (0..requesters).map(|n| Requester { name: format!("r{n}.example.com") }).collect();
        Arc::new(request)
    }

    /// The series of a scrape, by namespace, and how many were left out.
    fn shown(requests: &[Arc<EvictionRequest>], aggregate: bool) -> (Vec<(String, usize)>, i64) {
        let gauges = RequestMetrics::add(&Metrics::new());
        // What an earlier scrape showed takes no room.
        gauges.show((0..9).map(|n| request("gone", &n.to_string(), 99)), aggregate, 1000);
        gauges.show(requests.iter().cloned(), aggregate, 1000);
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("requesters", "", gauges.requesters.clone());
        encode(&mut text, &registry).unwrap();
        let mut series = std::collections::BTreeMap::<String, usize>::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let namespace = line.split('"').nth(1).unwrap().to_owned();
            *series.entry(namespace).or_default() += 1;
        }
        (series.into_iter().collect(), gauges.left_out.get())
    }

    /// A tenant names a hundred requesters in each request, and each name was a series.
    #[test]
    fn series_of_names_that_a_tenant_chooses_are_bounded_and_displace_no_other_namespace() {
        let mut requests = (0..500).map(|n| request("loud", &format!("r{n}"), 100)).collect::<Vec<_>>();
        requests.extend((0..5).map(|n| request("quiet", &format!("r{n}"), 2)));
        let (series, left_out) = shown(&requests, false);
        assert_eq!(series, [("loud".to_owned(), 990), ("quiet".to_owned(), 10)]);
        assert_eq!(left_out, 500 * 100 + 10 - 1000);
    }

    /// Prometheus in two copies: while one scrape cleared the gauges and counted anew, the other one found none.
    #[test]
    fn a_scrape_never_misses_series_that_another_one_counts_anew() {
        let metrics = Metrics::new();
        let gauges = RequestMetrics::add(&metrics);
        let requests = [request("ns", "r", 1)];
        gauges.show(requests.iter().cloned(), false, MAX_SERIES);
        let mut seen = Vec::new();
        // Halfway through the count.
        let looked = requests.iter().cloned().inspect(|_| seen.push(metrics.render()));
        gauges.show(looked, false, MAX_SERIES);
        assert!(seen[0].contains("requester=\"r0.example.com\"} 1"), "{}", seen[0]);
    }

    /// KEP-4563, Monitoring Requirements.
    #[test]
    fn gauges_have_the_names_of_the_kep_and_say_which_request_and_pod() {
        let mut request = EvictionRequest::named("ns", "u");
        request.spec.target.pod = Some(LocalPodReference { name: "p".to_owned(), uid: "u".to_owned() });
        request.spec.requesters = vec![Requester { name: "r.example.com".to_owned() }];
        request.status.target_interceptors =
            ["a", "b"].map(|name| Interceptor { name: format!("{name}.example.com") }).into();
        request.status.active_interceptors = vec!["b.example.com".to_owned()];
        request.status.processed_interceptors = vec!["a.example.com".to_owned()];
        let metrics = Metrics::new();
        RequestMetrics::add(&metrics).show([Arc::new(request)].into_iter(), false, MAX_SERIES);
        let text = metrics.render();
        for (name, value) in [
            ("active_interceptor", "interceptor=\"b.example.com\""),
            ("processed_interceptor", "interceptor=\"a.example.com\""),
            ("pod_interceptors", "interceptor=\"a.example.com\""),
            ("pod_interceptors", "interceptor=\"b.example.com\""),
            ("active_requester", "requester=\"r.example.com\""),
        ] {
            let labels = format!("namespace=\"ns\",name=\"u\",pod=\"p\",{value}");
            let line = format!("evictionrequest_controller_{name}{{{labels}}} 1");
            assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn room_is_free_again_once_requests_have_ended() {
        let quiet = [request("quiet", "a", 3)];
        assert_eq!(shown(&quiet, false), (vec![("quiet".to_owned(), 3)], 0));
    }

    #[test]
    fn sums_take_the_room_of_their_names_alone() {
        let requests = (0..50).map(|n| request("ns", &format!("r{n}"), 4)).collect::<Vec<_>>();
        assert_eq!(shown(&requests, true), (vec![("ns".to_owned(), 4)], 0));
    }
}
