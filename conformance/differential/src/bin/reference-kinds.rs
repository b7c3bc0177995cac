//! `reference-kinds KUBECONFIG PORT FOLDER`: an aggregated API of kinds that consist of nothing but their own
//! files, on the generic server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_differential::reference_kinds;
use drydock_server::api_group::Identity;
use drydock_server::generic::{Options, Server};
use drydock_storage_sqlite::DataDirectory;

#[tokio::main]
async fn main() -> Result<()> {
    drydock_command::logs::start_quietly();
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: reference-kinds KUBECONFIG PORT FOLDER");
    let (kubeconfig, port, folder) = (next()?, next()?.parse()?, PathBuf::from(next()?));
    let identity = Identity { title: "Reference kinds", version: env!("CARGO_PKG_VERSION") };
    let storage = DataDirectory { folder: folder.join("data"), quota: None };
    let mut options = Options::new(identity, port, folder.join("certs"), Arc::new(storage));
    options.host.kubeconfig = Some(kubeconfig.into());
    options.serving.names = vec!["reference-kinds.reference-kinds.svc".into()];
    let mut server = Server::build(options).await?;
    for kind in reference_kinds::all() {
        server.install(Arc::from(kind), Vec::new());
    }
    server.run().await
}
