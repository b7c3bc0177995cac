//! A page as YAML, made item by item: as one tree it would be many times larger than its JSON, and hold up its worker
//! for as long as it takes to make it.

use bytes::{Bytes, BytesMut};
use drydock_machinery::go_yaml::to_yaml;
use serde_json::Value;

/// The pieces of a document, given the document without the items, the name of the field that has them, and the items.
/// Pieces are at least `size` bytes long, but for the last.
pub fn pieces(
    mut document: Value,
    field: &'static str,
    items: impl Iterator<Item = Value> + Send + 'static,
    size: usize,
) -> impl Iterator<Item = Bytes> + Send {
    // Whatever stands there ends in the line that is looked for.
    document[field] = 0.into();
    let text = to_yaml(&document);
    let place = format!("{field}: 0\n");
    let (before, after) = text.split_once(&place).unwrap_or((&text, ""));
    let (mut items, after) = (items.peekable(), after.to_owned());
    let list = if items.peek().is_some() { "" } else { " []" };
    let mut out = BytesMut::from(format!("{before}{field}:{list}\n").as_bytes());
    let mut after = Some(after);
    std::iter::from_fn(move || {
        while out.len() < size {
            let Some(item) = items.next() else {
                out.extend_from_slice(after.take()?.as_bytes());
                return Some(out.split().freeze());
            };
            out.extend_from_slice(to_yaml(&Value::Array(vec![item])).as_bytes());
        }
        Some(out.split().freeze())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pieces_are_the_whole() {
        let item = |n: usize| {
            json!({
                "metadata": {"name": format!("n{n}"), "labels": {"a": "yes", "b": "", "items": "items: 0"}},
                "spec": {"list": [[1], [], {"x": null}], "text": "line\nline\n", "long": "word ".repeat(50)},
            })
        };
        for (field, count) in [("items", 0), ("items", 1), ("items", 30), ("rows", 2)] {
            let items: Vec<Value> = (0..count).map(item).collect();
            let metadata = json!({"resourceVersion": "1", "continue": "x"});
            let document =
                json!({"kind": "L", "apiVersion": "g/v1", "metadata": metadata, "columnDefinitions": [{}]});
            let made = pieces(document.clone(), field, items.clone().into_iter(), 1000);
            let made: Vec<Bytes> = made.collect();
            let mut whole = document;
            whole[field] = items.into();
            assert_eq!(String::from_utf8(made.concat()).unwrap(), to_yaml(&whole));
            assert!(made.len() >= count / 3 && made.iter().all(|piece| piece.len() < 3000), "{}", made.len());
        }
    }
}
