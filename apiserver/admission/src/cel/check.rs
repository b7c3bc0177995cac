//! Checks an expression before it runs: undeclared names, and nesting.

use std::collections::BTreeSet;
use std::fmt::Write;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, SourceInfo};

use super::functions;

/// Deepest nesting allowed, because the interpreter recurses as deep.
const DEEPEST: usize = 400;

/// Returns the composed variables that an expression uses, or its errors. The expression may use `variables`.
pub fn check(
    expression: &IdedExpr,
    source: &SourceInfo,
    variables: &[&str],
) -> Result<BTreeSet<String>, String> {
    let scope = variables.iter().map(|name| (*name).to_owned()).collect();
    let mut checker = Checker { source, scope, composed: BTreeSet::new(), errors: Vec::new() };
    checker.visit(expression, 0);
    if checker.errors.is_empty() { Ok(checker.composed) } else { Err(checker.errors.join("\n")) }
}

struct Checker<'a> {
    source: &'a SourceInfo,
    scope: Vec<String>,
    composed: BTreeSet<String>,
    errors: Vec<String>,
}

impl Checker<'_> {
    fn visit(&mut self, it: &IdedExpr, depth: usize) {
        if depth > DEEPEST {
            self.error(
                it.id,
                &format!("this server evaluates no expression that is nested deeper than {DEEPEST}"),
            );
            return;
        }
        let below = depth + 1;
        match &it.expr {
            Expr::Ident(name) => self.variable(it.id, name),
            Expr::Call(call) => self.call(it.id, call, below),
            Expr::Select(select) => {
                if matches!(&select.operand.expr, Expr::Ident(name) if name == functions::VARIABLES) {
                    self.composed.insert(select.field.clone());
                }
                if !qualified_name(it).is_some_and(|name| functions::TYPES.contains(&name.as_str())) {
                    self.visit(&select.operand, below);
                }
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element, below)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, below)),
            Expr::Struct(it) => it.entries.iter().for_each(|entry| self.entry(&entry.expr, below)),
            Expr::Comprehension(it) => {
                self.visit(&it.iter_range, below);
                self.visit(&it.accu_init, below);
                let outside = self.scope.len();
                self.scope.push(it.accu_var.clone());
                self.visit(&it.result, below);
                self.scope.push(it.iter_var.clone());
                self.visit(&it.loop_cond, below);
                self.visit(&it.loop_step, below);
                self.scope.truncate(outside);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr, depth: usize) {
        if !functions::is_known(call) {
            self.undeclared(id, &call.func_name);
        }
        if functions::qualified(call).is_none()
            && let Some(target) = &call.target
        {
            self.visit(target, depth);
        }
        call.args.iter().for_each(|arg| self.visit(arg, depth));
    }

    fn entry(&mut self, entry: &EntryExpr, depth: usize) {
        match entry {
            EntryExpr::MapEntry(it) => {
                self.visit(&it.key, depth);
                self.visit(&it.value, depth);
            }
            EntryExpr::StructField(it) => self.visit(&it.value, depth),
        }
    }

    fn variable(&mut self, id: u64, name: &str) {
        let declared = self.scope.iter().any(|known| known == name) || functions::TYPES.contains(&name);
        if !declared {
            self.undeclared(id, name);
        }
    }

    /// The message of cel-go.
    fn undeclared(&mut self, id: u64, name: &str) {
        self.error(id, &format!("undeclared reference to '{name}' (in container '')"));
    }

    fn error(&mut self, id: u64, what: &str) {
        let start = self.source.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.source.source.get(..start).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count());
        let mut text = format!("ERROR: <input>:{}:{}: {what}", line + 1, column + 1);
        if let Some(snippet) = self.source.source.lines().nth(line) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n | {snippet}\n | {}^", ".".repeat(column));
        }
        self.errors.push(text);
    }
}

fn qualified_name(it: &IdedExpr) -> Option<String> {
    match &it.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}
