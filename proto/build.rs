//! Generates messages and client from the .proto files, and the descriptors that reflection serves.

use std::path::PathBuf;

const STATUS: &str = "drydock/status/v1alpha1/status.proto";

fn main() -> std::io::Result<()> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .bytes(".")
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .file_descriptor_set_path(out.join("descriptors.bin"))
        .compile_protos(&[STATUS], &["."])
}
