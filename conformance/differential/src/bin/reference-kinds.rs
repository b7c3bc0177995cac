//! `reference-kinds KUBECONFIG PORT FOLDER`: an aggregated API of kinds that consist of nothing but their own
//! files, on the generic server.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_differential::reference_kinds;
use drydock_server::generic::{Identity, Options, Server};
use drydock_storage_sqlite::DataDirectory;

#[tokio::main]
async fn main() -> Result<()> {
    drydock_command::logs::start_quietly();
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: reference-kinds KUBECONFIG PORT FOLDER");
    let (kubeconfig, port, folder) = (next()?, next()?.parse()?, PathBuf::from(next()?));
    let identity = Identity { title: "Reference kinds", version: env!("CARGO_PKG_VERSION") };
    let storage = DataDirectory { folder: folder.join("data"), quota: None };
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let mut options = Options::new(identity, address, folder.join("certs"), Arc::new(storage));
    options.host.kubeconfig = Some(kubeconfig.into());
    options.serving.names = vec!["reference-kinds.reference-kinds.svc".into()];
    let mut server = Server::build(options).await?;
    for kind in reference_kinds::all() {
        server.install(kind, Vec::new());
    }
    server.run().await
}
