//! The text of `kubectl explain` from a doc comment.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the doc comments. Lines of one paragraph are joined by a space, because a source file breaks
/// its lines where it likes. An empty line separates paragraphs, and an item of a list begins a new line.
pub fn of(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for line in attributes.iter().filter_map(doc_line) {
        let line = line.trim();
        let separator = match line {
            "" if text.is_empty() || text.ends_with("\n\n") => "",
            "" => "\n\n",
            _ if text.is_empty() || text.ends_with('\n') => "",
            _ if begins_item(line) => "\n",
            _ => " ",
        };
        text.push_str(separator);
        text.push_str(line);
    }
    text.truncate(text.trim_end().len());
    text
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the line begins with `- ` or a number and `. `.
fn begins_item(line: &str) -> bool {
    let after_digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (after_digits.len() < line.len() && after_digits.starts_with(". "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(source: &str) -> String {
        let item: syn::ItemStruct = syn::parse_str(&format!("{source}\nstruct S;")).unwrap();
        of(&item.attrs)
    }

    #[test]
    fn lines_are_joined_to_paragraphs_and_items() {
        let source = "/// One\n/// line.\n///\n/// Stages:\n///\n/// 1. Idle\n///    waits.\n/// 2. Drain\n/// - item\n///";
        assert_eq!(text(source), "One line.\n\nStages:\n\n1. Idle waits.\n2. Drain\n- item");
        assert_eq!(text(""), "");
        assert_eq!(text("/// 10 lines.\n/// - item"), "10 lines.\n- item");
        assert_eq!(text("/// of\n/// 10 lines."), "of 10 lines.");
    }
}
