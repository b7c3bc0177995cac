//! One expression: compiled once, evaluated for many requests.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelNull, CelString};
use cel::common::value::Val;
use cel::{Context, DeclarationError, Env, ExecutionError, Value as Evaluation};

use super::{check, cost_meter, costs, library, rewrite, stack, two_variables, value};

/// Longest text of an expression (cel-go: the default of parser.ExpressionSizeCodePointLimit).
const MAX_CODE_POINTS: usize = 100_000;
/// Maximum number of operators in an expression. Limited because the parser recurses once for each operator of a
/// chain.
const MAX_OPERATORS: usize = 5_000;
/// Deepest recursion of the parser (cel-go: the default of parser.MaxRecursionDepth).
const DEEPEST: u16 = 250;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    tree: Arc<IdedExpr>,
    composed: Arc<BTreeSet<String>>,
}

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationResult {
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(String),
    /// Null.
    Null,
    /// A value of another type, given by the name of the type.
    Other(String),
}

/// The functions and macros of all expressions.
static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    cost_meter::declare(&mut env)?;
    costs::declare(&mut env)?;
    value::declare(&mut env)?;
    two_variables::declare(&mut env)?;
    library::declare(&mut env)?;
    Ok(Arc::new(env))
});

impl Expression {
    /// Compiles `source`, which may use `variables`. Fails with the host's messages.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, String> {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            return Err(failed(&format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
            )));
        }
        let nodes = operators(source);
        if nodes > MAX_OPERATORS {
            let why = format!(
                "this server compiles no expression of more than {MAX_OPERATORS} operators, and it has {nodes}"
            );
            return Err(failed(&format!("ERROR: <input>:-1:0: {why}")));
        }
        stack::on_large_stack(|| compile(source, variables))?
    }

    /// The text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The composed variables that the expression uses (`variables.name`).
    pub fn composed(&self) -> &BTreeSet<String> {
        &self.composed
    }

    /// Evaluates the expression; `None` if it exceeds its cost limit.
    pub(super) fn evaluate(&self, context: &Context<'_, 'static>) -> Option<Result<Box<dyn Val>, String>> {
        let result = cost_meter::with_limit(|| {
            Evaluation::resolve_val(&self.tree, context).map(|value| value.into_owned())
        })?;
        Some(result.map_err(|error: ExecutionError| error_message(&error)))
    }
}

impl EvaluationResult {
    pub(super) fn of(value: &dyn Val) -> Self {
        if let Some(it) = value.downcast_ref::<CelBool>() {
            Self::Bool(*it.inner())
        } else if let Some(it) = value.downcast_ref::<CelString>() {
            Self::Text(it.inner().to_owned())
        } else if value.downcast_ref::<CelNull>().is_some() {
            Self::Null
        } else {
            Self::Other(value.get_type().name().to_owned())
        }
    }
}

/// Returns the environment for evaluation.
pub(super) fn environment() -> Result<Arc<Env>, String> {
    ENVIRONMENT.clone().map_err(|error| format!("unexpected error loading CEL environment: {error}"))
}

fn compile(source: &str, variables: &[&str]) -> Result<Expression, String> {
    let parser = environment()?.parser().max_recursion_depth(DEEPEST);
    let parsed = parser.parse_with_source_info(source).map_err(|errors| failed(&errors.to_string()))?;
    let composed = check::check(&parsed.0, &parsed.1, variables).map_err(|errors| failed(&errors))?;
    let tree = Arc::new(rewrite::metered(parsed.0));
    Ok(Expression { source: source.into(), tree, composed: Arc::new(composed) })
}

/// Returns an upper bound of the number of operators: operator characters within strings are counted too.
fn operators(source: &str) -> usize {
    let words = source.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| *word == "in").count();
    source.bytes().filter(|byte| b".[({+-*/%!?<>=&|:".contains(byte)).count() + words
}

fn failed(why: &str) -> String {
    format!("compilation failed: {why}")
}

/// Returns the host's message for an evaluation error: that of cel-go, which the authors of policies know.
fn error_message(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", operand_text(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::DuplicateKey(key) => format!("Failed with repeated key: {}", operand_text(key)),
        ExecutionError::UnsupportedKeyType(_) => "unsupported key type".to_owned(),
        ExecutionError::FunctionError { message, .. } | ExecutionError::InternalError(message) => {
            message.clone()
        }
        // The remaining errors are operands whose types an operator or function does not accept.
        _ => "no such overload".to_owned(),
    }
}

fn operand_text(value: &Evaluation) -> String {
    match value {
        Evaluation::Int(it) => it.to_string(),
        Evaluation::UInt(it) => it.to_string(),
        Evaluation::Float(it) => it.to_string(),
        Evaluation::Bool(it) => it.to_string(),
        Evaluation::String(it) => it.to_string(),
        other => format!("{other:?}"),
    }
}
