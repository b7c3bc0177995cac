//! `ApiType` of a struct, and of an enum whose values are strings.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, DataEnum, DeriveInput, Error, Field, Fields, LitStr, Result};

use crate::attributes::{FieldAttributes, TypeAttributes, json_name, text_of};

/// Implements `ApiType` for the struct `input`.
pub fn of_struct(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let Fields::Named(fields) = fields else {
        return Err(Error::new_spanned(&input.ident, "an API type has named fields"));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "an API type has no generic parameters"));
    }
    let TypeAttributes { package, is_atomic } = TypeAttributes::read(&input.attrs)?;
    let package = package.ok_or_else(|| {
        Error::new_spanned(&input.ident, "a struct needs #[schema(package = \"...\")], of its definition")
    })?;
    let name = &input.ident;
    let definition = format!("{}.{name}", package.value());
    let description = text_of(&input.attrs);
    let fields = fields.named.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        impl ::drydock_machinery::schema::ApiType for #name {
            fn schema() -> ::drydock_machinery::schema::Schema {
                ::drydock_machinery::schema::Schema::new(
                    #description,
                    ::drydock_machinery::schema::Shape::Object(::drydock_machinery::schema::ObjectShape {
                        definition: #definition,
                        description: #description,
                        fields: ::std::vec![#(#fields),*],
                        atomic: #is_atomic,
                    }),
                )
            }
        }
    })
}

fn field(field: &Field) -> Result<TokenStream> {
    let FieldAttributes { tag, is_required, is_always_written, pointer, text: replaced, calls } =
        FieldAttributes::read(field)?;
    let (name, type_) = (json_name(field)?, &field.ty);
    let description = match replaced {
        Some(text) => text.to_token_stream(),
        None => described(field)?.to_token_stream(),
    };
    let pointer = match pointer {
        Some(is_pointer) => quote!(::std::option::Option::Some(#is_pointer)),
        None => quote!(::std::option::Option::None),
    };
    Ok(quote! {
        ::drydock_machinery::schema::Field {
            name: #name,
            number: #tag,
            required: #is_required,
            always: #is_always_written,
            pointer: #pointer,
            schema: <#type_ as ::drydock_machinery::schema::ApiType>::schema().described(#description) #calls,
        }
    })
}

fn described(field: &Field) -> Result<LitStr> {
    let text = text_of(&field.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(field, "a field needs a doc comment: the text of kubectl explain"));
    }
    Ok(LitStr::new(&text, proc_macro2::Span::call_site()))
}

/// Implements `ApiType` for the enum `input`, with a constant `VALUES` and a method `as_str`. A variant with
/// `#[serde(other)]` stands for unknown values and is not one of the `VALUES`.
pub fn of_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
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
