//! `ApiType` of a struct.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, Error, Field, Fields, LitStr, Result};

use crate::attributes::{FieldAttributes, TypeAttributes, json_name};
use crate::text;

/// Implements `ApiType` for the struct `input`.
pub fn implement(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
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
    let description = text::of(&input.attrs);
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
    let text = text::of(&field.attrs);
    if text.is_empty() {
        return Err(Error::new_spanned(field, "a field needs a doc comment: the text of kubectl explain"));
    }
    Ok(LitStr::new(&text, proc_macro2::Span::call_site()))
}
