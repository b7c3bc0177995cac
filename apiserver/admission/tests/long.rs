//! Texts of the largest length, in each way that makes the parser recurse.

use drydock_admission::cel::Expression;

#[test]
fn the_longest_text_is_refused_or_compiled_and_nothing_breaks() {
    for most in [4_900, 49_000] {
        let half = most / 2;
        for text in [
            format!("object{}", ".a".repeat(most)),
            format!("1{} == 1", "+1".repeat(most)),
            format!("{}true", "!".repeat(most)),
            format!("{}1 == 1", "-".repeat(most)),
            format!("{}true", "true&&".repeat(half.min(12_000))),
            format!("{}true", "1?1:".repeat(half)),
            format!("{}1{}", "(".repeat(half), ")".repeat(half)),
            format!("{}1{}", "[".repeat(half), "]".repeat(half)),
            format!("{}1", "1 in ".repeat(most.min(19_000))),
            format!("'a'{}", ".trim()".repeat(half.min(12_000))),
            format!("object{}", "[0]".repeat(half)),
        ] {
            // Operators that cancel out, and adjacent terms, do not nest.
            if let Err(refused) = Expression::compile(&text, &["object"]) {
                assert!(refused.starts_with("compilation failed: ERROR: "), "{refused}");
            }
        }
    }
}
