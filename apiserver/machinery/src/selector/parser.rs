//! The grammar of label selectors, with Kubernetes' messages.

use std::collections::BTreeSet;

use super::labels::{Operator, Requirement, key_error};
use super::lexer::{SelectorToken, tokens};
use super::{TERMS_MAX, too_many_terms};
use crate::field::Path;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = SelectorParser { tokens: tokens(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            SelectorToken::End => return Ok(requirements),
            token if starts_requirement(token) => {
                let requirement =
                    parser.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                requirements.push(requirement);
            }
            token => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", token.text()));
            }
        }
        if requirements.len() > TERMS_MAX {
            return Err(too_many_terms());
        }
        parser.separator()?;
    }
}

struct SelectorParser<'a> {
    tokens: Vec<SelectorToken<'a>>,
    position: usize,
}

impl<'a> SelectorParser<'a> {
    fn peek(&self) -> SelectorToken<'a> {
        self.tokens.get(self.position).copied().unwrap_or(SelectorToken::End)
    }

    fn take(&mut self) -> SelectorToken<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// Parses `,` before another requirement, or the end.
    fn separator(&mut self) -> Result<(), String> {
        match self.peek() {
            SelectorToken::End => Ok(()),
            SelectorToken::Symbol(",") => {
                self.take();
                let next = self.peek();
                let error = format!("found '{}', expected: identifier after ','", next.text());
                if starts_requirement(next) { Ok(()) } else { Err(error) }
            }
            token => Err(format!("found '{}', expected: ',' or 'end of string'", token.text())),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == SelectorToken::Symbol("!");
        if absent {
            self.take();
        }
        let token = self.take();
        let key = token.word().ok_or_else(|| format!("found '{}', expected: identifier", token.text()))?;
        if let Some(error) = key_error(key, &Path::default()) {
            return Err(error.to_string());
        }
        if absent {
            return Requirement::new(key, Operator::DoesNotExist, BTreeSet::new());
        }
        if matches!(self.peek(), SelectorToken::End | SelectorToken::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, BTreeSet::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?.to_owned()]),
        };
        Requirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.take() {
            SelectorToken::In(_) => Operator::In,
            SelectorToken::NotIn(_) => Operator::NotIn,
            SelectorToken::Symbol("=" | "==") => Operator::Equals,
            SelectorToken::Symbol("!=") => Operator::NotEquals,
            SelectorToken::Symbol(">") => Operator::GreaterThan,
            SelectorToken::Symbol("<") => Operator::LessThan,
            token => return Err(format!("found '{}', expected: {OPERATORS}", token.text())),
        })
    }

    fn exact_value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), SelectorToken::End | SelectorToken::Symbol(",")) {
            return Ok("");
        }
        let token = self.take();
        token.word().ok_or_else(|| format!("found '{}', expected: identifier", token.text()))
    }

    /// Parses `(a,b)`; an empty position is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.take() {
            SelectorToken::Symbol("(") => (),
            token => return Err(format!("found '{}' expected: '('", token.text())),
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                SelectorToken::Symbol("," | ")") => "",
                token if token.word().is_some() => self.take().text(),
                token if values.is_empty() => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", token.text()));
                }
                token => return Err(format!("found '{}', expected: ',', or identifier", token.text())),
            };
            values.insert(value.to_owned());
            match self.take() {
                SelectorToken::Symbol(")") => return Ok(values),
                SelectorToken::Symbol(",") => (),
                token => return Err(format!("found '{}', expected: ',' or ')'", token.text())),
            }
        }
    }
}

fn starts_requirement(token: SelectorToken<'_>) -> bool {
    token.word().is_some() || token == SelectorToken::Symbol("!")
}
