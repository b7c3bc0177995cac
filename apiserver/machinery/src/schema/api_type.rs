//! Schemas from Rust types.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{ListType, Schema, Shape};

/// A Rust type whose values are part of an API object. Its derive macro makes the schema from a struct, or from an
/// enum of strings, so that one definition serves Rust code and every client:
///
/// ```
/// use drydock_machinery::schema::{ApiType, ListType, Shape};
/// use serde::{Deserialize, Serialize};
///
/// /// A shelf holds books. (The text of `kubectl explain` for the type.)
/// #[derive(Clone, Debug, Default, Serialize, Deserialize, ApiType)]
/// #[serde(rename_all = "camelCase", default)]
/// #[schema(package = "com.example.v1")]
/// pub struct Shelf {
///     /// Room says where the shelf stands. (The text for the field.)
///     #[schema(tag = 1, required)]
///     pub room: String,
///     /// Books by their titles.
///     #[serde(skip_serializing_if = "Vec::is_empty")]
///     #[schema(tag = 2, list_type = "map", list_map_key = "title", max_items = 100)]
///     pub books: Vec<Book>,
/// }
///
/// /// A book.
/// #[derive(Clone, Debug, Default, Serialize, Deserialize, ApiType)]
/// #[serde(rename_all = "camelCase", default)]
/// #[schema(package = "com.example.v1", struct_type = "atomic")]
/// pub struct Book {
///     /// Title of the book.
///     #[schema(tag = 1, required)]
///     pub title: String,
///     /// Binding of the book.
///     #[schema(tag = 2, default = "\"Paper\"")]
///     pub binding: Binding,
/// }
///
/// /// How a book is bound.
/// #[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ApiType)]
/// pub enum Binding {
///     /// In paper.
///     #[default]
///     Paper,
///     /// In cloth.
///     Cloth,
///     /// A value that this version does not know.
///     #[serde(other)]
///     Unknown,
/// }
///
/// let schema = Shelf::schema();
/// let books = schema.field("books").unwrap();
/// assert!(matches!(&books.shape, Shape::List(_, ListType::Map(["title"]))));
/// assert_eq!(Binding::VALUES, ["Paper", "Cloth"]);
/// ```
///
/// Attributes of a struct, in `#[schema(...)]`:
///
/// | attribute | meaning |
/// |---|---|
/// | `package = "..."` | what stands before the struct's name in the name of its OpenAPI definition |
/// | `struct_type = "atomic"` | managed fields treat the struct as one value |
///
/// Attributes of a field:
///
/// | attribute | meaning |
/// |---|---|
/// | `tag = N` | its protobuf field number; 0 for `apiVersion` and `kind`, which protobuf does not write here |
/// | `required` | OpenAPI lists it as required, and it is always written |
/// | `always` | it is always written, though not required |
/// | `pointer`, `value` | whether the Go field is a pointer, which is written whenever it is set, if it is not as most fields of its type: see [`Field::pointer`](super::Field::pointer) |
/// | `list_type = "atomic"`, `"set"`, `"map"` | how managed fields treat the list; `"map"` with one or more `list_map_key = "..."` |
/// | `patch_strategy = "merge"`, `"replace"`; `patch_merge_key = "..."` | how a strategic merge patch changes the value, if not as its list type says |
/// | `max_items = N` | maximum number of items of the list |
/// | `default = "..."` | the default as JSON text |
/// | `micro_time` | a time with microseconds (metav1.MicroTime) |
/// | `text = CONSTANT` | the text in place of the doc comment |
///
/// The JSON name is the field's name in camelCase or that of `#[serde(rename = "...")]`. In a doc comment, line breaks
/// within a paragraph become spaces; an item of a list (`- ` or `1. `) begins a new line.
pub trait ApiType {
    /// Returns the schema of the type. A field has it with the field's own text.
    fn schema() -> Schema;
}

macro_rules! scalar {
    ($($type:ty => $shape:ident),*) => {
        $(impl ApiType for $type {
            fn schema() -> Schema {
                Schema::new("", Shape::$shape)
            }
        })*
    };
}

scalar!(bool => Boolean, i32 => Int32, i64 => Int64, String => String, Timestamp => Time);

impl<T: ApiType> ApiType for Option<T> {
    fn schema() -> Schema {
        T::schema()
    }
}

impl<T: ApiType> ApiType for Box<T> {
    fn schema() -> Schema {
        T::schema()
    }
}

/// An atomic list: one of another type has the attribute `list_type`.
impl<T: ApiType> ApiType for Vec<T> {
    fn schema() -> Schema {
        Schema::new("", Shape::List(Box::new(T::schema()), ListType::Atomic))
    }
}

impl<T: ApiType> ApiType for BTreeMap<String, T> {
    fn schema() -> Schema {
        Schema::new("", Shape::Map(Box::new(T::schema())))
    }
}
