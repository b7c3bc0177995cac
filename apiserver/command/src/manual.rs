//! The flags of a program as others write them down: the table of README.md, the arguments in a manifest. A test of each
//! program keeps them alike.

use clap::{Arg, Command, CommandFactory};

/// A Markdown table of the flags, in the order of `--help`.
pub fn table<F: CommandFactory>() -> String {
    format!("{HEAD}{}", rows(&F::command()))
}

/// The same of each subcommand, under what it is for.
pub fn command_tables<F: CommandFactory>() -> String {
    let program = F::command();
    let shown = program.get_subcommands().filter(|command| command.get_name() != "help");
    let tables = shown.map(|command| {
        let files: String = command.get_positionals().map(|arg| format!(" {arg}")).collect();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let line = format!("`{} {}{files}`", program.get_name(), command.get_name());
        format!("{line}: {about}.\n\n{HEAD}{}", rows(command))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// Whether `text` has the tables of the subcommands; otherwise those that it must have.
///
/// # Errors
/// The tables.
pub fn commands_stand_in<F: CommandFactory>(text: &str) -> Result<(), String> {
    let tables = command_tables::<F>();
    if text.contains(&tables) { Ok(()) } else { Err(tables) }
}

/// Whether `text` has the table of the flags; otherwise the table that it must have.
///
/// # Errors
/// The table.
pub fn stands_in<F: CommandFactory>(text: &str) -> Result<(), String> {
    let table = table::<F>();
    if text.contains(&table) { Ok(()) } else { Err(table) }
}

/// The flags that a manifest of deploy/ hands to a container: the items of its lists that begin with `--`, and the values of
/// a patch that do.
pub fn in_manifest(manifest: &str) -> Vec<&str> {
    let items = manifest.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("- ").or_else(|| line.strip_prefix("value: "))
    });
    items.filter(|item| item.starts_with("--")).collect()
}

const HEAD: &str = "| flag | default | what |\n|---|---|---|\n";

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
        assert_eq!(table::<Flags>(), format!("| flag | default | what |\n|---|---|---|\n{rows}"));
        assert_eq!(stands_in::<Flags>("none"), Err(table::<Flags>()));
    }
}
