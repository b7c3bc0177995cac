//! A kind before it gets another field.

use drydock_machinery::schema::ApiType;

/// Shelf holds books.
#[derive(ApiType)]
#[schema(package = "com.example.v1")]
pub struct Shelf {
    /// Room of the shelf.
    #[schema(tag = 1, required)]
    pub room: String,
    /// Wood of the boards.
    #[schema(tag = 2, default = "\"Oak\"")]
    pub wood: String,
}
