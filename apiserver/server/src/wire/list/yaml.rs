//! A list as YAML, made item by item: as one tree it would take many times the memory of its JSON.

use bytes::BytesMut;
use drydock_machinery::go_yaml::to_yaml;
use drydock_storage::work_meter::STEP;
use serde_json::Value;

use super::json::{self, Item};
use super::pieces::{PIECE, Steps};
use super::{ListPage, Objects};
use crate::wire::object::ObjectView;

/// Makes a list as YAML.
pub struct Yaml<I> {
    /// Absent after the first step.
    before: Option<String>,
    /// Items, each with the bytes that it was decoded from.
    items: I,
    after: String,
}

/// The items of a page in this view.
pub fn yaml(page: &ListPage, view: ObjectView) -> Box<dyn Steps> {
    let mut head = json::head(page, &view).to_vec();
    head.extend_from_slice(b"]}");
    let document: Value = serde_json::from_slice(&head).unwrap_or_default();
    let (field, objects) = (json::items_field(&view), page.items.iter());
    let item = Item::new(view);
    Box::new(Yaml::new(document, field, values(objects, item)))
}

fn values(objects: Objects, item: Item) -> impl Iterator<Item = (Value, usize)> {
    objects.map(move |stored| {
        let mut json = BytesMut::new();
        let decoded = item.write(&stored, &mut json);
        (serde_json::from_slice(&json).unwrap_or_default(), decoded.max(json.len()))
    })
}

impl<I: Iterator<Item = (Value, usize)>> Yaml<std::iter::Peekable<I>> {
    /// A document without its items, the name of the field that has them, and the items.
    fn new(mut document: Value, field: &'static str, items: I) -> Self {
        // A value that makes the line that is searched for below.
        document[field] = 0.into();
        let text = to_yaml(&document);
        let place = format!("{field}: 0\n");
        let (before, after) = text.split_once(&place).unwrap_or((&text, ""));
        let mut items = items.peekable();
        let list = if items.peek().is_some() { "" } else { " []" };
        Self { before: Some(format!("{before}{field}:{list}\n")), items, after: after.to_owned() }
    }
}

impl<I: Iterator<Item = (Value, usize)> + Send> Steps for Yaml<I> {
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let (end, mut decoded) = (out.len() + PIECE, 0);
        if let Some(before) = self.before.take() {
            out.extend_from_slice(before.as_bytes());
        }
        while out.len() < end && decoded < STEP {
            let Some((item, bytes)) = self.items.next() else {
                out.extend_from_slice(self.after.as_bytes());
                return false;
            };
            out.extend_from_slice(to_yaml(&Value::Array(vec![item])).as_bytes());
            decoded += bytes;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_steps_make_the_whole() {
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
            let each = items.clone().into_iter().map(|item| (item, STEP.div_ceil(3)));
            let mut yaml = Yaml::new(document.clone(), field, each);
            let (mut made, mut steps) = (BytesMut::new(), 1);
            while yaml.step(&mut made) {
                steps += 1;
            }
            let mut whole = document;
            whole[field] = items.into();
            assert_eq!(String::from_utf8(made.to_vec()).unwrap(), to_yaml(&whole));
            assert_eq!(steps, count / 3 + 1);
        }
    }
}
