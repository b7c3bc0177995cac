//! The variables of one evaluation, and its remaining cost budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cel::common::traits::Indexer;
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError};
use parking_lot::Mutex;

use super::cost_meter::{CostMeter, METER, OUT_OF_BUDGET, PER_CALL};
use super::expression::{EvaluationResult, Expression, environment};
use super::functions::VARIABLES;
use super::library::opaque;
use super::value::Variable;

/// A composed variable of a policy, with its compiled expression or the error.
pub type ComposedVariable = (String, Result<Expression, String>);

/// Evaluates expressions about one request.
pub struct Activation {
    context: Context<'static, 'static>,
    meter: CostMeter,
    left: i64,
    definitions: Arc<[ComposedVariable]>,
    values: VariableValues,
}

impl Activation {
    /// Creates the activation with these variables; `budget` is for all expressions together.
    pub fn new(
        variables: Vec<(&'static str, Variable)>,
        definitions: Arc<[ComposedVariable]>,
        budget: i64,
    ) -> Result<Self, String> {
        let mut context = Context::with_env(environment()?);
        for (name, value) in variables {
            context.add_variable_as_val(name, value);
        }
        let (meter, values) = (CostMeter::default(), VariableValues::default());
        context.add_variable_as_val(METER, Box::new(meter.clone()));
        context.add_variable_as_val(VARIABLES, Box::new(values.clone()));
        Ok(Self { context, meter, left: budget, definitions, values })
    }

    /// Returns the budget that is left.
    pub fn left(&self) -> i64 {
        self.left
    }

    /// Evaluates an expression. The inner error concerns this expression only; the outer one ends the evaluation of
    /// all expressions (k8s.io/apiserver pkg/admission/plugin/cel/activation.go).
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Result<EvaluationResult, String>, String> {
        let all = self.definitions.len();
        let outcome = self.compose(expression.composed(), all).and_then(|()| self.spend_on(expression))?;
        let source = expression.source();
        Ok(outcome
            .map(|value| EvaluationResult::of(value.as_ref()))
            .map_err(|why| format!("expression '{source}' resulted in error: {why}")))
    }

    /// Evaluates the composed variables in `names` that have no value yet. Only the first `before` definitions may be
    /// used.
    fn compose(&mut self, names: &BTreeSet<String>, before: usize) -> Result<(), String> {
        let definitions = self.definitions.clone();
        for name in names {
            let found = definitions[..before].iter().rposition(|(defined, _)| defined == name);
            let Some(index) = found.filter(|_| !self.values.has(name)) else { continue };
            let value = match &definitions[index].1 {
                Err(why) => Err(format!("composited variable \"{name}\" fails to compile: {why}")),
                Ok(expression) => {
                    self.compose(expression.composed(), index)?;
                    let failed = |why| format!("composited variable \"{name}\" fails to evaluate: {why}");
                    self.spend_on(expression)?.map_err(failed)
                }
            };
            self.values.0.lock().insert(name.clone(), value);
        }
        Ok(())
    }

    fn spend_on(&mut self, expression: &Expression) -> Result<Result<Variable, String>, String> {
        self.meter.fill(PER_CALL);
        let outcome = expression.evaluate(&self.context);
        // If the cost limit was exceeded, the meter's value has no meaning.
        self.left -= if outcome.is_some() { PER_CALL - self.meter.left() } else { PER_CALL };
        if self.left < 0 {
            return Err(OUT_OF_BUDGET.to_owned());
        }
        Ok(outcome.unwrap_or_else(|| Err("operation cancelled: actual cost limit exceeded".to_owned())))
    }
}

/// The composed variables with a value: the content of `variables`.
#[derive(Clone, Debug, Default)]
struct VariableValues(Arc<Mutex<BTreeMap<String, Result<Variable, String>>>>);

opaque!(VariableValues, VALUES_TYPE, "kubernetes.variables", indexed);

impl VariableValues {
    fn has(&self, name: &str) -> bool {
        self.0.lock().contains_key(name)
    }
}

impl PartialEq for VariableValues {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Indexer for VariableValues {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = index.downcast_ref::<CelString>().map(CelString::inner).unwrap_or_default();
        match self.0.lock().get(name) {
            Some(Ok(value)) => Ok(CowVal::Owned(value.clone())),
            Some(Err(why)) => Err(ExecutionError::function_error(VARIABLES, why)),
            None => Err(ExecutionError::no_such_key(name)),
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}
