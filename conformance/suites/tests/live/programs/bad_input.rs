//! Flags and files that cannot be used: one line that names them, and an exit code.

use anyhow::Result;
use drydock_testkit::host::TestHost;
use drydock_testkit::program::ProgramEnd;

use super::setup::{APISERVER, BOTH, ProgramSetup};

const NO_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_flag_is_named_and_the_exit_code_is_2() -> Result<()> {
    let host = TestHost::shared().await?;
    for name in BOTH {
        let program = ProgramSetup::new(&host, "unknown-flag", name, &host.url).await?;
        let ended = program.start(&["--secure-prot=1".into()])?.ended().await?;
        assert_eq!(ended.code, 2, "{ended:?}");
        let line = format!("{name}: error: unexpected argument '--secure-prot' found");
        assert!(ended.lines.len() == 1 && ended.lines[0].starts_with(&line), "{ended:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_none_is_named_with_its_flag() -> Result<()> {
    let host = TestHost::shared().await?;
    for name in BOTH {
        let program = ProgramSetup::new(&host, "bad-value", name, &host.url).await?;
        let ended = program.start(&["--heartbeat-deadline=soon".into()])?.ended().await?;
        assert_eq!((ended.code, ended.lines.len()), (2, 1), "{ended:?}");
        assert!(ended.lines[0].contains("'soon' for '--heartbeat-deadline"), "{ended:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_certificate_is_named_with_its_flag() -> Result<()> {
    let host = TestHost::shared().await?;
    for name in BOTH {
        let program = ProgramSetup::new(&host, "malformed-certificate", name, &host.url).await?;
        std::fs::write(program.dir.join("tls.crt"), NO_CERTIFICATE)?;
        std::fs::write(program.dir.join("tls.key"), "nonsense")?;
        let flags = ["--tls-cert-file=tls.crt".into(), "--tls-private-key-file=tls.key".into()];
        let ended = program.start(&flags)?.ended().await?;
        assert_last_words(&ended, &format!("{name}: --tls-cert-file: tls."));
    }
    let program = ProgramSetup::new(&host, "malformed-ca", APISERVER, &host.url).await?;
    std::fs::write(program.dir.join("ca.crt"), NO_CERTIFICATE)?;
    for flag in ["--client-ca-file", "--requestheader-client-ca-file"] {
        let ended = program.start(&[format!("{flag}=ca.crt")])?.ended().await?;
        assert_last_words(&ended, &format!("{APISERVER}: {flag}: ca.crt: malformed CA certificate"));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_none_is_named() -> Result<()> {
    let host = TestHost::shared().await?;
    for name in BOTH {
        let program = ProgramSetup::new(&host, "bad-kubeconfig", name, &host.url).await?;
        std::fs::write(program.dir.join("kubeconfig"), "clusters: [")?;
        let ended = program.start(&[])?.ended().await?;
        assert_last_words(&ended, &format!("{name}: --kubeconfig"));
        std::fs::remove_file(program.dir.join("kubeconfig"))?;
        let ended = program.start(&[])?.ended().await?;
        assert_last_words(&ended, &format!("{name}: --kubeconfig"));
        assert!(ended.lines[0].ends_with("No such file or directory (os error 2)"), "{ended:?}");
        assert_eq!(ended.lines[0].matches("No such file").count(), 1, "{ended:?}");
    }
    Ok(())
}

/// It failed, and said why in one line.
fn assert_last_words(ended: &ProgramEnd, start: &str) {
    assert_eq!((ended.code, ended.lines.len()), (1, 1), "{ended:?}");
    assert!(ended.lines[0].starts_with(start), "{start:?} is not what it says: {ended:?}");
}
