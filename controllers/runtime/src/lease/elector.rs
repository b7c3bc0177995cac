//! Acquires the Lease, renews it, and gives it back.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::decide::{LastLease, first_spec, next_spec, previous_renewal, released, term};
use super::{LeaseConfig, LeaseHandle};
use crate::error::{ApiErrorKind, classify, find};
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
    config: LeaseConfig,
    handle: LeaseHandle,
    seen: LastLease,
    held: Option<Lease>,
}

impl Elector {
    /// Returns a candidate that reports through `handle` whether it holds the Lease.
    pub fn new(client: &Client, config: LeaseConfig, handle: LeaseHandle) -> Self {
        let api = Api::namespaced(client.clone(), &config.namespace);
        Self { api, config, handle, seen: LastLease::default(), held: None }
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
        let Some(mut lease) = find(&self.api, &self.config.name).await? else {
            return self.write(began, None, first_spec(&self.config, self.handle.clock().now())).await;
        };
        self.seen.update(lease.metadata.resource_version.as_deref().unwrap_or_default(), began);
        let old = lease.spec.take().unwrap_or_default();
        if let Some(until) = previous_renewal(&old, &self.config.identity) {
            self.handle.follow(until);
        }
        match next_spec(&old, &self.config, self.seen.at, began, self.handle.clock().now()) {
            Some(spec) => self.write(began, Some(lease), spec).await,
            None => Ok(false),
        }
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
            Some(old) => self.api.replace(&name, &params, &Lease { spec: Some(spec), ..old }).await,
            None => {
                let metadata = ObjectMeta { name: Some(name), ..Default::default() };
                self.api.create(&params, &Lease { metadata, spec: Some(spec) }).await
            }
        };
        match result {
            Ok(lease) => {
                let term = lease.spec.as_ref().map(term).unwrap_or_default();
                self.handle.extend(term, began + self.config.renew_deadline);
                self.held = Some(lease);
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
