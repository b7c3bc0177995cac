//! `conformance/playground`: a cluster to try Drydock in.

use anyhow::Result;
use drydock_conformance::host::Host;

#[tokio::main]
async fn main() -> Result<()> {
    let host = Host::start().await?;
    println!("export KUBECONFIG={}", host.admin().display());
    Ok(tokio::signal::ctrl_c().await?)
}
