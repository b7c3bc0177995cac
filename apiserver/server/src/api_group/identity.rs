//! What a server calls itself.

use serde_json::{Value, json};

/// What a server calls itself, in `/version` and in its OpenAPI documents.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Name.
    pub title: &'a str,
    /// `major.minor.patch`
    pub version: &'a str,
}

impl Identity<'_> {
    /// k8s.io/apimachinery/pkg/version Info.
    pub fn info(&self) -> Value {
        let mut parts = self.version.split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
        json!({
            "major": major, "minor": minor, "gitVersion": format!("v{}", self.version), "gitCommit": "",
            "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "rustc", "platform": platform,
        })
    }
}
