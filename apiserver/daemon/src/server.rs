//! The generic server by our flags, with our two kinds, their admission checks and the status stream.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequestStrategy;
use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_api::node_maintenance::{NAMES as NODE_MAINTENANCES, NodeMaintenanceStrategy};
use drydock_machinery::strategy::Strategy;
use drydock_server::admission::Admission;
use drydock_server::generic::{HostFiles, Identity, Options, Server, Trust};
use drydock_serving::tls::CertificateSource;

use crate::admission::{
    EndedMaintenance, HostNodes, NodeDelete, NodeSelection, PodDelete, StatusPermission, UnnamedReviewUsers,
};
use crate::flags::Flags;
use crate::stream;

/// Serves until SIGTERM or SIGINT.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let mut server = Server::build(options(&flags)).await?;
    let ended = Arc::new(EndedMaintenance::new(flags.controller_users.iter().cloned()));
    install_eviction_requests(&mut server, &flags, ended.clone());
    install_node_maintenances(&mut server, &ended);
    drydock_admission::install(&mut server);
    stream::mount(&mut server, &flags)?;
    server.run().await
}

/// Returns the options for everything except the kinds.
fn options(flags: &Flags) -> Options {
    Options {
        identity: Identity { title: "Drydock", version: env!("CARGO_PKG_VERSION") },
        address: flags.address(),
        serving: CertificateSource {
            files: flags.tls_cert_file.clone().zip(flags.tls_private_key_file.clone()),
            cert_dir: flags.cert_dir.clone(),
            names: flags.tls_san.clone(),
        },
        host: HostFiles {
            kubeconfig: flags.kubeconfig.clone(),
            authentication: flags.authentication_kubeconfig.clone(),
            authorization: flags.authorization_kubeconfig.clone(),
        },
        trust: trust(flags),
        storage: flags.storage.location(flags.quota_backend_bytes),
        max_requests_inflight: flags.max_requests_inflight,
        max_mutating_requests_inflight: flags.max_mutating_requests_inflight,
        controller_users: flags.controller_users.clone(),
        api_audiences: flags.api_audiences.clone(),
        max_connections_per_address: flags.max_connections_per_address,
        request_timeout: flags.request_timeout,
        audit: flags.audit.options(),
        shutdown_delay: flags.shutdown_delay_duration,
    }
}

fn trust(flags: &Flags) -> Trust {
    Trust {
        client_ca_file: flags.client_ca_file.clone(),
        requestheader_client_ca_file: flags.requestheader_client_ca_file.clone(),
        allowed_names: flags.requestheader_allowed_names.clone(),
        username_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_headers_prefix: flags.requestheader_extra_headers_prefix.clone(),
    }
}

fn install_eviction_requests(server: &mut Server, flags: &Flags, ended: Arc<EndedMaintenance>) {
    let allowed = AllowedNames::default().with(flags.allowed_interceptor_names.iter().cloned());
    let kind = EvictionRequestStrategy::new(flags.heartbeat_deadline).with_allowed_names(allowed).into_kind();
    let mut admission: Vec<Arc<dyn Admission>> =
        vec![Arc::new(StatusPermission::new(server.authorizer())), ended];
    if flags.require_pod_delete_permission {
        let unnamed = UnnamedReviewUsers::new(flags.unnamed_review_users());
        admission.push(Arc::new(PodDelete::new(server.authorizer(), unnamed)));
    }
    server.install(kind, admission);
}

fn install_node_maintenances(server: &mut Server, ended: &EndedMaintenance) {
    let nodes = Arc::new(HostNodes::follow(server.host(), server.tasks()));
    let followed = nodes.clone();
    server.ready_when("nodes", "not read from the host", move || followed.ready());
    let admission: Vec<Arc<dyn Admission>> =
        vec![Arc::new(NodeDelete::new(server.authorizer())), Arc::new(NodeSelection::new(nodes))];
    server.install(NodeMaintenanceStrategy.into_kind(), admission);
    if let Some(maintenances) = server.storage(NODE_MAINTENANCES.group, NODE_MAINTENANCES.plural) {
        ended.read_from(maintenances);
    }
}
