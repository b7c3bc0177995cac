//! The CAs and headers that the options name; their files are read again when they change.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use drydock_serving::auth::authn::{HostConfig, HostConfigSource};
use drydock_serving::tls::ClientCa;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

use super::options::Trust;

/// How often the files are compared with what is in force (Kubernetes re-reads within a minute).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The CAs, names and headers that the options give.
pub(super) fn by_options(options: &Trust) -> anyhow::Result<HostConfig> {
    Ok(HostConfig {
        client_ca: ca("--client-ca-file", options.client_ca_file.as_deref())?,
        requestheader_ca: ca(
            "--requestheader-client-ca-file",
            options.requestheader_client_ca_file.as_deref(),
        )?,
        allowed_names: options.allowed_names.clone(),
        username_headers: options.username_headers.clone(),
        uid_headers: options.uid_headers.clone(),
        group_headers: options.group_headers.clone(),
        extra_prefixes: options.extra_headers_prefix.clone(),
    })
}

fn ca(flag: &str, file: Option<&Path>) -> anyhow::Result<Option<ClientCa>> {
    let Some(file) = file else { return Ok(None) };
    let pem = std::fs::read(file).with_context(|| format!("{flag}: {}", file.display()))?;
    let ca = ClientCa::from_pem(&pem).map_err(|why| anyhow::anyhow!("{flag}: {}: {why}", file.display()))?;
    Ok(Some(ca))
}

/// Shows how often a configuration of authentication was refused.
#[derive(Debug)]
pub(super) struct RefusedConfigs(pub(super) HostConfigSource);

impl Collector for RefusedConfigs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let refused = ConstCounter::new(self.0.refused());
        let what = "Configurations of authentication that were refused, of the host or of the flags' files";
        let name = "drydock_authentication_config_refused";
        refused.encode(encoder.encode_descriptor(name, what, None, refused.metric_type())?)
    }
}

/// Applies changes of the CA files to `trusted` until the future is dropped. A bad file is logged, and the last good
/// one stays in force.
pub(super) async fn follow_files(trusted: HostConfigSource, options: Trust) {
    // Nothing, not what the files hold now: they may have changed since the server was built.
    let mut known = [None, None];
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = contents(&options);
        if now == known {
            continue;
        }
        match by_options(&options) {
            Ok(config) => {
                trusted.set_flags(config);
                known = now;
                tracing::info!("CA files of the flags loaded");
            }
            Err(error) => {
                trusted.refuse("the CA files of the flags", &format!("{error:#}"));
                // Unless they have changed since.
                if contents(&options) == now {
                    known = now;
                }
            }
        }
    }
}

fn contents(options: &Trust) -> [Option<Vec<u8>>; 2] {
    let files = [&options.client_ca_file, &options.requestheader_client_ca_file];
    files.map(|file| std::fs::read(file.as_deref()?).ok())
}
