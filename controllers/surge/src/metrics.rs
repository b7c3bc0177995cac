//! Metrics of the records, worked out before each scrape.

use std::sync::atomic::AtomicU64;

use drydock_api::eviction_request::transitions::gives_turns;
use drydock_runtime::surge_record::FoundRecord;
use prometheus_client::metrics::gauge::Gauge;

use crate::controller::SurgeController;

type RecordGauge = Gauge<u64, AtomicU64>;

/// Registers the metrics of the records that the caches of the controller hold.
pub fn register(controller: &SurgeController) {
    let metrics = &controller.context.metrics;
    let records: RecordGauge = metrics.add(
        "drydock_surge_records",
        "Surges that stand: records on Deployments and HorizontalPodAutoscalers",
    );
    let without_requests: RecordGauge = metrics.add(
        "drydock_surge_records_without_requests",
        "Surges that stand without a live EvictionRequest; not 0 for long only if they cannot be taken back",
    );
    let invalid: RecordGauge = metrics.add(
        "drydock_surge_records_invalid",
        "Deployments and HorizontalPodAutoscalers whose record of a surge cannot be read",
    );
    let controller = controller.clone();
    metrics.before_scrape(move || {
        let (mut all, mut idle, mut broken) = (0, 0, 0);
        for key in controller.workloads.recorded() {
            for holder in controller.workloads.holders_of(&key) {
                match holder.record() {
                    FoundRecord::Absent => {}
                    FoundRecord::Broken(_) => broken += 1,
                    FoundRecord::Valid(record) => {
                        all += 1;
                        let request =
                            |pod: &String| controller.context.caches.requests.find(&key.namespace, pod);
                        let is_live =
                            |pod: &String| request(pod).is_some_and(|request| gives_turns(&request));
                        idle += u64::from(!record.pods.iter().any(is_live));
                    }
                }
            }
        }
        records.set(all);
        without_requests.set(idle);
        invalid.set(broken);
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_runtime::surge_record::SurgeRecord;
    use drydock_runtime::testing;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::deployment::Deployment;
    use crate::turns::TurnTable;
    use crate::workloads::Workloads;

    #[tokio::test]
    async fn a_record_without_a_live_request_is_counted() {
        let context = testing::context(|_, _, _| testing::failure(500, "InternalError"));
        let controller =
            SurgeController { context, workloads: Workloads::new(), turns: TurnTable::default() };
        let context = &controller.context;
        register(&controller);
        let pods = ["live", "gone"]
            .map(|pod| SurgeRecord::new(1, 1, [pod.to_owned()].into(), Timestamp::UNIX_EPOCH));
        let records = pods.map(FoundRecord::Valid);
        for (name, record) in
            ["a", "b", "c"].into_iter().zip(records.into_iter().chain([FoundRecord::Broken(String::new())]))
        {
            let (name, namespace) = (name.to_owned(), "n".to_owned());
            controller.workloads.deployments.apply(Deployment {
                name,
                namespace,
                record,
                ..Deployment::default()
            });
        }
        let request = json!({"metadata": {"name": "live", "namespace": "n"}});
        context.caches.requests.apply(serde_json::from_value(request).unwrap());
        let shown = context.metrics.render();
        for (name, value) in [("records", 2), ("records_without_requests", 1), ("records_invalid", 1)] {
            assert!(shown.contains(&format!("drydock_surge_{name} {value}\n")), "{shown}");
        }
    }
}
