//! The `#[schema(...)]` attributes of types and fields, their texts, and the names of fields in JSON.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, ExprLit, Field, Lit, LitInt, LitStr, Meta, Result};

/// The attributes of a struct.
#[derive(Default)]
pub struct TypeAttributes {
    /// `package`: prefix of the name of the OpenAPI definition.
    pub package: Option<LitStr>,
    /// `struct_type = "atomic"`
    pub is_atomic: bool,
}

/// The attributes of a field.
#[derive(Default)]
pub struct FieldAttributes {
    /// `tag`: protobuf field number.
    pub tag: Option<LitInt>,
    /// `required`
    pub is_required: bool,
    /// `always`
    pub is_always_written: bool,
    /// `pointer` or `value`
    pub pointer: Option<bool>,
    /// `text`: takes the place of the doc comment.
    pub text: Option<Expr>,
    /// Calls of the methods of `Schema` that the other attributes stand for.
    pub calls: TokenStream,
}

impl TypeAttributes {
    /// Reads the attributes of a struct.
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self::default();
        each(attributes, |meta| {
            if meta.path.is_ident("package") {
                read.package = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("struct_type") {
                let value: LitStr = meta.value()?.parse()?;
                if value.value() != "atomic" {
                    return Err(Error::new_spanned(value, "the struct type is \"atomic\", or is not given"));
                }
                read.is_atomic = true;
            } else {
                return Err(meta.error("a struct has the attributes package and struct_type"));
            }
            Ok(())
        })?;
        Ok(read)
    }
}

impl FieldAttributes {
    /// Reads the attributes of a field.
    pub fn read(field: &Field) -> Result<Self> {
        let mut read = Self::default();
        let (mut list_type, mut keys) = (None::<LitStr>, Vec::<LitStr>::new());
        each(&field.attrs, |meta| {
            if meta.path.is_ident("list_type") {
                list_type = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("list_map_key") {
                keys.push(meta.value()?.parse()?);
            } else {
                read.read_one(&meta)?;
            }
            Ok(())
        })?;
        if let Some(list) = list_type_of(list_type.as_ref(), &keys)? {
            // First: a list of type map has a patch strategy by default, which an attribute may replace.
            let others = std::mem::take(&mut read.calls);
            read.calls = quote!(.list_type(#list) #others);
        }
        if read.tag.is_none() {
            return Err(Error::new_spanned(
                field,
                "a field needs #[schema(tag = N)], its protobuf field number",
            ));
        }
        Ok(read)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "tag" => self.tag = Some(meta.value()?.parse()?),
            "required" => (self.is_required, self.is_always_written) = (true, true),
            "always" => self.is_always_written = true,
            "pointer" => self.pointer = Some(true),
            "value" => self.pointer = Some(false),
            "text" => self.text = Some(meta.value()?.parse()?),
            "micro_time" => self.call(quote!(.micro_time())),
            "default" => self.call_with(meta, |value| quote!(.default_value(#value)))?,
            "max_items" => self.call_with(meta, |value| quote!(.at_most(#value)))?,
            "patch_strategy" => self.patch_strategy(&meta.value()?.parse()?)?,
            "patch_merge_key" => self.call_with(
                meta,
                |key| quote!(.patch_strategy(::drydock_machinery::schema::PatchStrategy::MergeBy(#key))),
            )?,
            _ => return Err(meta.error(FIELD_ATTRIBUTES)),
        }
        Ok(())
    }

    fn patch_strategy(&mut self, value: &LitStr) -> Result<()> {
        let strategy = match value.value().as_str() {
            "replace" => quote!(Replace),
            "merge" => quote!(Merge),
            _ => return Err(Error::new_spanned(value, "the patch strategy is \"merge\" or \"replace\"")),
        };
        self.call(quote!(.patch_strategy(::drydock_machinery::schema::PatchStrategy::#strategy)));
        Ok(())
    }

    fn call_with(&mut self, meta: &ParseNestedMeta<'_>, call: impl Fn(Expr) -> TokenStream) -> Result<()> {
        let value = meta.value()?.parse()?;
        self.call(call(value));
        Ok(())
    }

    fn call(&mut self, call: TokenStream) {
        call.to_tokens(&mut self.calls);
    }
}

const FIELD_ATTRIBUTES: &str = "a field has the attributes tag, required, always, pointer, value, text, micro_time, \
    default, max_items, list_type, list_map_key, patch_strategy and patch_merge_key";

fn list_type_of(list_type: Option<&LitStr>, keys: &[LitStr]) -> Result<Option<TokenStream>> {
    let path = quote!(::drydock_machinery::schema::ListType);
    match (list_type, list_type.map(LitStr::value).as_deref(), keys) {
        (None, _, []) => Ok(None),
        (_, Some("atomic"), []) => Ok(Some(quote!(#path::Atomic))),
        (_, Some("set"), []) => Ok(Some(quote!(#path::Set))),
        (_, Some("map"), [_, ..]) => Ok(Some(quote!(#path::Map(&[#(#keys),*])))),
        (at, ..) => {
            let span = at.map_or_else(Span::call_site, LitStr::span);
            Err(Error::new(span, "a list is \"atomic\", a \"set\", or a \"map\" with list_map_key"))
        }
    }
}

fn each(attributes: &[Attribute], read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let mut read = read;
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("schema"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut read))
}

/// The attributes of serde by which what it reads would differ from the schema.
const UNSUPPORTED: [&str; 5] = ["flatten", "skip", "skip_deserializing", "skip_serializing", "alias"];

/// Returns the JSON name of a field: that of `#[serde(rename = "...")]`, or its Rust name in camelCase.
pub fn json_name(field: &Field) -> Result<String> {
    let mut renamed = None;
    each_of_serde(&field.attrs, |meta| {
        if meta.path.is_ident("rename") {
            renamed = Some(meta.value()?.parse::<LitStr>()?.value());
            return Ok(());
        }
        match UNSUPPORTED.iter().find(|name| meta.path.is_ident(name)) {
            Some(name) => Err(meta.error(format!("the schema would not have what serde makes of {name}"))),
            None => skip_value(&meta),
        }
    })?;
    let name = field.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default();
    Ok(renamed.unwrap_or_else(|| camel_case(&name)))
}

/// Whether serde writes the fields of this struct in camelCase, as the schema does.
pub fn is_camel_case(attributes: &[Attribute]) -> Result<bool> {
    let mut is_camel_case = false;
    each_of_serde(attributes, |meta| {
        if meta.path.is_ident("rename_all") {
            is_camel_case = meta.value()?.parse::<LitStr>()?.value() == "camelCase";
            return Ok(());
        }
        skip_value(&meta)
    })?;
    Ok(is_camel_case)
}

/// Calls `read` for each of serde's attributes.
pub fn each_of_serde(
    attributes: &[Attribute],
    mut read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let mut of_serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    of_serde.try_for_each(|attribute| attribute.parse_nested_meta(&mut read))
}

/// Passes over the value of an attribute, if it has one.
pub fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(syn::Token![=]) {
        meta.value()?.parse::<Expr>()?;
    }
    Ok(())
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut whole, part| {
        let mut letters = part.chars();
        whole.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        whole + letters.as_str()
    })
}

/// Returns the text of the doc comments. Lines of one paragraph are joined by a space, because a source file breaks
/// its lines where it likes. An empty line separates paragraphs, and an item of a list begins a new line.
pub fn text_of(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for line in attributes.iter().filter_map(doc_line) {
        let line = line.trim();
        let separator = match line {
            "" if text.is_empty() || text.ends_with("\n\n") => "",
            "" => "\n\n",
            _ if text.is_empty() || text.ends_with('\n') => "",
            _ if begins_item(line) => "\n",
            _ => " ",
        };
        text.push_str(separator);
        text.push_str(line);
    }
    text.truncate(text.trim_end().len());
    text
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the line begins with `- ` or a number and `. `.
fn begins_item(line: &str) -> bool {
    let after_digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (after_digits.len() < line.len() && after_digits.starts_with(". "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(source: &str) -> String {
        let item: syn::ItemStruct = syn::parse_str(&format!("{source}\nstruct S;")).unwrap();
        text_of(&item.attrs)
    }

    #[test]
    fn lines_are_joined_to_paragraphs_and_items() {
        let source = "/// One\n/// line.\n///\n/// Stages:\n///\n/// 1. Idle\n///    waits.\n/// 2. Drain\n/// - item\n///";
        assert_eq!(text(source), "One line.\n\nStages:\n\n1. Idle waits.\n2. Drain\n- item");
        assert_eq!(text(""), "");
        assert_eq!(text("/// 10 lines.\n/// - item"), "10 lines.\n- item");
        assert_eq!(text("/// of\n/// 10 lines."), "of 10 lines.");
    }
}
