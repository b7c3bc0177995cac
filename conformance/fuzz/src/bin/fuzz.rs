//! libFuzzer's entry: each execution gives the target named by DRYDOCK_FUZZ_TARGET one input.
#![no_main]
// It is not caught: libFuzzer reports it and ends.
#![allow(clippy::panic)]

use std::sync::LazyLock;

use drydock_fuzz::{FuzzTarget, target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("DRYDOCK_FUZZ_TARGET").unwrap_or_default();
    let unknown = || panic!("DRYDOCK_FUZZ_TARGET={name}: there are the folders of conformance/fuzz/seeds");
    target(&name).unwrap_or_else(unknown)
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
