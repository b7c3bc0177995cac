//! A whole aggregated API server over Drydock's crates: it serves Flunders, the kind of kubernetes/sample-apiserver.

mod v1alpha1;
mod v1beta1;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use drydock_machinery::strategy::Strategy;
use drydock_server::generic::{Identity, Options, Server};
use drydock_storage_sqlite::DataDirectory;

/// Serves wardle.example.com to the cluster of a kubeconfig.
#[derive(Parser)]
struct Flags {
    /// Kubeconfig of the host cluster; in-cluster configuration if absent
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Address and port to listen on
    #[arg(long, default_value = "127.0.0.1:8443")]
    address: SocketAddr,
    /// Folder for the certificate and the objects
    #[arg(long)]
    data_dir: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let identity = Identity { title: "Wardle", version: env!("CARGO_PKG_VERSION") };
    let storage = DataDirectory { folder: flags.data_dir.clone(), quota: None };
    let mut options = Options::new(identity, flags.address, flags.data_dir, Arc::new(storage));
    options.serving.names = vec!["wardle.wardle.svc".to_owned()];
    options.host.kubeconfig = flags.kubeconfig;
    let mut server = Server::build(options).await?;
    server.install(v1beta1::beside(v1alpha1::FlunderStrategy.into_kind())?, Vec::new());
    drydock_admission::install(&mut server);
    server.run().await
}
