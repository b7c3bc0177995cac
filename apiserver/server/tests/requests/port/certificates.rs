//! A CA and client certificates under it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use drydock_serving::tls::ClientCa;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate that a client shows.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "authority");
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub fn client_ca(&self) -> ClientCa {
        ClientCa::from_pem(self.pem.as_bytes()).unwrap()
    }

    pub fn issue(&self, common_name: &str, group: &str) -> Identity {
        self.issue_until(common_name, group, SystemTime::now() + Duration::from_secs(3600))
    }

    pub fn issue_until(&self, common_name: &str, group: &str, end: SystemTime) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_after = end.into();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Identity { chain: vec![certificate.der().clone()], key }
    }
}

impl Identity {
    /// Shows its certificate so many times in all.
    pub fn repeated(mut self, times: usize) -> Self {
        self.chain = vec![self.chain[0].clone(); times];
        self
    }
}

/// How a client connects that trusts `root`, shows `identity` and speaks `protocol`, which it does not say if it is
/// empty.
pub fn client(root: CertificateDer<'static>, identity: Option<&Identity>, protocol: &str) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        Some(Identity { chain, key }) => {
            builder.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    if !protocol.is_empty() {
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    }
    config
}
