//! `ApiType` of a struct, and of an enum whose values are strings.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DataEnum, DeriveInput, Error, Field, Fields, FieldsNamed, LitStr, Result, Variant};

use crate::attributes::{
    FieldAttributes, TypeAttributes, each_of_serde, is_camel_case, json_name, skip_value, text_of,
};

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
    check_names(input, fields)?;
    check_tags(fields)?;
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

/// The schema has the names that serde reads, or else a value would be stored that no rule sees.
fn check_names(input: &DeriveInput, fields: &FieldsNamed) -> Result<()> {
    if is_camel_case(&input.attrs)? {
        return Ok(());
    }
    for field in &fields.named {
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        if json_name(field)? != name && name.contains('_') {
            let message =
                "serde must name the fields as the schema does: #[serde(rename_all = \"camelCase\")]";
            return Err(Error::new_spanned(&input.ident, message));
        }
    }
    Ok(())
}

/// A tag stands once in a struct. 0 is for what the envelope has.
fn check_tags(fields: &FieldsNamed) -> Result<()> {
    let mut seen = BTreeSet::new();
    for field in &fields.named {
        let Some(tag) = FieldAttributes::read(field)?.tag else { continue };
        let number: u32 = tag.base10_parse()?;
        let is_of_envelope = ["apiVersion", "kind"].contains(&json_name(field)?.as_str());
        if number == 0 && !is_of_envelope {
            return Err(Error::new_spanned(tag, "only apiVersion and kind have the tag 0"));
        }
        if number > 0 && !seen.insert(number) {
            return Err(Error::new_spanned(tag, "another field of the struct has this tag"));
        }
    }
    Ok(())
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
    each_of_serde(&input.attrs, |meta| match meta.path.is_ident("rename_all") {
        true => Err(meta.error("the values are the names of the variants")),
        false => skip_value(&meta),
    })?;
    let mut known = Vec::new();
    for variant in &data.variants {
        if !is_other(variant)? {
            known.push(variant.ident.to_string());
        }
    }
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

/// Whether the variant stands for unknown values.
fn is_other(variant: &Variant) -> Result<bool> {
    let mut is_other = false;
    each_of_serde(&variant.attrs, |meta| {
        is_other |= meta.path.is_ident("other");
        if meta.path.is_ident("rename") {
            return Err(meta.error("the value is the name of the variant"));
        }
        skip_value(&meta)
    })?;
    Ok(is_other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use syn::Data;

    use super::*;

    /// Why a definition is refused; empty if it is not.
    fn refusal(source: &str) -> String {
        let input: DeriveInput = syn::parse_str(source).unwrap();
        let result = match &input.data {
            Data::Struct(data) => of_struct(&input, &data.fields),
            Data::Enum(data) => of_enum(&input, data),
            Data::Union(_) => return "a union".to_owned(),
        };
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn of_fields(fields: &str) -> String {
        refusal(&format!(
            "#[serde(rename_all = \"camelCase\")] #[schema(package = \"com.example.v1\")] struct S {{ {fields} }}"
        ))
    }

    #[test]
    fn a_definition_that_serde_reads_otherwise_is_refused() {
        let field = "/// A room.\n#[schema(tag = 1)] room_number: i32";
        assert_eq!(of_fields(field), "");
        let bare = format!("#[schema(package = \"com.example.v1\")] struct S {{ {field} }}");
        assert!(refusal(&bare).contains("rename_all"));
        assert!(of_fields(&format!("#[serde(flatten)] {field}")).contains("flatten"));
        assert!(of_fields(&format!("#[serde(skip)] {field}")).contains("skip"));
        assert!(
            refusal("#[serde(rename_all = \"lowercase\")] enum E { A }").contains("names of the variants")
        );
        assert!(refusal("enum E { #[serde(rename = \"b\")] A }").contains("name of the variant"));
        assert_eq!(refusal("enum E { A, #[serde(other)] Unknown }"), "");
    }

    #[test]
    fn a_tag_stands_once_and_a_field_has_a_text() {
        let pair = |a: &str, b: &str| {
            of_fields(&format!("/// A.\n#[schema(tag = {a})] a: i32, /// B.\n#[schema(tag = {b})] b: i32"))
        };
        assert_eq!(pair("1", "2"), "");
        assert!(pair("1", "1").contains("another field"));
        assert!(pair("0", "1").contains("tag 0"));
        assert!(of_fields("#[schema(tag = 1)] a: i32").contains("doc comment"));
        assert!(of_fields("/// A.\na: i32").contains("tag = N"));
        assert_eq!(of_fields("/// Kind of it.\n#[schema(tag = 1)] r#type: String"), "");
    }
}
