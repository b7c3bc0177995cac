//! Evaluation errors with the messages of cel-go, which the authors of policies know.

use cel::{ExecutionError, Value};

/// Returns the host's message for an error.
pub fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", text(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::DuplicateKey(key) => format!("Failed with repeated key: {}", text(key)),
        ExecutionError::UnsupportedKeyType(_) => "unsupported key type".to_owned(),
        ExecutionError::FunctionError { message, .. } | ExecutionError::InternalError(message) => {
            message.clone()
        }
        // The remaining errors are operands whose types an operator or function does not accept.
        _ => "no such overload".to_owned(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Int(it) => it.to_string(),
        Value::UInt(it) => it.to_string(),
        Value::Float(it) => it.to_string(),
        Value::Bool(it) => it.to_string(),
        Value::String(it) => it.to_string(),
        other => format!("{other:?}"),
    }
}
