//! Macros with two variables (cel-go ext.TwoVarComprehensions): index and value, or key and value.
//!
//! The interpreter binds one variable in each iteration. So `l.all(i, v, p)` becomes a loop over the entries of `l`,
//! whose body binds `i` and `v` to the two parts of an entry.

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, LIST_TYPE, MAP_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env, ExecutionError};

use super::value;

const ENTRIES: &str = "@entries";
const MAP_OF: &str = "@mapOf";
const MERGE_ENTRIES: &str = "@mergeEntries";
const RESULT: &str = "@result";
const ENTRY: &str = "@entry";

type Helper<'a, 'b> = &'a mut MacroExprHelper<'b>;
type Expansion = Result<Option<IdedExpr>, ParseError>;

/// Declares the macros and the functions that they expand to.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(ENTRIES, "entries_list", vec![LIST_TYPE], entries)?;
    env.add_overload(ENTRIES, "entries_map", vec![MAP_TYPE], entries)?;
    env.add_overload(MAP_OF, "map_of", vec![LIST_TYPE], map_of)?;
    env.add_overload(MERGE_ENTRIES, "merge_entries", vec![LIST_TYPE], merge_entries)?;
    for (name, arguments) in [("all", 3), ("exists", 3), ("existsOne", 3), ("exists_one", 3)] {
        env.add_macro(Macro::receiver(name, arguments, move |helper, target, args| {
            quantifier(name, helper, target, args)
        }))?;
    }
    for name in ["transformList", "transformMap", "transformMapEntry"] {
        for arguments in [3, 4] {
            env.add_macro(Macro::receiver(name, arguments, move |helper, target, args| {
                transform(name, helper, target, args)
            }))?;
        }
    }
    Ok(())
}

/// The arguments of a macro call.
struct MacroArguments {
    range: IdedExpr,
    key: String,
    value: String,
    bodies: Vec<IdedExpr>,
}

impl MacroArguments {
    fn take(
        helper: Helper<'_, '_>,
        target: &mut Option<IdedExpr>,
        args: &mut Vec<IdedExpr>,
    ) -> Result<Self, ParseError> {
        let mut args = std::mem::take(args).into_iter();
        let (key, value) = (variable(helper, args.next())?, variable(helper, args.next())?);
        if key == value {
            return Err(helper.new_error(0, format!("duplicate variable name: {key}")));
        }
        let range = target.take().unwrap_or_default();
        let range = call(helper, ENTRIES, vec![range]);
        Ok(Self { range, key, value, bodies: args.collect() })
    }

    /// Returns a body in which both variables are bound.
    fn bound(&self, helper: Helper<'_, '_>, body: IdedExpr) -> IdedExpr {
        let with_value = bind(helper, &self.value, 1, body);
        bind(helper, &self.key, 0, with_value)
    }
}

fn variable(helper: Helper<'_, '_>, arg: Option<IdedExpr>) -> Result<String, ParseError> {
    match arg {
        Some(IdedExpr { expr: Expr::Ident(name), .. }) => Ok(name),
        other => Err(helper.new_error(other.map_or(0, |o| o.id), "argument must be a simple name")),
    }
}

fn quantifier(
    name: &str,
    helper: Helper<'_, '_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expansion {
    let mut parts = MacroArguments::take(helper, target, args)?;
    let body = parts.bodies.pop().unwrap_or_default();
    let body = parts.bound(helper, body);
    let accu = || Expr::Ident(RESULT.to_owned());
    let (left, result) = (helper.next_expr(accu()), helper.next_expr(accu()));
    let expanded = match name {
        "all" => {
            let init = truth(helper, true);
            let condition = call_of(helper, operators::NOT_STRICTLY_FALSE, accu());
            let step = call(helper, operators::LOGICAL_AND, vec![left, body]);
            (init, condition, step, result)
        }
        "exists" => {
            let init = truth(helper, false);
            let not = call_of(helper, operators::LOGICAL_NOT, accu());
            let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![not]);
            let step = call(helper, operators::LOGICAL_OR, vec![left, body]);
            (init, condition, step, result)
        }
        _ => {
            let (init, one, again) = (number(helper, 0), number(helper, 1), number(helper, 1));
            let more = call(helper, operators::ADD, vec![left, one]);
            let unchanged = helper.next_expr(accu());
            let step = call(helper, operators::CONDITIONAL, vec![body, more, unchanged]);
            let result = call(helper, operators::EQUALS, vec![result, again]);
            (init, truth(helper, true), step, result)
        }
    };
    Ok(Some(looped(helper, parts.range, expanded)))
}

fn transform(
    name: &str,
    helper: Helper<'_, '_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expansion {
    let mut parts = MacroArguments::take(helper, target, args)?;
    let mut item = parts.bodies.pop().unwrap_or_default();
    if name == "transformMap" {
        let key = helper.next_expr(Expr::Ident(parts.key.clone()));
        item = helper.next_expr(Expr::List(ListExpr::new(vec![key, item])));
    }
    let item = parts.bound(helper, item);
    let accu = || Expr::Ident(RESULT.to_owned());
    let items = helper.next_expr(Expr::List(ListExpr::new(vec![item])));
    let so_far = helper.next_expr(accu());
    let mut step = call(helper, operators::ADD, vec![so_far, items]);
    if let Some(filter) = parts.bodies.pop() {
        let filter = parts.bound(helper, filter);
        let unchanged = helper.next_expr(accu());
        step = call(helper, operators::CONDITIONAL, vec![filter, step, unchanged]);
    }
    let init = helper.next_expr(Expr::List(ListExpr::default()));
    let result = helper.next_expr(accu());
    let condition = truth(helper, true);
    let list = looped(helper, parts.range, (init, condition, step, result));
    Ok(Some(match name {
        "transformMap" => call(helper, MAP_OF, vec![list]),
        "transformMapEntry" => call(helper, MERGE_ENTRIES, vec![list]),
        _ => list,
    }))
}

/// Returns a loop over `range`, with its initial result, condition, step, and final result.
fn looped(
    helper: Helper<'_, '_>,
    iter_range: IdedExpr,
    (accu_init, loop_cond, loop_step, result): (IdedExpr, IdedExpr, IdedExpr, IdedExpr),
) -> IdedExpr {
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: ENTRY.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))
}

/// Returns `body` with `name` bound to one part of the entry: a loop without iterations whose initial result is that
/// part.
fn bind(helper: Helper<'_, '_>, name: &str, half: i64, body: IdedExpr) -> IdedExpr {
    let entry = helper.next_expr(Expr::Ident(ENTRY.to_owned()));
    let index = number(helper, half);
    let accu_init = call(helper, operators::INDEX, vec![entry, index]);
    let iter_range = helper.next_expr(Expr::List(ListExpr::default()));
    let loop_cond = truth(helper, false);
    let loop_step = helper.next_expr(Expr::Ident(name.to_owned()));
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result: body,
    })))
}

fn call(helper: Helper<'_, '_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

fn call_of(helper: Helper<'_, '_>, name: &str, arg: Expr) -> IdedExpr {
    let arg = helper.next_expr(arg);
    call(helper, name, vec![arg])
}

fn truth(helper: Helper<'_, '_>, it: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(it.into())))
}

fn number(helper: Helper<'_, '_>, it: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(it.into())))
}

/// Returns a list of pairs: index and item, or key and value.
fn entries<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let of = args.first().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let pair = |key: Box<dyn Val + 'v>, value: &(dyn Val + 'v)| -> Box<dyn Val + 'v> {
        Box::new(CelList::from(vec![key, value.clone_as_boxed()]))
    };
    let pairs: Vec<Box<dyn Val + 'v>> = if let Some(list) = of.as_ref().downcast_ref::<CelList>() {
        let items = list.inner().iter().enumerate();
        items.map(|(i, item)| pair(Box::new(CelInt::from(value::length(i))), item.as_ref())).collect()
    } else if let Some(map) = of.as_ref().downcast_ref::<CelMap>() {
        map.inner().iter().map(|(key, item)| pair(key.inner().clone_as_boxed(), item.as_ref())).collect()
    } else {
        return Err(ExecutionError::no_such_overload(ENTRIES, vec![]));
    };
    Ok(CowVal::owned(CelList::from(pairs)))
}

fn map_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut map: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for pair in items(&args)? {
        let pair = pair.as_ref().downcast_ref::<CelList>().map(CelList::inner).unwrap_or_default();
        if let [key, value] = pair {
            map.insert(CelMapKey::try_from(key.clone())?, value.clone());
        }
    }
    Ok(CowVal::owned(CelMap::from(map)))
}

fn merge_entries<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut merged: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for item in items(&args)? {
        let map = item.as_ref().downcast_ref::<CelMap>();
        let map = map.ok_or_else(|| ExecutionError::no_such_overload("transformMapEntry", vec![]))?;
        for (key, value) in map.inner() {
            let key = CelMapKey::try_from(key.inner().clone_as_boxed())?;
            if merged.insert(key, value.clone()).is_some() {
                return Err(ExecutionError::function_error(
                    "transformMapEntry",
                    "insert failed: key already exists",
                ));
            }
        }
    }
    Ok(CowVal::owned(CelMap::from(merged)))
}

fn items<'a, 'v>(args: &'a [CowVal<'_, 'v>]) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let list = args.first().and_then(|list| list.as_ref().downcast_ref::<CelList>());
    list.map(CelList::inner).ok_or(ExecutionError::MissingArgumentOrTarget)
}
