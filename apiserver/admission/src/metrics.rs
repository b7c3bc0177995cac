//! Metrics with kube-apiserver's names (k8s.io/apiserver pkg/admission/metrics,
//! pkg/admission/plugin/policy/validating/metrics).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::cel::OUT_OF_BUDGET;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    policy: String,
    policy_binding: String,
    error_type: &'static str,
    enforcement_action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    name: String,
    r#type: &'static str,
    operation: &'static str,
    rejected: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    name: String,
    r#type: &'static str,
    operation: &'static str,
    error_type: &'static str,
    rejection_code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    name: String,
    r#type: &'static str,
}

/// Metrics of policies and webhooks.
#[derive(Clone, Debug)]
pub struct Metrics {
    checks: Family<PolicyLabels, Counter>,
    calls: Family<CallLabels, Histogram, fn() -> Histogram>,
    // Gauges, because the encoder appends `_total` to the name of a counter, and these two have other names.
    rejections: Family<RejectionLabels, Gauge>,
    failed_open: Family<WebhookLabels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            checks: Family::default(),
            calls: Family::new_with_constructor(|| {
                Histogram::new([0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0])
            }),
            rejections: Family::default(),
            failed_open: Family::default(),
        }
    }
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let what = "Validating admission policies that spoke against a request, by what was done about it";
        registry.register("apiserver_validating_admission_policy_check", what, self.checks.clone());
        let what = "Latency of admission webhooks";
        registry.register("apiserver_admission_webhook_admission_duration_seconds", what, self.calls.clone());
        let what = "Requests that admission webhooks refused, or for which they could not be called";
        registry.register("apiserver_admission_webhook_rejection_count", what, self.rejections.clone());
        let what = "Admission webhooks that could not be called, which they say to ignore";
        registry.register("apiserver_admission_webhook_fail_open_count", what, self.failed_open.clone());
    }

    /// Counts a policy that rejected a request or could not be evaluated. `action` is `deny`, `warn` or `audit`.
    pub fn checked(&self, policy: &str, binding: &str, message: &str, is_error: bool, action: &'static str) {
        let error_type = match message {
            _ if !is_error => "invalid_error",
            text if text.starts_with("compilation") => "compile_error",
            text if text.starts_with(OUT_OF_BUDGET) => "out_of_budget",
            _ => "invalid_error",
        };
        let (policy, policy_binding) = (policy.to_owned(), binding.to_owned());
        self.checks
            .get_or_create(&PolicyLabels { policy, policy_binding, error_type, enforcement_action: action })
            .inc();
    }

    /// Observes a call of a webhook.
    pub fn called(
        &self,
        name: &str,
        type_: &'static str,
        operation: &'static str,
        rejected: bool,
        took: Duration,
    ) {
        let rejected = if rejected { "true" } else { "false" };
        let call = CallLabels { name: name.to_owned(), r#type: type_, operation, rejected };
        self.calls.get_or_create(&call).observe(took.as_secs_f64());
    }

    /// Counts a webhook that rejected a request (`no_error`), that could not be called (with this code), or whose
    /// response could not be applied.
    pub fn rejected(
        &self,
        name: &str,
        type_: &'static str,
        operation: &'static str,
        error_type: &'static str,
        rejection_code: u16,
    ) {
        self.rejections
            .get_or_create(&RejectionLabels {
                name: name.to_owned(),
                r#type: type_,
                operation,
                error_type,
                rejection_code: rejection_code.min(600),
            })
            .inc();
    }

    /// Counts a webhook that could not be called and whose failure was ignored.
    pub fn failed_open(&self, name: &str, type_: &'static str) {
        self.failed_open.get_or_create(&WebhookLabels { name: name.to_owned(), r#type: type_ }).inc();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dashboards_find_the_names_that_they_know() {
        let (metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        metrics.checked("p", "b", "compilation error: x", true, "deny");
        metrics.called("h", "admit", "CREATE", true, Duration::from_millis(20));
        metrics.rejected("h", "admit", "CREATE", "no_error", 403);
        metrics.rejected("h", "admit", "CREATE", "calling_webhook_error", 503);
        metrics.failed_open("h", "validating");
        let mut shown = String::new();
        prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
        for line in [
            r#"apiserver_validating_admission_policy_check_total{policy="p",policy_binding="b",error_type="compile_error",enforcement_action="deny"} 1"#,
            r#"apiserver_admission_webhook_rejection_count{name="h",type="admit",operation="CREATE",error_type="no_error",rejection_code="403"} 1"#,
            r#"apiserver_admission_webhook_rejection_count{name="h",type="admit",operation="CREATE",error_type="calling_webhook_error",rejection_code="503"} 1"#,
            r#"apiserver_admission_webhook_fail_open_count{name="h",type="validating"} 1"#,
        ] {
            assert!(shown.lines().any(|it| it == line), "{line} is not in\n{shown}");
        }
        assert!(shown.contains("apiserver_admission_webhook_admission_duration_seconds_bucket"), "{shown}");
    }
}
