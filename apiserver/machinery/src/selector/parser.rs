//! The grammar of label selectors, with Kubernetes' messages.

use std::collections::BTreeSet;

use super::labels::{Operator, Requirement, key_error};
use super::lexer::{Token, tokens};
use super::{TERMS_MAX, too_many_terms};
use crate::field::Path;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = SelectorParser { tokens: tokens(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(requirements),
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
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> SelectorParser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// Parses `,` before another requirement, or the end.
    fn separator(&mut self) -> Result<(), String> {
        match self.peek() {
            Token::End => Ok(()),
            Token::Symbol(",") => {
                self.take();
                let next = self.peek();
                let error = format!("found '{}', expected: identifier after ','", next.text());
                if starts_requirement(next) { Ok(()) } else { Err(error) }
            }
            token => Err(format!("found '{}', expected: ',' or 'end of string'", token.text())),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Symbol("!");
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
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
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
            Token::In(_) => Operator::In,
            Token::NotIn(_) => Operator::NotIn,
            Token::Symbol("=" | "==") => Operator::Equals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            token => return Err(format!("found '{}', expected: {OPERATORS}", token.text())),
        })
    }

    fn exact_value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        let token = self.take();
        token.word().ok_or_else(|| format!("found '{}', expected: identifier", token.text()))
    }

    /// Parses `(a,b)`; an empty position is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.take() {
            Token::Symbol("(") => (),
            token => return Err(format!("found '{}' expected: '('", token.text())),
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                Token::Symbol("," | ")") => "",
                token if token.word().is_some() => self.take().text(),
                token if values.is_empty() => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", token.text()));
                }
                token => return Err(format!("found '{}', expected: ',', or identifier", token.text())),
            };
            values.insert(value.to_owned());
            match self.take() {
                Token::Symbol(")") => return Ok(values),
                Token::Symbol(",") => (),
                token => return Err(format!("found '{}', expected: ',' or ')'", token.text())),
            }
        }
    }
}

fn starts_requirement(token: Token<'_>) -> bool {
    token.word().is_some() || token == Token::Symbol("!")
}
