//! Builds the handlers behind a server's port from its parts.

use std::sync::Arc;

use drydock_serving::auth::authn::Authenticator;
use drydock_serving::auth::impersonation::Impersonation;
use drydock_serving::health::Health;
use drydock_storage::fence::Fences;
use rustls::ServerConfig;
use tokio::net::TcpListener;

use super::run::Shutdown;
use super::{Mux, Server};
use crate::api_group::ApiGroup;
use crate::chain::Chain;
use crate::flow_control::{FlowControl, InFlightLimits, PriorityLevels};
use crate::grpc::Grpc;
use crate::handlers::fencing::FencingTokens;
use crate::responses::OpenResponses;

impl Server {
    /// Returns the listener, its TLS configuration, and the handlers that a request passes through.
    pub(super) fn assemble(
        mut self,
        shutdown: &Shutdown,
    ) -> anyhow::Result<(TcpListener, ServerConfig, Mux)> {
        for resource in &mut self.resources {
            resource.admission.extend(self.of_all.iter().cloned());
        }
        let health = self.health();
        let mount = |service| Grpc::new(service, health.clone(), shutdown.now.clone());
        let grpc = self.service.take().map(mount).transpose()?;
        let options = self.options;
        let (mut metrics, responses) = (self.metrics, OpenResponses::default());
        responses.register(metrics.registry());
        metrics.show_caches(self.caches.iter().map(|(kind, cache)| (kind.names(), cache.metrics())));
        let levels = PriorityLevels::new(options.controller_users);
        let api = ApiGroup::new(self.resources)
            .with_identity(options.identity)
            .with_authorizer(self.authorizer.clone())
            .with_fencing_tokens(FencingTokens::new(Arc::new(Fences::new(self.backend.clone()))))
            .with_watch_events(metrics.watch_events())
            .with_shutdown(shutdown.now.clone());
        let limits = InFlightLimits {
            reading: options.max_requests_inflight,
            mutating: options.max_mutating_requests_inflight,
        };
        let flow_control = Arc::new(FlowControl::new(levels, limits));
        metrics.show_flow_control(flow_control.clone());
        let chain = Chain {
            authenticator: Authenticator::new(self.trusted, Some(self.tokens), true),
            impersonation: Impersonation::default(),
            authorizer: self.authorizer,
            flow_control,
            health,
            metrics,
            audit: self.audit,
            api,
            request_timeout: options.request_timeout,
            responses,
        };
        Ok((self.listener, self.tls, Mux { chain: Arc::new(chain), grpc }))
    }

    fn health(&mut self) -> Health {
        let [written, read, backend] = [&self.backend; 3].map(Arc::clone);
        let caches = self.caches.clone();
        let caches = move || match caches.iter().all(|(_, cache)| cache.is_alive()) {
            true => Ok(()),
            false => Err("a storage background task panicked".to_owned()),
        };
        let alive = Health::default()
            .live("ping", Arc::new(|| Ok(())))
            .live("storage-workers", Arc::new(move || backend.ended().map_or_else(&caches, Err)))
            // If reads are refused here, another replica may answer them.
            .ready("storage-reads", Arc::new(move || read.refuses_reads().map_or(Ok(()), Err)))
            // Refused writes do not make it unready: an unready server gets no reads either, and those go on.
            .notice("storage-writes", Arc::new(move || written.refuses_writes()));
        std::mem::take(&mut self.checks)
            .into_iter()
            .fold(alive, |health, (name, check)| health.ready(name, check))
    }
}
