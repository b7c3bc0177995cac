//! What the host says of authentication: the ConfigMap kube-system/extension-apiserver-authentication, followed as it
//! changes. Flags take precedence over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

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

/// Why a configuration is refused in which every user could speak for all users.
const OPEN_TO_USERS: &str = "requestheader-allowed-names is empty, and the CA of front proxies also trusts certificates of the \
    client CA: each holder of one could act as any user. Name the front proxy's common name, in \
    --requestheader-allowed-names or in the flag of that name of kube-apiserver, which writes ConfigMap \
    kube-system/extension-apiserver-authentication";

impl HostConfig {
    /// Checks that front proxies can be told from users.
    ///
    /// # Errors
    /// One line for people: any name is allowed to a front proxy, and the certificates of users pass for a front proxy's.
    fn check(&self) -> Result<(), String> {
        let (Some(proxies), Some(users)) = (&self.requestheader_ca, &self.client_ca) else { return Ok(()) };
        if self.allowed_names.is_empty() && proxies.covers(users) {
            return Err(OPEN_TO_USERS.to_owned());
        }
        Ok(())
    }

    /// The configuration for the time before the host's is read: unless a flag gives allowed names, no certificate is a front
    /// proxy's.
    fn before_the_host(self) -> Self {
        match self.allowed_names.is_empty() {
            true => Self { requestheader_ca: None, ..self },
            false => self,
        }
    }

    fn warn_of_open_names(&self) {
        if self.allowed_names.is_empty() && self.requestheader_ca.is_some() {
            tracing::warn!(
                "requestheader-allowed-names is empty: each certificate of the CA of front proxies may act as any user"
            );
        }
    }
}

/// What the present configuration was made of.
#[derive(Debug, Default)]
struct Sources {
    flags: HostConfig,
    /// The host's that is in force.
    map: BTreeMap<String, String>,
    /// The host's that came last, if it was refused.
    refused_map: Option<BTreeMap<String, String>>,
}

/// The present [`HostConfig`], shared by all requests.
#[derive(Clone, Debug)]
pub struct HostConfigSource {
    current: Arc<ArcSwap<HostConfig>>,
    sources: Arc<Mutex<Sources>>,
    refused: Arc<AtomicU64>,
    have_host: tokio::sync::watch::Receiver<bool>,
    set_have_host: Arc<tokio::sync::watch::Sender<bool>>,
}

impl HostConfigSource {
    /// Starts with what the flags say.
    pub fn new(flags: HostConfig) -> Self {
        let (set_have_host, have_host) = tokio::sync::watch::channel(false);
        Self {
            current: Arc::new(ArcSwap::from_pointee(flags.clone().before_the_host())),
            sources: Arc::new(Mutex::new(Sources { flags, ..Sources::default() })),
            refused: Arc::default(),
            have_host,
            set_have_host: Arc::new(set_have_host),
        }
    }

    /// A source as if the host had sent this configuration: for tests without a host.
    #[cfg(test)]
    pub(crate) fn ready_with(config: HostConfig) -> Self {
        let source = Self::new(HostConfig::default());
        source.current.store(Arc::new(config));
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

    /// How often a changed configuration was refused, of the host or of the flags' files.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts and logs a configuration that is refused. The last good one stays in force.
    pub fn refuse(&self, source: &'static str, error: &str) {
        self.refused.fetch_add(1, Relaxed);
        tracing::error!(
            source,
            error,
            "the configuration of authentication is refused; the last good one stays in force"
        );
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

    /// Takes flags whose files have changed, with what the host says now, or said before that was refused. If both are refused,
    /// the last good configuration stays in force.
    pub fn set_flags(&self, flags: HostConfig) {
        let sources = &mut *self.sources.lock();
        sources.flags = flags;
        if let Some(map) = sources.refused_map.take() {
            match parse(&map, &sources.flags) {
                Ok(config) => return self.load(sources, config, map),
                Err(_) => sources.refused_map = Some(map),
            }
        }
        match parse(&sources.map, &sources.flags) {
            Ok(config) if self.is_ready() => self.current.store(Arc::new(config)),
            Ok(config) => self.current.store(Arc::new(config.before_the_host())),
            Err(error) => self.refuse("the CA files of the flags", &error),
        }
    }

    fn apply(&self, data: BTreeMap<String, String>) {
        let sources = &mut *self.sources.lock();
        if self.is_ready() && sources.map == data {
            // A new configuration, though equal, would have the certificates of all connections verified again.
            sources.refused_map = None;
            return;
        }
        match parse(&data, &sources.flags) {
            Ok(config) => self.load(sources, config, data),
            Err(error) => {
                self.refuse("ConfigMap kube-system/extension-apiserver-authentication", &error);
                sources.refused_map = Some(data);
            }
        }
    }

    /// Puts a configuration in force that was made of this map of the host.
    fn load(&self, sources: &mut Sources, config: HostConfig, map: BTreeMap<String, String>) {
        (sources.map, sources.refused_map) = (map, None);
        config.warn_of_open_names();
        self.current.store(Arc::new(config));
        self.set_have_host.send_replace(true);
        tracing::info!("authentication configuration of the host loaded");
    }
}

fn parse(data: &BTreeMap<String, String>, flags: &HostConfig) -> Result<HostConfig, String> {
    let config = HostConfig {
        client_ca: or_flag(&flags.client_ca, data, "client-ca-file")?,
        requestheader_ca: or_flag(&flags.requestheader_ca, data, "requestheader-client-ca-file")?,
        allowed_names: or_names(&flags.allowed_names, data, "requestheader-allowed-names")?,
        username_headers: or_names(&flags.username_headers, data, "requestheader-username-headers")?,
        uid_headers: or_names(&flags.uid_headers, data, "requestheader-uid-headers")?,
        group_headers: or_names(&flags.group_headers, data, "requestheader-group-headers")?,
        extra_prefixes: or_names(&flags.extra_prefixes, data, "requestheader-extra-headers-prefix")?,
    };
    config.check()?;
    Ok(config)
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
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

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

    /// A CA of this name in PEM, signed by another one if there is one, and its issuer.
    fn ca(name: &str, by: Option<&Issuer<'static, KeyPair>>) -> (String, Issuer<'static, KeyPair>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate =
            by.map_or_else(|| params.self_signed(&key), |issuer| params.signed_by(&key, issuer)).unwrap();
        (certificate.pem(), Issuer::new(params, key))
    }

    fn of(client_ca: &str, requestheader_ca: &str, names: &str) -> BTreeMap<String, String> {
        map(&[
            ("client-ca-file", client_ca),
            ("requestheader-client-ca-file", requestheader_ca),
            ("requestheader-allowed-names", names),
        ])
    }

    /// Every user's certificate was a front proxy's: its holder could act as any user.
    #[test]
    fn front_proxies_that_may_have_any_name_of_the_users_ca_are_refused() {
        let ((users, by_users), (proxies, by_proxies)) = (ca("same name", None), ca("same name", None));
        let (below_proxies, _) = ca("users of proxies", Some(&by_proxies));
        let (below_users, _) = ca("proxies of users", Some(&by_users));
        let both = format!("{proxies}{users}");
        let refused = |client_ca: &str, requestheader_ca: &str, names: &str| {
            parse(&of(client_ca, requestheader_ca, names), &HostConfig::default()).err()
        };
        for (client_ca, requestheader_ca) in
            [(&users, &users), (&users, &both), (&both, &proxies), (&below_proxies, &proxies)]
        {
            for names in ["", "[]"] {
                assert_eq!(refused(client_ca, requestheader_ca, names).as_deref(), Some(OPEN_TO_USERS));
            }
            assert_eq!(refused(client_ca, requestheader_ca, r#"["front-proxy-client"]"#), None);
        }
        assert_eq!(refused(&users, &proxies, "[]"), None);
        assert_eq!(refused(&users, &below_users, "[]"), None, "users' certificates do not lead to it");
        assert_eq!(refused("", &users, "[]"), None);
    }

    #[test]
    fn a_refused_map_leaves_what_was_in_force_and_is_counted() {
        let ((users, _), (proxies, _)) = (ca("users", None), ca("proxies", None));
        let source = HostConfigSource::new(HostConfig::default());
        source.apply(of(&users, &users, "[]"));
        assert_eq!((source.is_ready(), source.knows_its_cas(), source.refused()), (false, false, 1));
        source.apply(of(&users, &proxies, r#"["front-proxy"]"#));
        let good = source.current();
        source.apply(of(&users, &users, "[]"));
        assert!(Arc::ptr_eq(&good, &source.current()));
        assert_eq!((source.is_ready(), source.refused()), (true, 2));
        let theirs = ClientCa::from_pem(users.as_bytes()).unwrap();
        source.apply(of(&users, &proxies, "[]"));
        source.set_flags(HostConfig { requestheader_ca: Some(theirs), ..HostConfig::default() });
        assert_eq!((source.current().allowed_names.len(), source.refused()), (0, 3));
        let in_force = source.current();
        assert!(!in_force.requestheader_ca.as_ref().unwrap().covers(in_force.client_ca.as_ref().unwrap()));
    }

    /// The flags' files were mended after the host's map had been refused, and the map was not looked at again.
    #[test]
    fn a_map_that_was_refused_is_taken_when_the_flags_are_mended() {
        let ((users, _), (proxies, _)) = (ca("users", None), ca("proxies", None));
        let with = |pem: &str| HostConfig {
            requestheader_ca: Some(ClientCa::from_pem(pem.as_bytes()).unwrap()),
            ..HostConfig::default()
        };
        let source = HostConfigSource::new(with(&users));
        source.apply(of(&users, &proxies, "[]"));
        assert_eq!((source.is_ready(), source.refused()), (false, 1));
        source.set_flags(with(&proxies));
        assert_eq!((source.is_ready(), source.refused()), (true, 1));
        assert!(source.current().client_ca.is_some());
    }

    /// A front proxy's CA by a flag trusted certificates of any name until the host's names had been read.
    #[test]
    fn nobody_is_a_front_proxy_before_the_allowed_names_are_known() {
        let (proxies, _) = ca("proxies", None);
        let by_flag = || HostConfig {
            requestheader_ca: Some(ClientCa::from_pem(proxies.as_bytes()).unwrap()),
            ..HostConfig::default()
        };
        let source = HostConfigSource::new(by_flag());
        assert!(source.current().requestheader_ca.is_none());
        source.set_flags(by_flag());
        assert!(source.current().requestheader_ca.is_none());
        source.apply(map(&[("requestheader-allowed-names", r#"["front-proxy"]"#)]));
        assert!(source.current().requestheader_ca.is_some());
        let named = HostConfig { allowed_names: vec!["front-proxy".into()], ..by_flag() };
        assert!(HostConfigSource::new(named).current().requestheader_ca.is_some());
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
