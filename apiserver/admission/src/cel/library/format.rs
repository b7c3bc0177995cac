//! Named string formats (k8s.io/apiserver pkg/cel/library/format.go).

use base64::Engine;
use cel::common::types::{CelOptional, CelString, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use drydock_machinery::names;

use super::{argument, opaque, texts, url};

/// Returns the errors of a text.
type FormatRule = fn(&str) -> Vec<String>;

/// A format, by name.
#[derive(Clone, Debug, PartialEq)]
struct StringFormat(&'static str);

opaque!(StringFormat, FORMAT_TYPE, "kubernetes.NamedFormat");

const FORMATS: [(&str, FormatRule); 13] = [
    ("dns1123Label", |text| names::name_is_dns_label(text, false)),
    ("dns1123Subdomain", |text| names::name_is_dns_subdomain(text, false)),
    ("dns1035Label", |text| dns1035_label(text, false)),
    ("qualifiedName", names::qualified_name),
    ("dns1123LabelPrefix", |text| names::name_is_dns_label(text, true)),
    ("dns1123SubdomainPrefix", |text| names::name_is_dns_subdomain(text, true)),
    ("dns1035LabelPrefix", |text| dns1035_label(text, true)),
    ("labelValue", names::label_value),
    ("uri", |text| must(url::is_url(text), "invalid URI for request")),
    ("uuid", |text| must(is_uuid(text), "does not match the UUID format")),
    ("byte", |text| must(base64::engine::general_purpose::STANDARD.decode(text).is_ok(), "invalid base64")),
    ("date", |text| must(is_date(text), "invalid date")),
    ("datetime", |text| must(text.parse::<jiff::Timestamp>().is_ok(), "invalid datetime")),
];

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("format.named", "format-named", vec![STRING_TYPE], |args| {
        let wanted = argument::<CelString>(&args, 0)?.inner();
        let found = FORMATS.iter().find(|(name, _)| *name == wanted);
        Ok(CowVal::owned(
            found.map_or_else(CelOptional::none, |(name, _)| CelOptional::of(Box::new(StringFormat(name)))),
        ))
    })?;
    let format = StringFormat::cel_type().to_owned();
    env.add_member_overload("validate", "format-validate", format, vec![STRING_TYPE], validate)?;
    constants(env)
}

/// Declares `format.uuid()` and the like.
fn constants(env: &mut Env) -> Result<(), DeclarationError> {
    macro_rules! constant {
        ($($name:literal),*) => {
            $(env.add_overload(concat!("format.", $name), concat!("format.", $name), vec![], |_| {
                Ok(CowVal::owned(StringFormat($name)))
            })?;)*
        };
    }
    constant!("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix");
    constant!(
        "dns1123SubdomainPrefix",
        "dns1035LabelPrefix",
        "labelValue",
        "uri",
        "uuid",
        "byte",
        "date",
        "datetime"
    );
    Ok(())
}

fn validate<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (format, text) = (argument::<StringFormat>(&args, 0)?, argument::<CelString>(&args, 1)?);
    let rule = FORMATS.iter().find(|(name, _)| *name == format.0).map(|(_, rule)| rule);
    let errors = rule.map(|rule| rule(text.inner())).unwrap_or_default();
    Ok(CowVal::owned(if errors.is_empty() {
        CelOptional::none()
    } else {
        CelOptional::of(Box::new(texts(errors)))
    }))
}

fn must(holds: bool, otherwise: &str) -> Vec<String> {
    if holds { Vec::new() } else { vec![otherwise.to_owned()] }
}

/// k8s.io/apimachinery pkg/util/validation, IsDNS1035Label.
fn dns1035_label(text: &str, prefix: bool) -> Vec<String> {
    let masked = match text.strip_suffix('-') {
        Some(start) if prefix => format!("{start}a"),
        _ => text.to_owned(),
    };
    let mut errors = Vec::new();
    if masked.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = masked.starts_with(|c: char| c.is_ascii_lowercase())
        && masked.chars().all(inner)
        && !masked.ends_with('-');
    if !fits {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        errors.push(names::regex_error(rule, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    errors
}

fn is_uuid(text: &str) -> bool {
    let digits = text.replace('-', "");
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    let shaped = parts == [8, 4, 4, 4, 12] || parts == [32];
    shaped && digits.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}
