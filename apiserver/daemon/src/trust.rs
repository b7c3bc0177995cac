//! Whom the flags tell us to believe; the files that they name are read again when they change.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use drydock_server::authn::{HostConfig, HostConfigSource};
use drydock_server::tls::ClientCa;

use crate::flags::Flags;

/// How often the files are compared with what is in force (Kubernetes re-reads within a minute).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The CAs, names and headers that the flags give.
pub fn by_flags(flags: &Flags) -> anyhow::Result<HostConfig> {
    Ok(HostConfig {
        client_ca: ca("--client-ca-file", flags.client_ca_file.as_deref())?,
        requestheader_ca: ca(
            "--requestheader-client-ca-file",
            flags.requestheader_client_ca_file.as_deref(),
        )?,
        allowed_names: flags.requestheader_allowed_names.clone(),
        username_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    })
}

fn ca(flag: &str, file: Option<&Path>) -> anyhow::Result<Option<ClientCa>> {
    let Some(file) = file else { return Ok(None) };
    let pem = std::fs::read(file).with_context(|| format!("{flag}: {}", file.display()))?;
    let ca = ClientCa::from_pem(&pem).map_err(|why| anyhow::anyhow!("{flag}: {}: {why}", file.display()))?;
    Ok(Some(ca))
}

/// Keeps what is believed equal to the files until the future is dropped. A bad file is reported, and the last good
/// one stays in force.
pub async fn follow_files(trusted: HostConfigSource, flags: Flags) {
    let mut known = contents(&flags);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = contents(&flags);
        if now == known {
            continue;
        }
        match by_flags(&flags) {
            Ok(config) => {
                trusted.set_flags(config);
                known = now;
                tracing::info!("the CA files of the flags have been read again");
            }
            Err(error) => tracing::error!(%error, "the last good CA files stay in force"),
        }
    }
}

fn contents(flags: &Flags) -> [Option<Vec<u8>>; 2] {
    let files = [&flags.client_ca_file, &flags.requestheader_client_ca_file];
    files.map(|file| std::fs::read(file.as_deref()?).ok())
}
