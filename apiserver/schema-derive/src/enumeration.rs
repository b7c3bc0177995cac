//! `ApiType` of an enum whose values are strings.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, DataEnum, DeriveInput, Error, Fields, Result};

/// Implements `ApiType` for the enum `input`, with a constant `VALUES` and a method `as_str`. A variant with
/// `#[serde(other)]` stands for unknown values and is not one of the `VALUES`.
pub fn implement(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(Error::new_spanned(variant, "a variant stands for a string and has no fields"));
    }
    let name = &input.ident;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let strings: Vec<_> = variants.iter().map(ToString::to_string).collect();
    let known = data.variants.iter().filter(|variant| !is_other(&variant.attrs));
    let known: Vec<_> = known.map(|variant| variant.ident.to_string()).collect();
    Ok(quote! {
        impl #name {
            /// The accepted values in JSON.
            pub const VALUES: &'static [&'static str] = &[#(#known),*];

            /// The value in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    #(Self::#variants => #strings),*
                }
            }
        }

        impl ::drydock_machinery::schema::ApiType for #name {
            fn schema() -> ::drydock_machinery::schema::Schema {
                ::drydock_machinery::schema::Schema::new("", ::drydock_machinery::schema::Shape::String)
                    .one_of(Self::VALUES)
            }
        }
    })
}

fn is_other(attributes: &[Attribute]) -> bool {
    let mut is_other = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // Serde reports what is wrong with its attributes.
        let _ = attribute.parse_nested_meta(|meta| {
            is_other |= meta.path.is_ident("other");
            Ok(())
        });
    }
    is_other
}
