//! A whole aggregated API server over Drydock's crates: it serves Flunders, the kind of kubernetes/sample-apiserver.

mod flunder;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use drydock_machinery::strategy::Strategy;
use drydock_server::api_group::Identity;
use drydock_server::generic::{HostFiles, Options, Server};
use drydock_storage_sqlite::DataDirectory;

/// Serves wardle.example.com/v1alpha1 to the cluster of a kubeconfig.
#[derive(Parser)]
struct Flags {
    /// Kubeconfig of the host cluster; in-cluster configuration if absent
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Port on loopback
    #[arg(long, default_value_t = 8443)]
    secure_port: u16,
    /// Folder for the certificate and the objects
    #[arg(long)]
    data_dir: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let identity = Identity { title: "Wardle", version: env!("CARGO_PKG_VERSION") };
    let storage = DataDirectory { folder: flags.data_dir.clone(), quota: None };
    let mut options = Options::new(identity, flags.secure_port, flags.data_dir, Arc::new(storage));
    options.serving.names = vec!["wardle.default.svc".to_owned()];
    options.host = HostFiles { kubeconfig: flags.kubeconfig, ..HostFiles::default() };
    let mut server = Server::build(options).await?;
    server.install(Arc::new(flunder::FlunderStrategy.into_kind()), Vec::new());
    server.run().await
}
