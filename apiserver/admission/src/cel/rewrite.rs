//! Rewrites an expression so that its cost is charged, which keeps it from blocking a request or filling the memory.
//!
//! A loop is charged before it begins: for each element of its range the number of nodes in its body. Values that are
//! copied, built or compared are charged by size. Selection, arithmetic and logic are free, because their number is
//! limited by the length of the text.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};

use super::cost_meter::{CHARGE_RANGE, CHARGED, METER};
use super::value::{self, SELECTABLE};
use super::{costs, functions};

/// Functions that return an operand or a boolean at once, without copying anything.
const FREE: [&str; 7] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::NOT_STRICTLY_FALSE,
    operators::INDEX,
    operators::NEGATE,
];

/// Returns the expression with charges.
pub fn metered(expression: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = expression;
    let expr = match expr {
        Expr::Call(call) => return metered_call(id, call),
        Expr::Comprehension(it) => Expr::Comprehension(Box::new(metered_loop(*it))),
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(charged).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            map.entries = map.entries.into_iter().map(metered_entry).collect();
            Expr::Map(map)
        }
        Expr::Struct(mut it) => {
            it.entries = it.entries.into_iter().map(metered_entry).collect();
            Expr::Struct(it)
        }
        Expr::Select(mut select) => {
            let composed = matches!(&select.operand.expr, Expr::Ident(name) if name == functions::VARIABLES);
            let bare = functions::is_path(&select.operand);
            let operand = metered(*select.operand);
            select.operand = Box::new(if bare { operand } else { call(id, SELECTABLE, vec![operand]) });
            let pays = composed && !select.test;
            let select = IdedExpr { id, expr: Expr::Select(select) };
            return if pays { pay(select) } else { select };
        }
        other => other,
    };
    IdedExpr { id, expr }
}

fn metered_call(id: u64, call: CallExpr) -> IdedExpr {
    if FREE.contains(&call.func_name.as_str()) || appends(&call) {
        let CallExpr { func_name, target, args } = call;
        let target = target.map(|target| Box::new(metered(*target)));
        let args = args.into_iter().map(metered).collect();
        return IdedExpr { id, expr: Expr::Call(CallExpr { func_name, target, args }) };
    }
    let qualified = functions::qualified(&call);
    let name = qualified.clone().unwrap_or_else(|| call.func_name.clone());
    let is_charged = costs::has(&name);
    let own = |target: Box<IdedExpr>| if qualified.is_some() { target } else { Box::new(charged(*target)) };
    let target = call.target.map(own);
    let args = call.args.into_iter().map(charged);
    if !is_charged {
        let (func_name, args) = (call.func_name, args.collect());
        return pay(IdedExpr { id, expr: Expr::Call(CallExpr { func_name, target, args }) });
    }
    // The name of a namespace is not an operand.
    let target = target.filter(|_| qualified.is_none()).map(|target| *target);
    let name = literal(id, LiteralValue::String(name.into()));
    self::call(id, costs::CALL, [meter(id), name].into_iter().chain(target).chain(args).collect())
}

/// Whether the call appends to a macro's result. The interpreter recognizes this form and appends in place.
fn appends(call: &CallExpr) -> bool {
    let to_result =
        matches!(call.args.first().map(|arg| &arg.expr), Some(Expr::Ident(name)) if name.starts_with('@'));
    call.func_name == operators::ADD && to_result
}

fn metered_loop(it: ComprehensionExpr) -> ComprehensionExpr {
    let weight = nodes(&it.loop_cond) + nodes(&it.loop_step);
    let id = it.iter_range.id;
    let range = metered(it.iter_range);
    let weight = literal(id, LiteralValue::Int(weight.into()));
    ComprehensionExpr {
        iter_range: call(id, CHARGE_RANGE, vec![meter(id), range, weight]),
        accu_init: charged(it.accu_init),
        loop_cond: metered(it.loop_cond),
        loop_step: metered(it.loop_step),
        result: metered(it.result),
        ..it
    }
}

fn metered_entry(entry: IdedEntryExpr) -> IdedEntryExpr {
    let expr = match entry.expr {
        EntryExpr::MapEntry(mut it) => {
            it.key = charged(it.key);
            it.value = charged(it.value);
            EntryExpr::MapEntry(it)
        }
        EntryExpr::StructField(mut it) => {
            it.value = charged(it.value);
            EntryExpr::StructField(it)
        }
    };
    IdedEntryExpr { id: entry.id, expr }
}

/// Rewrites an operand whose value is read or copied as a whole.
fn charged(operand: IdedExpr) -> IdedExpr {
    let free = match &operand.expr {
        Expr::Ident(name) => name.starts_with('@'),
        Expr::Literal(_) | Expr::List(_) | Expr::Map(_) => true,
        // It has been charged by itself.
        Expr::Call(call) => !FREE.contains(&call.func_name.as_str()) && !appends(call),
        _ => false,
    };
    let operand = metered(operand);
    if free { operand } else { pay(operand) }
}

fn pay(value: IdedExpr) -> IdedExpr {
    let id = value.id;
    call(id, CHARGED, vec![meter(id), value])
}

fn meter(id: u64) -> IdedExpr {
    IdedExpr { id, expr: Expr::Ident(METER.to_owned()) }
}

fn literal(id: u64, value: LiteralValue) -> IdedExpr {
    IdedExpr { id, expr: Expr::Literal(value) }
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

/// Returns the number of nodes of an expression. The nodes in a nested loop are charged by that loop.
fn nodes(expression: &IdedExpr) -> i64 {
    1 + match &expression.expr {
        Expr::Call(it) => it.target.as_deref().map_or(0, nodes) + it.args.iter().map(nodes).sum::<i64>(),
        Expr::Comprehension(it) => nodes(&it.iter_range) + nodes(&it.accu_init) + nodes(&it.result),
        Expr::List(it) => it.elements.iter().map(nodes).sum(),
        Expr::Map(it) => it.entries.iter().map(|entry| entry_nodes(&entry.expr)).sum(),
        Expr::Struct(it) => it.entries.iter().map(|entry| entry_nodes(&entry.expr)).sum(),
        Expr::Select(it) => nodes(&it.operand),
        // A string is read each time that it is evaluated.
        Expr::Literal(LiteralValue::String(it)) => value::length(it.inner().len()) / 10,
        Expr::Literal(LiteralValue::Bytes(it)) => value::length(it.inner().len()) / 10,
        _ => 0,
    }
}

fn entry_nodes(entry: &EntryExpr) -> i64 {
    match entry {
        EntryExpr::MapEntry(it) => nodes(&it.key) + nodes(&it.value),
        EntryExpr::StructField(it) => nodes(&it.value),
    }
}
