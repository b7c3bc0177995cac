//! What the host says of authentication: the ConfigMap kube-system/extension-apiserver-authentication, followed as it
//! changes. Flags take precedence over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use drydock_logging::WatchFailures;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use parking_lot::Mutex;

use crate::tls::ClientCa;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Which certificates and headers are trusted.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// CA of client certificates.
    pub client_ca: Option<ClientCa>,
    /// CA of front proxies.
    pub requestheader_ca: Option<ClientCa>,
    /// Common names that a front proxy's certificate may carry; empty allows any.
    pub allowed_names: Vec<String>,
    /// Headers that carry the user's name, first that is present.
    pub username_headers: Vec<String>,
    /// Headers that carry the user's uid.
    pub uid_headers: Vec<String>,
    /// Headers that carry groups, all of them.
    pub group_headers: Vec<String>,
    /// Prefixes of headers that carry extra attributes.
    pub extra_prefixes: Vec<String>,
}

/// What the present configuration was made of.
#[derive(Debug, Default)]
struct Sources {
    flags: HostConfig,
    map: BTreeMap<String, String>,
}

/// The present [`HostConfig`], shared by all requests.
#[derive(Clone, Debug)]
pub struct HostConfigSource {
    current: Arc<ArcSwap<HostConfig>>,
    sources: Arc<Mutex<Sources>>,
    have_host: tokio::sync::watch::Receiver<bool>,
    set_have_host: Arc<tokio::sync::watch::Sender<bool>>,
}

impl HostConfigSource {
    /// Starts with what the flags say.
    pub fn new(flags: HostConfig) -> Self {
        let (set_have_host, have_host) = tokio::sync::watch::channel(false);
        Self {
            current: Arc::new(ArcSwap::from_pointee(flags.clone())),
            sources: Arc::new(Mutex::new(Sources { flags, map: BTreeMap::new() })),
            have_host,
            set_have_host: Arc::new(set_have_host),
        }
    }

    /// A source as if the host had sent this configuration: for tests without a host.
    #[cfg(test)]
    pub(crate) fn ready_with(config: HostConfig) -> Self {
        let source = Self::new(config);
        source.set_have_host.send_replace(true);
        source
    }

    /// Returns the present configuration.
    pub fn current(&self) -> Arc<HostConfig> {
        self.current.load_full()
    }

    /// Whether the ConfigMap has been read.
    pub fn is_ready(&self) -> bool {
        *self.have_host.borrow()
    }

    /// Whether the CAs are known: the host's ConfigMap has been read, or the flags name both CAs.
    pub(crate) fn knows_its_cas(&self) -> bool {
        let now = self.current();
        self.is_ready() || (now.client_ca.is_some() && now.requestheader_ca.is_some())
    }

    /// Follows the ConfigMap until the future is dropped. While the host cannot be reached it tries again with
    /// backoff, logs that, and the last good configuration stays in force.
    pub async fn follow(self, client: Client) {
        let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let config = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let backoff = watcher::DefaultBackoff::default();
        let mut events = watcher::watcher(api, config).backoff(backoff).boxed();
        let mut failures = WatchFailures::default();
        while let Some(event) = events.next().await {
            if let Some(error) = failures.take_in(&event) {
                tracing::warn!(error, "cannot read ConfigMap {NAMESPACE}/{NAME} of the host; trying again");
            }
            if let Ok(Event::Apply(map) | Event::InitApply(map)) = event {
                self.apply(map.data.unwrap_or_default());
            }
        }
    }

    /// Takes flags whose files have changed.
    pub fn set_flags(&self, flags: HostConfig) {
        let mut sources = self.sources.lock();
        match parse(&sources.map, &flags) {
            Ok(config) => self.current.store(Arc::new(config)),
            // The map was read before: no flag can make it unreadable.
            Err(error) => tracing::error!(error, "cannot apply the changed CA files"),
        }
        sources.flags = flags;
    }

    fn apply(&self, data: BTreeMap<String, String>) {
        let mut sources = self.sources.lock();
        if self.is_ready() && sources.map == data {
            // A new configuration, though equal, would have the certificates of all connections verified again.
            return;
        }
        match parse(&data, &sources.flags) {
            Ok(config) => {
                sources.map = data;
                self.current.store(Arc::new(config));
                self.set_have_host.send_replace(true);
                tracing::info!("authentication configuration of the host loaded");
            }
            Err(error) => {
                tracing::error!(
                    error,
                    "ConfigMap {NAMESPACE}/{NAME} is not usable; the last good one stays in force"
                );
            }
        }
    }
}

fn parse(data: &BTreeMap<String, String>, flags: &HostConfig) -> Result<HostConfig, String> {
    Ok(HostConfig {
        client_ca: or_flag(&flags.client_ca, data, "client-ca-file")?,
        requestheader_ca: or_flag(&flags.requestheader_ca, data, "requestheader-client-ca-file")?,
        allowed_names: or_names(&flags.allowed_names, data, "requestheader-allowed-names")?,
        username_headers: or_names(&flags.username_headers, data, "requestheader-username-headers")?,
        uid_headers: or_names(&flags.uid_headers, data, "requestheader-uid-headers")?,
        group_headers: or_names(&flags.group_headers, data, "requestheader-group-headers")?,
        extra_prefixes: or_names(&flags.extra_prefixes, data, "requestheader-extra-headers-prefix")?,
    })
}

fn or_flag(
    flag: &Option<ClientCa>,
    data: &BTreeMap<String, String>,
    key: &str,
) -> Result<Option<ClientCa>, String> {
    if flag.is_some() {
        return Ok(flag.clone());
    }
    match data.get(key).filter(|pem| !pem.trim().is_empty()) {
        Some(pem) => ClientCa::from_pem(pem.as_bytes()).map(Some).map_err(|e| format!("{key}: {e}")),
        None => Ok(None),
    }
}

fn or_names(flag: &[String], data: &BTreeMap<String, String>, key: &str) -> Result<Vec<String>, String> {
    if !flag.is_empty() {
        return Ok(flag.to_vec());
    }
    match data.get(key).filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            serde_json::from_str(text).map_err(|e| format!("{key}: not a JSON array of strings: {e}"))
        }
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn names_come_from_json_arrays() {
        let data = map(&[("requestheader-allowed-names", r#"["front-proxy-client"]"#)]);
        assert_eq!(parse(&data, &HostConfig::default()).unwrap().allowed_names, ["front-proxy-client"]);
    }

    #[test]
    fn a_flag_goes_before_the_config_map() {
        let flags = HostConfig { allowed_names: vec!["mine".into()], ..HostConfig::default() };
        let data = map(&[("requestheader-allowed-names", r#"["theirs"]"#)]);
        assert_eq!(parse(&data, &flags).unwrap().allowed_names, ["mine"]);
    }

    #[test]
    fn flags_that_change_go_before_a_map_that_stays() {
        let named = |name: &str| HostConfig { allowed_names: vec![name.into()], ..HostConfig::default() };
        let source = HostConfigSource::new(named("old"));
        source.apply(map(&[("requestheader-group-headers", r#"["X-Group"]"#)]));
        source.set_flags(named("new"));
        let now = source.current();
        assert_eq!(
            (&now.allowed_names[..], &now.group_headers[..]),
            (&["new".into()][..], &["X-Group".into()][..])
        );
    }

    #[test]
    fn a_map_that_comes_again_changes_nothing() {
        let source = HostConfigSource::new(HostConfig::default());
        let named = |name: &str| map(&[("requestheader-allowed-names", &format!("[\"{name}\"]"))]);
        source.apply(named("a"));
        let first = source.current();
        source.apply(named("a"));
        assert!(Arc::ptr_eq(&first, &source.current()));
        source.apply(named("b"));
        assert_eq!(source.current().allowed_names, ["b"]);
    }

    #[test]
    fn an_empty_map_is_read_too() {
        let source = HostConfigSource::new(HostConfig::default());
        source.apply(BTreeMap::new());
        assert!(source.is_ready());
    }

    #[test]
    fn a_malformed_ca_is_refused_and_named() {
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = parse(&map(&[("client-ca-file", pem)]), &HostConfig::default()).unwrap_err();
        assert!(error.starts_with("client-ca-file: "), "{error}");
    }
}
