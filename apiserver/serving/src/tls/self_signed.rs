//! Certificates made when the admin gives none: a CA of our own and a serving certificate under it, kept in --cert-dir.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

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

/// Days before its end at which a serving certificate is replaced.
const RENEW_BEFORE_DAYS: u64 = 30;
const SERVING_DAYS: u64 = 365;
const CA_DAYS: u64 = 3650;
const DAY: Duration = Duration::from_secs(86_400);
/// How often a running server looks whether its certificate has to be replaced.
const LOOK_EVERY: Duration = Duration::from_secs(12 * 3600);

/// Makes `ca.crt`, `tls.crt` and `tls.key` in `dir` (and keeps the CA's key beside them, readable by the owner
/// alone), or keeps those there as long as they fit each other, serve all of `names` and do not end soon. What a crash has
/// left incomplete is made anew. No clock that is behind makes a CA anew: clients would trust the old one still.
pub fn ensure(dir: &Path, names: &[String]) -> io::Result<Files> {
    ensure_at(dir, names, SystemTime::now())
}

fn ensure_at(dir: &Path, names: &[String], now: SystemTime) -> io::Result<Files> {
    fs::create_dir_all(dir)?;
    let files = Files { certificate: dir.join("tls.crt"), key: dir.join("tls.key"), ca: dir.join("ca.crt") };
    if serves(&files, names, now) {
        return Ok(files);
    }
    let ca_key = dir.join("ca.key");
    let signed = make_serving(&files, &ca_key, names, now);
    if signed.is_err() || !serves(&files, names, now) {
        make_ca(&files.ca, &ca_key, now)
            .and_then(|()| make_serving(&files, &ca_key, names, now))
            .map_err(io::Error::other)?;
    }
    Ok(files)
}

/// Replaces the serving certificate before it expires, until the future is dropped; [`super::ServingCertificate`] reads
/// the files again.
pub async fn renew(dir: PathBuf, names: Vec<String>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(error) = ensure(&dir, &names) {
            tracing::error!(%error, dir = %dir.display(), "the serving certificate cannot be renewed");
        }
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn make_ca(certificate: &Path, key: &Path, now: SystemTime) -> Result<(), AnyError> {
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("drydock-ca@{}", jiff::Timestamp::now().as_second()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, now, CA_DAYS);
    write_file(key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_file(certificate, params.self_signed(&pair)?.pem().as_bytes(), 0o644)?;
    Ok(())
}

fn make_serving(files: &Files, ca_key: &Path, names: &[String], now: SystemTime) -> Result<(), AnyError> {
    let ca_pem = fs::read_to_string(&files.ca)?;
    let issuer = Issuer::from_ca_cert_pem(&ca_pem, KeyPair::from_pem(&fs::read_to_string(ca_key)?)?)?;
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, names.first().map_or("drydock", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, SERVING_DAYS);
    let certificate = params.signed_by(&pair, &issuer)?;
    write_file(&files.key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_file(&files.certificate, certificate.pem().as_bytes(), 0o644)?;
    Ok(())
}

/// Each certificate begins in 1970: so it has begun for every clock, whichever was wrong when it was made.
fn set_validity(params: &mut CertificateParams, now: SystemTime, days: u64) {
    params.not_before = SystemTime::UNIX_EPOCH.into();
    params.not_after = (now + DAY * days as u32).into();
}

/// Whether a client that trusts the CA is well served with the certificate, and will be for a while.
fn serves(files: &Files, names: &[String], now: SystemTime) -> bool {
    let later = now + DAY * RENEW_BEFORE_DAYS as u32;
    [now, later].into_iter().all(|then| served(files, names, then).is_ok())
}

fn served(files: &Files, names: &[String], then: SystemTime) -> Result<(), AnyError> {
    let pair = super::read(&files.certificate, &files.key)?;
    let leaf = pair.cert.first().ok_or("no certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(&files.ca)?).map_err(|e| format!("{e:?}"))?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    let then = UnixTime::since_unix_epoch(then.duration_since(SystemTime::UNIX_EPOCH)?);
    for name in names {
        let name = ServerName::try_from(name.as_str())?;
        verifier.verify_server_cert(leaf, &[], &name, &[], then)?;
    }
    Ok(())
}

/// Writes beside the target and renames, so that no reader sees half a file. The name beside it is the target's
/// alone, and what a crash left there is removed: a file that is there already keeps its permissions.
fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::super::client_cert::validity_bounds;
    use super::*;

    fn names() -> Vec<String> {
        ["drydock.example.svc", "localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
    }

    fn contents(files: &Files) -> [Vec<u8>; 3] {
        [&files.ca, &files.certificate, &files.key].map(|file| fs::read(file).unwrap())
    }

    #[test]
    fn what_serves_is_kept_and_another_name_gets_another_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let first = contents(&ensure(dir.path(), &names()).unwrap());
        assert_eq!(contents(&ensure(dir.path(), &names()).unwrap()), first);
        let more = [names(), vec!["other.example".to_owned()]].concat();
        let second = contents(&ensure(dir.path(), &more).unwrap());
        assert_eq!(second[0], first[0], "the CA stays");
        assert_ne!(second[1], first[1]);
    }

    /// Regression: a certificate that was made while the clock was some days ahead was refused by every client for those
    /// days. Later, a clock that was behind replaced a good CA, which clients trusted.
    #[test]
    fn no_certificate_has_to_begin_and_no_clock_that_is_behind_replaces_one() {
        let now = SystemTime::now();
        for days in [1, 20, 400, 3650] {
            let dir = tempfile::tempdir().unwrap();
            let files = ensure_at(dir.path(), &names(), now + DAY * days).unwrap();
            let ahead = contents(&files);
            for then in [now + DAY * days, now, now - DAY * 400, SystemTime::UNIX_EPOCH] {
                assert_eq!(
                    contents(&ensure_at(dir.path(), &names(), then).unwrap()),
                    ahead,
                    "{days} {then:?}"
                );
                assert!(served(&files, &names(), then).is_ok(), "{days} {then:?}");
            }
            let ca = CertificateDer::from_pem_slice(&ahead[0]).unwrap();
            assert_eq!(
                validity_bounds(&ca)[0],
                Some(SystemTime::UNIX_EPOCH),
                "clients in Go look at it, too"
            );
        }
    }

    /// A CA of before, which began when it was made: only the certificate that it signed is made anew.
    #[test]
    fn a_ca_that_has_not_begun_is_kept() {
        let (dir, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let files = ensure_at(dir.path(), &names(), now).unwrap();
        let pair = KeyPair::generate().unwrap();
        let begins_now = |mut params: CertificateParams| {
            params.not_before = now.into();
            params.not_after = (now + DAY * 365).into();
            params
        };
        let mut params = begins_now(CertificateParams::default());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&pair).unwrap().pem();
        fs::write(&files.ca, &ca).unwrap();
        fs::write(dir.path().join("ca.key"), pair.serialize_pem()).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&ca, pair).unwrap();
        let own = KeyPair::generate().unwrap();
        let params = begins_now(CertificateParams::new(names()).unwrap());
        fs::write(&files.certificate, params.signed_by(&own, &issuer).unwrap().pem()).unwrap();
        fs::write(&files.key, own.serialize_pem()).unwrap();
        let before = contents(&files);
        let behind = now - DAY * 400;
        assert!(served(&files, &names(), now).is_ok() && served(&files, &names(), behind).is_err());
        let after = contents(&ensure_at(dir.path(), &names(), behind).unwrap());
        assert!(after[0] == before[0] && after[1] != before[1]);
        assert!(served(&files, &names(), behind).is_ok());
    }

    #[test]
    fn what_a_crash_left_between_key_and_certificate_is_made_anew() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = ensure(dir.path(), &names()).unwrap();
        let foreign = ensure(other.path(), &names()).unwrap();
        for (file, with) in [
            (files.key.clone(), &foreign.key),
            (files.ca.clone(), &foreign.ca),
            (dir.path().join("ca.key"), &other.path().join("ca.key")),
        ] {
            fs::copy(with, &file).unwrap();
            fs::remove_file(&files.certificate).unwrap();
            ensure(dir.path(), &names()).unwrap();
            assert!(serves(&files, &names(), SystemTime::now()), "{}", file.display());
        }
        fs::write(&files.certificate, "half a certifi").unwrap();
        ensure(dir.path(), &names()).unwrap();
        assert!(serves(&files, &names(), SystemTime::now()));
    }

    #[test]
    fn keys_are_the_owners_alone_whatever_lay_there() {
        let dir = tempfile::tempdir().unwrap();
        for stale in ["tls.new", "tls.key.new", "ca.key.new"] {
            fs::write(dir.path().join(stale), "x").unwrap();
        }
        let files = ensure(dir.path(), &names()).unwrap();
        for key in [files.key, dir.path().join("ca.key")] {
            assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600, "{}", key.display());
        }
    }
}
