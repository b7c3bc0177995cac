//! Certificates made when the admin gives none: a CA of our own and a serving certificate under it, kept in --cert-dir.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Where the made files are.
#[derive(Clone, Debug)]
pub struct Files {
    /// PEM certificate chain to serve.
    pub certificate: PathBuf,
    /// Its PEM private key.
    pub key: PathBuf,
    /// The CA that clients trust: goes into the APIService's caBundle.
    pub ca: PathBuf,
}

/// Days before its end at which a serving certificate is replaced at start.
const RENEW_BEFORE_DAYS: i64 = 30;
const SERVING_DAYS: i64 = 365;
const CA_DAYS: i64 = 3650;

/// Makes `ca.crt`, `tls.crt` and `tls.key` in `dir` (and keeps the CA's key beside them, readable by the owner alone),
/// or keeps those there when they still serve all of `names` and do not end soon.
pub fn ensure(dir: &Path, names: &[String]) -> io::Result<Files> {
    fs::create_dir_all(dir)?;
    let files = Files { certificate: dir.join("tls.crt"), key: dir.join("tls.key"), ca: dir.join("ca.crt") };
    let ca_key = dir.join("ca.key");
    if !(files.ca.exists() && ca_key.exists()) {
        make_ca(&files.ca, &ca_key).map_err(io::Error::other)?;
    }
    if !files.key.exists() || !still_serves(&files.certificate, names) {
        make_serving(&files, &ca_key, names).map_err(io::Error::other)?;
    }
    Ok(files)
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn make_ca(certificate: &Path, key: &Path) -> Result<(), AnyError> {
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("drydock-ca@{}", now()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, CA_DAYS);
    write_file(key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_file(certificate, params.self_signed(&pair)?.pem().as_bytes(), 0o644)?;
    Ok(())
}

fn make_serving(files: &Files, ca_key: &Path, names: &[String]) -> Result<(), AnyError> {
    let ca_pem = fs::read_to_string(&files.ca)?;
    let issuer = Issuer::from_ca_cert_pem(&ca_pem, KeyPair::from_pem(&fs::read_to_string(ca_key)?)?)?;
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, names.first().map_or("drydock", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, SERVING_DAYS);
    let certificate = params.signed_by(&pair, &issuer)?;
    write_file(&files.key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_file(&files.certificate, certificate.pem().as_bytes(), 0o644)?;
    Ok(())
}

fn set_validity(params: &mut CertificateParams, days: i64) {
    let start = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    params.not_before = start.into();
    params.not_after = (start + std::time::Duration::from_secs(days as u64 * 86_400)).into();
}

fn still_serves(certificate: &Path, names: &[String]) -> bool {
    let Ok(pem) = fs::read(certificate) else { return false };
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(&pem) else { return false };
    let Ok((_, parsed)) = X509Certificate::from_der(&pem.contents) else { return false };
    if parsed.validity().not_after.timestamp() < now() + RENEW_BEFORE_DAYS * 86_400 {
        return false;
    }
    let Ok(Some(san)) = parsed.subject_alternative_name() else { return false };
    let served: Vec<String> = san.value.general_names.iter().filter_map(display_name).collect();
    names.iter().all(|name| served.contains(name))
}

fn display_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(dns) => Some((*dns).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|b| std::net::Ipv4Addr::from(b).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|b| std::net::Ipv6Addr::from(b).to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Writes beside the target and renames, so that no reader sees half a file.
fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
