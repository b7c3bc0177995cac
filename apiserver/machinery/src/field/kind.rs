//! The types of field errors, with Kubernetes' messages.

use crate::quote::go_quote;

/// The type of a field error; each is a cause of a Status with reason Invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorType {
    /// `FieldValueRequired`
    Required,
    /// `FieldValueInvalid`
    Invalid,
    /// `FieldValueNotSupported`: the accepted values.
    NotSupported(Vec<String>),
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueTooLong`: the maximum number of bytes.
    TooLong(usize),
    /// `FieldValueTooLong`: the maximum number of characters.
    TooLongCharacters(usize),
    /// `FieldValueTooMany`: actual number and maximum.
    TooMany(usize, usize),
    /// `FieldValueTooShort`: the minimum number of characters.
    TooShort(usize),
    /// `FieldValueTypeInvalid`
    TypeInvalid,
    /// `FieldValueNotFound`
    NotFound,
    /// `InternalError`
    Internal,
}

impl ErrorType {
    pub(super) fn title(&self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported(_) => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong(_) | Self::TooLongCharacters(_) => "Too long",
            Self::TooMany(..) => "Too many",
            Self::TooShort(_) => "Too short",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }

    pub(super) fn cause(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported(_) => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong(_) | Self::TooLongCharacters(_) => "FieldValueTooLong",
            Self::TooMany(..) => "FieldValueTooMany",
            Self::TooShort(_) => "FieldValueTooShort",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    pub(super) fn shows_value(&self) -> bool {
        matches!(
            self,
            Self::Invalid | Self::TypeInvalid | Self::NotSupported(_) | Self::NotFound | Self::Duplicate
        )
    }

    /// Returns the rule that the variant's numbers or values describe.
    pub(super) fn rule(&self) -> Option<String> {
        Some(match self {
            Self::NotSupported(values) if !values.is_empty() => {
                let quoted: Vec<_> = values.iter().map(|v| go_quote(v)).collect();
                format!("supported values: {}", quoted.join(", "))
            }
            Self::TooLong(max) => format!("may not be more than {max} {}", plural(*max, "byte")),
            Self::TooLongCharacters(max) => {
                format!("may not be more than {max} {}", plural(*max, "character"))
            }
            Self::TooMany(_, max) => format!("must have at most {max} {}", plural(*max, "item")),
            Self::TooShort(min) => format!("must be at least {min} {}", plural(*min, "character")),
            _ => return None,
        })
    }
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
}
