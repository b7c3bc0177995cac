//! One expression: compiled once, evaluated for many requests.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelNull, CelString};
use cel::common::value::Val;
use cel::{Context, DeclarationError, Env, ExecutionError, Value as Evaluation};

use super::{check, errors, fields, library, meter, prices, rewrite, stack, two_variables};

/// Longest text of an expression (cel-go: the default of parser.ExpressionSizeCodePointLimit).
const LONGEST: usize = 100_000;
/// Most operators in one expression: the parser descends into a chain of them as deep as it is long.
const MOST: usize = 5_000;
/// Deepest nesting that the parser follows (cel-go: the default of parser.MaxRecursionDepth).
const DEEPEST: u16 = 250;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    tree: Arc<IdedExpr>,
    composed: Arc<BTreeSet<String>>,
}

/// What an expression came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// Nothing.
    Null,
    /// A value of another type, by the type's name.
    Other(String),
}

/// The functions and macros of every expression.
static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    meter::declare(&mut env)?;
    prices::declare(&mut env)?;
    fields::declare(&mut env)?;
    two_variables::declare(&mut env)?;
    library::declare(&mut env)?;
    Ok(Arc::new(env))
});

impl Expression {
    /// Compiles `source`, which may use `variables`; the refusal is worded as the host's.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, String> {
        let size = source.chars().count();
        if size > LONGEST {
            return Err(failed(&format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {LONGEST}"
            )));
        }
        let nodes = operators(source);
        if nodes > MOST {
            let why = format!(
                "this server compiles no expression of more than {MOST} operators, and it has {nodes}"
            );
            return Err(failed(&format!("ERROR: <input>:-1:0: {why}")));
        }
        stack::deep(|| compile(source, variables))?
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Composed variables that it looks at (`variables.name`).
    pub fn composed(&self) -> &BTreeSet<String> {
        &self.composed
    }

    /// Evaluates it; `None` if it spent more than it may.
    pub(super) fn evaluate(&self, context: &Context<'_, 'static>) -> Option<Result<Box<dyn Val>, String>> {
        let value = meter::within_means(|| {
            Evaluation::resolve_val(&self.tree, context).map(|value| value.into_owned())
        })?;
        Some(value.map_err(|error: ExecutionError| errors::words(&error)))
    }
}

impl Answer {
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

/// The environment to evaluate in.
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

/// No fewer than there are: those within texts are counted as well.
fn operators(source: &str) -> usize {
    let words = source.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| *word == "in").count();
    source.bytes().filter(|byte| b".[({+-*/%!?<>=&|:".contains(byte)).count() + words
}

fn failed(why: &str) -> String {
    format!("compilation failed: {why}")
}
