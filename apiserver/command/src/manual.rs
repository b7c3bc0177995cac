//! The flags of a program outside its code: the reference in deploy/flags, and the arguments in a manifest. A test of
//! each program compares them.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

/// Returns the reference of a program's flags in Markdown, in the order of `--help`, followed by those of each
/// subcommand.
pub fn reference<F: CommandFactory>() -> String {
    let program = F::command();
    let name = program.get_name();
    let tables: String = program
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .map(|command| format!("\n{}", subcommand(name, command)))
        .collect();
    format!("# Flags of {name}\n\n{ABOUT}\n{HEAD}{}{tables}", rows(&program))
}

/// Compares the file of a program's reference with its flags. If the environment has `UPDATE`, writes the
/// file instead.
///
/// # Errors
/// How to update a file that differs, or why it cannot be written.
pub fn check_reference<F: CommandFactory>(file: &Path) -> Result<(), String> {
    let reference = reference::<F>();
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(file, reference).map_err(|error| format!("{}: {error}", file.display()));
    }
    compare(file, &reference)
}

fn compare(file: &Path, reference: &str) -> Result<(), String> {
    let is_current = std::fs::read_to_string(file).is_ok_and(|present| present == reference);
    let advice = || format!("{} is out of date: run this test with UPDATE=1", file.display());
    if is_current { Ok(()) } else { Err(advice()) }
}

/// Returns the flags in a manifest of deploy/: the list items, and the values of patches, that start with `--`.
pub fn in_manifest(manifest: &str) -> Vec<&str> {
    let items = manifest.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("- ").or_else(|| line.strip_prefix("value: "))
    });
    items.filter(|item| item.starts_with("--")).collect()
}

const ABOUT: &str = "Each flag can stand in the YAML file that `--config` names, as a key without the dashes. Flags that \
                     Kubernetes' own programs have mean\nwhat they mean there.\n";
const HEAD: &str = "| flag | default | what |\n|---|---|---|\n";

fn subcommand(program: &str, command: &Command) -> String {
    let files: String = command.get_positionals().map(|arg| format!(" {arg}")).collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("## {program} {}{files}\n\n{about}.\n\n{HEAD}{}", command.get_name(), rows(command))
}

fn rows(command: &Command) -> String {
    command.get_arguments().filter(|arg| arg.get_long().is_some()).map(row).collect()
}

fn row(arg: &Arg) -> String {
    let name = arg.get_long().unwrap_or_default();
    let values = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    let what = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!("| `--{name}` | {default} | {} |\n", what.replace('*', "\\*").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(name = "example")]
    struct Flags {
        /// Port; '*' for any
        #[arg(long, default_value_t = 1)]
        secure_port: u16,
        /// Folder
        #[arg(long)]
        data_dir: Option<String>,
    }

    #[test]
    fn a_flag_is_a_row() {
        let Flags { secure_port: _, data_dir: _ } = Flags::parse_from(["example"]);
        let rows = "| `--secure-port` | `1` | Port; '\\*' for any |\n| `--data-dir` |  | Folder |\n";
        assert_eq!(reference::<Flags>(), format!("# Flags of example\n\n{ABOUT}\n{HEAD}{rows}"));
    }

    #[test]
    fn a_reference_that_is_not_there_is_out_of_date() {
        let advice = compare(Path::new("/nonexistent/example.md"), "").unwrap_err();
        assert!(advice.contains("UPDATE"), "{advice}");
    }
}
