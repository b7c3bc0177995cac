//! Reads the flags of a program, among them durations in the format of Kubernetes' flags, or explains in one line why they
//! are refused.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

use crate::config_file;

/// Reads the command line and the file that `--config` names. `contradiction` returns why parsed flags cannot be used.
///
/// # Errors
/// The refusal to print and exit with.
pub fn read<F: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    contradiction: impl Fn(&F) -> Option<&'static str>,
) -> Result<F, FlagsRefusal> {
    let refuse = |error| FlagsRefusal { program: F::command().get_name().to_owned(), error };
    let merged = config_file::merge(&F::command(), arguments.into_iter().collect())
        .map_err(|why| refuse(clap::Error::raw(ErrorKind::Io, why)))?;
    let flags = F::try_parse_from(merged).map_err(refuse)?;
    match contradiction(&flags) {
        Some(why) => Err(refuse(clap::Error::raw(ErrorKind::ValueValidation, why))),
        None => Ok(flags),
    }
}

/// Why the flags are refused, or that help was requested.
#[derive(Debug)]
pub struct FlagsRefusal {
    program: String,
    error: clap::Error,
}

impl FlagsRefusal {
    /// Prints help in full, or an error in one line; returns the exit code.
    pub fn print(self) -> ExitCode {
        if !self.error.use_stderr() {
            let _ = self.error.print();
            return ExitCode::SUCCESS;
        }
        eprintln!("{self}");
        ExitCode::from(2)
    }
}

impl fmt::Display for FlagsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.error.to_string();
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{program}: {line}; see {program} --help", program = self.program)
    }
}

/// Maximum duration of a flag. A much longer one, added to the current time, could overflow.
const LONGEST_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Parses a duration such as `20m` or `1m30s`; `0` is zero.
///
/// # Errors
/// What is wrong with it, for the error about the flag.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| "not a duration like 20m or 90s".to_owned())?;
    let duration = Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())?;
    if duration > LONGEST_DURATION { Err("must be at most 8760h, a year".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "drydock-example")]
    struct Flags {
        #[arg(long, default_value_t = 1)]
        secure_port: u16,
    }

    fn line(arguments: &[&str]) -> String {
        let all = std::iter::once("drydock-example").chain(arguments.iter().copied()).map(OsString::from);
        let odd = |flags: &Flags| (flags.secure_port == 2).then_some("--secure-port must not be 2");
        read(all, odd).map_or_else(|refusal| refusal.to_string(), |flags| format!("{flags:?}"))
    }

    #[test]
    fn a_refusal_is_one_line_that_names_the_flag_and_leads_to_help() {
        let line = line(&["--secure-prot=1"]);
        assert!(
            line.starts_with("drydock-example: error: unexpected argument '--secure-prot' found"),
            "{line}"
        );
        assert!(line.ends_with("; see drydock-example --help") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        let told = "drydock-example: error: --secure-port must not be 2; see drydock-example --help";
        assert_eq!(line(&["--secure-port=2"]), told);
        assert_eq!(line(&["--secure-port=3"]), "Flags { secure_port: 3 }");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        assert!(line(&["--config=/nowhere.yaml"]).contains("--config: /nowhere.yaml: No such file"));
    }

    #[test]
    fn durations_are_written_as_in_kubernetes() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(24 * 3600)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_time_to_wait_is_refused() {
        assert_eq!(duration("-1s"), Err("must not be negative".into()));
        assert_eq!(duration("9000h"), Err("must be at most 8760h, a year".into()));
        assert_eq!(duration("soon"), Err("not a duration like 20m or 90s".into()));
    }
}
