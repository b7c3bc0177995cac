//! The configuration file: each key is a flag without its dashes. Flags on the command line take precedence.

use std::ffi::OsString;

use clap::{Arg, Command};
use serde_yaml_ng::{Mapping, Value};

/// Returns the command line of `program`, with the flags from the file that `--config` names added.
///
/// # Errors
/// The name of the file and what is wrong with it.
pub fn merge(program: &Command, arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let Some(file) = named_file(&arguments) else { return Ok(arguments) };
    let text = std::fs::read_to_string(&file).map_err(|e| format!("--config: {file}: {e}\n"))?;
    let settings: Option<Mapping> = serde_yaml_ng::from_str(&text)
        .map_err(|e| format!("--config: {file}: not a YAML map of flags: {e}\n"))?;
    let mut merged = arguments.clone();
    for (key, value) in settings.unwrap_or_default() {
        let Value::String(key) = key else {
            return Err(format!("--config: {file}: a key is no flag name\n"));
        };
        if !is_given(program, &arguments, &key) {
            merged.extend(as_flags(&file, &key, value)?);
        }
    }
    Ok(merged)
}

fn named_file(arguments: &[OsString]) -> Option<String> {
    let mut texts = arguments.iter().map(|a| a.to_string_lossy());
    while let Some(text) = texts.next() {
        if let Some(file) = text.strip_prefix("--config=") {
            return Some(file.to_owned());
        }
        if text == "--config" {
            return texts.next().map(|f| f.into_owned());
        }
    }
    None
}

/// Whether the command line has the flag in any form: `--v 6`, `--v=6`, `-v 6`, `-v6` or `-v=6`.
fn is_given(program: &Command, arguments: &[OsString], key: &str) -> bool {
    let long = format!("--{key}");
    let flag = program.get_arguments().find(|flag| flag.get_long() == Some(key));
    let short = flag.and_then(Arg::get_short).map(|short| format!("-{short}"));
    arguments.iter().map(|argument| argument.to_string_lossy()).any(|argument| {
        argument.split('=').next() == Some(long.as_str())
            || short.as_ref().is_some_and(|short| argument.starts_with(short))
    })
}

fn as_flags(file: &str, key: &str, value: Value) -> Result<Vec<OsString>, String> {
    let values = match value {
        Value::Sequence(items) => items,
        one => vec![one],
    };
    values.into_iter().map(|value| Ok(format!("--{key}={}", scalar(file, key, value)?).into())).collect()
}

fn scalar(file: &str, key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!(
            "--config: {file}: {key}: must be a string, a number, a boolean, or a list of them\n"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    fn merged(file: &str, arguments: &[&str]) -> Result<Vec<String>, String> {
        let mut settings = tempfile::NamedTempFile::new().unwrap();
        settings.write_all(file.as_bytes()).unwrap();
        let config = format!("--config={}", settings.path().display());
        let all = std::iter::once(config.as_str()).chain(arguments.iter().copied());
        let program = Command::new("p").arg(Arg::new("v").short('v').long("v"));
        let merged = merge(&program, all.map(OsString::from).collect())?;
        Ok(merged.into_iter().skip(1).map(|a| a.into_string().unwrap()).collect())
    }

    #[test]
    fn a_key_is_a_flag_and_a_list_repeats_it() {
        let flags = merged("secure-port: 1\ntls-san: [a, b]\n", &[]).unwrap();
        assert_eq!(flags, ["--secure-port=1", "--tls-san=a", "--tls-san=b"]);
    }

    #[test]
    fn a_file_that_says_nothing_changes_nothing() {
        assert!(merged("# secure-port: 1\n", &[]).unwrap().is_empty());
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        assert_eq!(merged("secure-port: 1\n", &["--secure-port=2"]).unwrap(), ["--secure-port=2"]);
    }

    /// Regression: `-v 6` together with `v: 4` was refused as a flag that is given twice.
    #[test]
    fn the_short_name_of_a_flag_goes_before_the_file_too() {
        for given in [&["-v", "6"][..], &["-v6"], &["-v=6"], &["--v", "6"], &["--v=6"]] {
            assert_eq!(merged("v: 4\n", given).unwrap(), given);
        }
        assert_eq!(merged("v: 4\n", &["--verbose"]).unwrap(), ["--verbose", "--v=4"]);
    }

    #[test]
    fn a_nested_value_is_refused_and_named() {
        assert!(merged("secure-port: {a: 1}\n", &[]).unwrap_err().contains("secure-port: must be"));
    }
}
