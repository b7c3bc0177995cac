//! Acquires the Lease, renews it, and gives it back.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::decide::{LastLease, admissible, first_spec, next_spec, previous_renewal, released};
use super::earlier::{EarlierTerms, term};
use super::fencing::explained;
use super::raises::Raises;
use super::{LeaseConfig, LeaseHandle, RefusedToken};
use crate::error::{ApiErrorKind, classify, find};
use crate::events::{EventRecorder, Regarding, Severity, reasons};
use drydock_logging::with_causes;

/// How a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadershipEnd {
    /// We were asked to stop, and tried to give the lease back.
    Stopped,
    /// The lease could not be renewed in time, or somebody else has it.
    Lost,
}

/// A candidate for a Lease.
pub struct Elector {
    api: Api<Lease>,
    /// For reads.
    objects: Api<DynamicObject>,
    config: LeaseConfig,
    handle: LeaseHandle,
    recorder: EventRecorder,
    seen: LastLease,
    held: Option<Lease>,
    terms: EarlierTerms,
    raises: Raises,
}

impl Elector {
    /// Returns a candidate that reports through `handle` whether it holds the Lease. Events about the Lease go to `recorder`.
    pub fn new(client: &Client, config: LeaseConfig, handle: LeaseHandle, recorder: EventRecorder) -> Self {
        let api = Api::namespaced(client.clone(), &config.namespace);
        let kind = ApiResource::erase::<Lease>(&());
        let objects = Api::namespaced_with(client.clone(), &config.namespace, &kind);
        let (seen, terms, raises) = <_>::default();
        Self { api, objects, config, handle, recorder, seen, held: None, terms, raises }
    }

    /// Waits until the lease is ours. `false` if stopped before.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let mut failing = false;
        info!(identity = self.config.identity, lease = self.config.name, "waiting for the lease");
        loop {
            match self.try_once().await {
                Ok(true) => {
                    info!(identity = self.config.identity, term = self.handle.term(), "holding the lease");
                    return true;
                }
                Ok(false) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    warn!(
                        error = with_causes(&error),
                        lease = self.config.name,
                        "cannot read or write the lease; trying again"
                    );
                }
                Err(_) => {}
            }
            if !self.pause(stop).await {
                return false;
            }
        }
    }

    /// Keeps the lease until `stop` or until it is lost; after a loss [`LeaseHandle::is_valid`] is already false.
    pub async fn hold(&mut self, stop: &CancellationToken) -> LeadershipEnd {
        let mut failing = false;
        loop {
            if !self.pause(stop).await {
                self.release().await;
                return LeadershipEnd::Stopped;
            }
            match self.try_once().await {
                Ok(true) => {
                    if std::mem::take(&mut failing) {
                        info!(lease = self.config.name, "the lease is renewed again");
                    }
                }
                Ok(false) => {
                    self.handle.end();
                    return LeadershipEnd::Lost;
                }
                // One warning for all attempts: the loss itself is logged when it happens.
                Err(error) if !std::mem::replace(&mut failing, true) => {
                    warn!(
                        error = with_causes(&error),
                        "cannot renew the lease; trying again until it is lost"
                    );
                }
                Err(error) => debug!(error = with_causes(&error), "still cannot renew the lease"),
            }
            if !self.handle.is_valid() {
                return LeadershipEnd::Lost;
            }
        }
    }

    async fn pause(&self, stop: &CancellationToken) -> bool {
        tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(self.config.retry_period) => true,
        }
    }

    /// Makes one attempt, in bounded time; returns whether the lease is ours.
    async fn try_once(&mut self) -> Result<bool, kube::Error> {
        let limit = self.config.renew_deadline.min(Duration::from_secs(5));
        match tokio::time::timeout(limit, self.attempt()).await {
            Ok(result) => result,
            Err(_) => Err(kube::Error::Service("no answer in time".into())),
        }
    }

    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        // Our term is counted from before the write, so that it ends before others stop waiting for us.
        let began = self.handle.clock().since_boot();
        let Some(object) = find(&self.objects, &self.config.name).await? else {
            let spec = first_spec(&self.config, self.terms.last(), self.handle.clock().now());
            return self.write(began, None, spec).await;
        };
        let mut lease = lease_of(object)?;
        self.seen.update(lease.metadata.resource_version.as_deref().unwrap_or_default(), began);
        self.terms.note(&lease);
        let mut old = lease.spec.take().unwrap_or_default();
        old.acquire_time = old.acquire_time.or(self.terms.last().map(MicroTime));
        if let Some(until) = previous_renewal(&old, &self.config.identity) {
            self.handle.follow(until);
        }
        let now = self.handle.clock().now();
        let Some(spec) = next_spec(&old, &self.config, self.seen.at, began, now) else {
            self.raises.cancel();
            return Ok(false);
        };
        let spec = self.admitted(began, spec);
        self.write(began, Some(lease), spec).await
    }

    /// The spec of another term if this one is refused, and if it is time for another one. The Lease is ours, as the API server
    /// of Leases has it now: no newer leader has made our term outdated.
    fn admitted(&mut self, began: Duration, spec: LeaseSpec) -> LeaseSpec {
        let refused = self.handle.refused_token().filter(|refused| refused.term == term(&spec));
        let Some(refused) = refused else { return spec };
        let Some(next) = admissible(&spec, refused, &self.terms) else {
            if self.raises.give_up(refused) {
                self.tell(refused, None);
            }
            return spec;
        };
        if !self.raises.may_begin(began, self.config.retry_period) {
            return spec;
        }
        self.raises.begin(refused);
        next
    }

    /// Tells people that our term was refused, and how it goes on.
    fn tell(&self, refused: RefusedToken, next: Option<u64>) {
        let message = explained(refused, next);
        warn!(lease = self.config.name, message);
        let meta = self.held.as_ref().map(|lease| lease.metadata.clone()).unwrap_or_default();
        let lease = Regarding {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease",
            namespace: self.config.namespace.clone(),
            name: self.config.name.clone(),
            uid: meta.uid.unwrap_or_default(),
            resource_version: meta.resource_version.unwrap_or_default(),
            creator: String::new(),
            comes_first: false,
        };
        self.recorder.publish(lease, Severity::Warning, reasons::FENCING_TOKEN_REFUSED, message);
    }

    async fn write(
        &mut self,
        began: Duration,
        old: Option<Lease>,
        spec: LeaseSpec,
    ) -> Result<bool, kube::Error> {
        let name = self.config.name.clone();
        let params = PostParams::default();
        let result = match old {
            Some(old) => self.api.replace(&name, &params, &self.terms.lease(old, spec)).await,
            None => {
                let metadata = ObjectMeta { name: Some(name), ..Default::default() };
                let new = Lease { metadata, ..Lease::default() };
                self.api.create(&params, &self.terms.lease(new, spec)).await
            }
        };
        match result {
            Ok(lease) => {
                let term = lease.spec.as_ref().map(term).unwrap_or_default();
                self.handle.extend(term, began + self.config.renew_deadline);
                self.terms.note(&lease);
                self.held = Some(lease);
                if let Some(refused) = self.raises.end(began, term) {
                    self.tell(refused, Some(term));
                }
                Ok(true)
            }
            // Another process was faster. The next attempt shows whether it holds the lease now.
            Err(error)
                if matches!(classify(&error), ApiErrorKind::Conflict | ApiErrorKind::AlreadyExists) =>
            {
                Ok(self.handle.is_valid())
            }
            Err(error) => Err(error),
        }
    }

    async fn release(&mut self) {
        self.handle.end();
        let Some(mut lease) = self.held.take() else { return };
        let spec = released(&lease.spec.take().unwrap_or_default(), self.handle.clock().now());
        let lease = Lease { spec: Some(spec), ..lease };
        let params = PostParams::default();
        let write = self.api.replace(&self.config.name, &params, &lease);
        match tokio::time::timeout(Duration::from_secs(2), write).await {
            Ok(Ok(_)) => info!("gave the lease back"),
            Ok(Err(error)) => {
                warn!(error = with_causes(&error), "could not give the lease back; it runs out by itself")
            }
            Err(_) => warn!("could not give the lease back in time; it runs out by itself"),
        }
    }
}

/// The Lease that was read. A time that is none of ours, such as one in the last days of 9999, counts as absent: else nobody
/// could lead before somebody deletes the Lease.
fn lease_of(mut object: DynamicObject) -> Result<Lease, kube::Error> {
    let mut spec = object.data.get_mut("spec").map(Value::take).unwrap_or_default();
    for name in ["acquireTime", "renewTime"] {
        if let Some(time) = spec.get_mut(name)
            && serde_json::from_value::<MicroTime>(time.clone()).is_err()
        {
            *time = Value::Null;
        }
    }
    let spec = serde_json::from_value(spec).map_err(kube::Error::SerdeError)?;
    Ok(Lease { metadata: object.metadata, spec })
}
