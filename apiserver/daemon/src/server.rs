//! Installs our two kinds with their admission checks, and the status stream, on the generic server.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequestKind;
use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_api::node_maintenance::NodeMaintenanceKind;
use drydock_server::admission::Admission;
use drydock_server::generic::Server;

use crate::admission::{NodeDelete, NodeSelection, PodDelete, StatusPermission, UnnamedReviewUsers};
use crate::flags::Flags;
use crate::host::HostNodes;
use crate::options;
use crate::stream;

/// Serves until SIGTERM or SIGINT.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let mut server = Server::build(options::by_flags(&flags)).await?;
    install_eviction_requests(&mut server, &flags);
    install_node_maintenances(&mut server);
    drydock_admission::install(&mut server);
    stream::mount(&mut server, &flags)?;
    server.run().await
}

fn install_eviction_requests(server: &mut Server, flags: &Flags) {
    let allowed = AllowedNames::default().with(flags.allowed_interceptor_names.iter().cloned());
    let kind = EvictionRequestKind::new(flags.heartbeat_deadline).with_allowed_names(allowed);
    let mut admission: Vec<Arc<dyn Admission>> = vec![Arc::new(StatusPermission::new(server.authorizer()))];
    if flags.require_pod_delete_permission {
        let unnamed = UnnamedReviewUsers::new(flags.unnamed_review_users());
        admission.push(Arc::new(PodDelete::new(server.authorizer(), unnamed)));
    }
    server.install(Arc::new(kind), admission);
}

fn install_node_maintenances(server: &mut Server) {
    let nodes = Arc::new(HostNodes::follow(server.host()));
    let followed = nodes.clone();
    server.ready_when("nodes", "not read from the host", move || followed.ready());
    let admission: Vec<Arc<dyn Admission>> =
        vec![Arc::new(NodeDelete::new(server.authorizer())), Arc::new(NodeSelection::new(nodes))];
    server.install(Arc::new(NodeMaintenanceKind::new()), admission);
}
