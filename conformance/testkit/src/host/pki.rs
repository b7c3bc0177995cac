//! The certificates of a host: a CA for servers and clients, one for the front proxy, and the key that signs
//! service-account tokens.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// The number of an organization's name (RFC 4519).
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// The certificate authorities of one host, and where their files are.
pub struct Pki {
    /// The CA of servers and clients.
    pub ca: PathBuf,
    /// The CA that vouches for the aggregator.
    pub front_proxy_ca: PathBuf,
    /// The aggregator's certificate, common name `front-proxy-client`.
    pub front_proxy: CertificateFiles,
    /// The kube-apiserver's certificate.
    pub server: CertificateFiles,
    /// Key pair of the service-account tokens; `cert` is the public key.
    pub service_accounts: CertificateFiles,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
#[derive(Clone)]
pub struct CertificateFiles {
    /// PEM of the certificate.
    pub cert: PathBuf,
    /// PEM of the private key.
    pub key: PathBuf,
}

impl Pki {
    /// Makes everything in the folder.
    pub fn create(dir: &Path) -> Result<Pki> {
        fs::create_dir_all(dir)?;
        let (ca, issuer) = authority(dir, "ca")?;
        let (front_proxy_ca, proxy_issuer) = authority(dir, "front-proxy-ca")?;
        let front_proxy = leaf(dir, &proxy_issuer, "front-proxy-client", client("front-proxy-client", &[])?)?;
        let server = leaf(dir, &issuer, "kube-apiserver", serving()?)?;
        let service_accounts = token_keys(dir)?;
        Ok(Pki { ca, front_proxy_ca, front_proxy, server, service_accounts, issuer })
    }

    /// A client certificate for a user of some groups.
    pub fn client(
        &self,
        dir: &Path,
        file_name: &str,
        user: &str,
        groups: &[&str],
    ) -> Result<CertificateFiles> {
        leaf(dir, &self.issuer, file_name, client(user, groups)?)
    }
}

fn authority(dir: &Path, name: &str) -> Result<(PathBuf, Issuer<'static, KeyPair>)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = subject(name, &[]);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let path = dir.join(format!("{name}.crt"));
    fs::write(&path, params.self_signed(&key)?.pem())?;
    Ok((path, Issuer::new(params, key)))
}

fn client(user: &str, groups: &[&str]) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = subject(user, groups);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn serving() -> Result<CertificateParams> {
    let names = ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes", "kubernetes.default.svc"];
    let mut params = CertificateParams::new(names.map(String::from))?;
    params.distinguished_name = subject("kube-apiserver", &[]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn subject(name: &str, groups: &[&str]) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    // A subject holds one value of each type: the second group is of the same type by its number.
    let second = DnType::CustomDnType(ORGANIZATION.to_vec());
    debug_assert!(groups.len() <= 2, "{name}: a certificate of ours names two groups at most");
    for (of, group) in [DnType::OrganizationName, second].into_iter().zip(groups) {
        subject.push(of, *group);
    }
    subject
}

fn leaf(
    dir: &Path,
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    params: CertificateParams,
) -> Result<CertificateFiles> {
    let key = KeyPair::generate()?;
    let identity =
        CertificateFiles { cert: dir.join(format!("{name}.crt")), key: dir.join(format!("{name}.key")) };
    fs::write(&identity.cert, params.signed_by(&key, issuer)?.pem())?;
    fs::write(&identity.key, key.serialize_pem())?;
    Ok(identity)
}

fn token_keys(dir: &Path) -> Result<CertificateFiles> {
    let key = KeyPair::generate()?;
    let identity =
        CertificateFiles { cert: dir.join("service-accounts.pub"), key: dir.join("service-accounts.key") };
    fs::write(&identity.cert, key.public_key_pem())?;
    fs::write(&identity.key, key.serialize_pem())?;
    Ok(identity)
}
