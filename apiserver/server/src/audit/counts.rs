//! What the audit log counts, by kube-apiserver's names (k8s.io/apiserver pkg/audit/metrics.go).

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::policy::Level;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugin {
    plugin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AuditLevelLabels {
    level: &'static str,
}

/// Counters of the audit log.
#[derive(Clone, Debug, Default)]
pub struct AuditMetrics {
    events: Counter,
    errors: Family<Plugin, Counter>,
    levels: Family<AuditLevelLabels, Counter>,
    rejected: Counter,
}

impl AuditMetrics {
    /// The encoder itself appends `_total`.
    pub fn register(&self, registry: &mut Registry) {
        let what = "Counter of audit events generated and sent to the audit backend";
        registry.register("apiserver_audit_event", what, self.events.clone());
        let what = "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error";
        registry.register("apiserver_audit_error", what, self.errors.clone());
        let what = "Counter of policy levels for audit events (1 per request)";
        registry.register("apiserver_audit_level", what, self.levels.clone());
        let what = "Counter of apiserver requests rejected due to an error in audit logging backend";
        registry.register("apiserver_audit_requests_rejected", what, self.rejected.clone());
    }

    /// Counts an event that was made.
    pub(super) fn event(&self) {
        self.events.inc();
    }

    /// Counts an event that was lost by `log`, `buffered` or `truncate`.
    pub(super) fn error(&self, plugin: &'static str) {
        self.errors.get_or_create(&Plugin { plugin }).inc();
    }

    /// Counts a request on which the policy has decided.
    pub(super) fn level(&self, level: Level) {
        let level = match level {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        };
        self.levels.get_or_create(&AuditLevelLabels { level }).inc();
    }

    /// Counts a request that was refused because it could not be logged.
    pub(super) fn rejected(&self) {
        self.rejected.inc();
    }
}
