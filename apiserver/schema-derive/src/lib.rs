//! The derive macro of `drydock_machinery::schema::ApiType`: makes the schema of an API type from its Rust definition.
//!
//! Use it through `drydock_machinery::schema`, where the attributes are documented.

mod attributes;
mod implementation;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Error, parse_macro_input};

/// Implements `ApiType` for a struct with named fields, or for an enum of strings.
#[proc_macro_derive(ApiType, attributes(schema))]
pub fn derive_api_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implementation = match &input.data {
        Data::Struct(data) => implementation::of_struct(&input, &data.fields),
        Data::Enum(data) => implementation::of_enum(&input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "an API type is a struct or an enum")),
    };
    implementation.unwrap_or_else(Error::into_compile_error).into()
}
