//! One expression in CEL: checked once, then asked. Bounded in size, depth and cost, and the same everywhere: it has no
//! loops, no clock, and walks no map.

use std::sync::{Arc, LazyLock};

use cel::common::ast::{Expr, IdedExpr};
use cel::{Context, Env, ExecutionError, Program, Value};
use serde::Serialize;

use super::{EndpointFacts, HookFailure};

/// The longest expression, in bytes: far above a rule that people can read. Without loops it also bounds the work.
const EXPRESSION_BYTES_MAX: usize = 1024;

/// How deep an expression may be nested: far above what people can read, far below what a stack holds.
const DEPTH_MAX: usize = 32;

/// What an expression may be made of beside names, literals and lists. Nothing here loops or grows.
const FUNCTIONS: [&str; 23] = [
    "_?_:_",
    "_&&_",
    "_||_",
    "!_",
    "_-_",
    "_+_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "_==_",
    "_!=_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "_[_]",
    "@in",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
];

/// The fields of `worker` that have fields of their own: these, or any where there is none.
const WORKER: [(&str, &[&str]); 8] = [
    ("service", &[]),
    ("id", &[]),
    ("host", &[]),
    ("verdict", &[]),
    ("metadata", &[]),
    ("monitors", &[]),
    ("locality", &["region", "zone", "sub_zone"]),
    ("endpoint", &["port", "address", "number"]),
];

/// The functions of the language, made once: an expression is evaluated with each event about a worker.
static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A checked expression.
#[derive(Debug)]
pub(super) struct Expression(Program);

impl Expression {
    /// The expression that this text is, or why it is none.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("it has {} bytes, at most {EXPRESSION_BYTES_MAX} are allowed", text.len()));
        }
        check_nesting(text)?;
        let program = LANGUAGE.compile(text).map_err(|faults| first_line(&faults.to_string()))?;
        check(program.expression(), DEPTH_MAX)?;
        Ok(Self(program))
    }

    /// What it says of an endpoint. `default` is what holds without it.
    pub(super) fn ask<D: Serialize>(
        &self,
        endpoint: &EndpointFacts<'_>,
        default: D,
    ) -> Result<Value, HookFailure> {
        let value = |fault: cel::SerializationError| HookFailure(fault.to_string());
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        context.add_variable_from_value("worker", cel::to_value(endpoint).map_err(value)?);
        context.add_variable_from_value("default", cel::to_value(default).map_err(value)?);
        self.0.execute(&context).map_err(|fault| HookFailure(explain(&fault)))
    }
}

/// A fault in words that do not depend on the order of a map.
fn explain(fault: &ExecutionError) -> String {
    if let ExecutionError::NoSuchKey(_)
    | ExecutionError::NoSuchOverload(_)
    | ExecutionError::UndeclaredReference(_) = fault
    {
        return fault.to_string();
    }
    "it cannot be evaluated: a value has a type or size that an operator does not take".to_owned()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace("ERROR: <input>:", "at ")
}

/// Keeps what the parser would nest too deep away from it.
fn check_nesting(text: &str) -> Result<(), String> {
    let (mut depth, mut run) = (0_usize, 0_usize);
    for character in text.chars() {
        depth = match character {
            '(' | '[' | '{' => depth + 1,
            ')' | ']' | '}' => depth.saturating_sub(1),
            _ => depth,
        };
        run = match character {
            '!' | '-' | '?' => run + 1,
            _ => run,
        };
        if depth > DEPTH_MAX || run > DEPTH_MAX {
            return Err(too_deep());
        }
    }
    Ok(())
}

fn too_deep() -> String {
    format!("it is nested deeper than {DEPTH_MAX}")
}

fn check(expression: &IdedExpr, depth: usize) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(too_deep()) };
    match &expression.expr {
        Expr::Literal(_) => Ok(()),
        Expr::Ident(name) if ["worker", "default"].contains(&name.as_str()) => Ok(()),
        Expr::Ident(name) => Err(format!("there is no {name}: it can look at worker and default")),
        Expr::Select(select) => {
            check_field(&select.operand.expr, &select.field)?;
            check(&select.operand, depth)
        }
        Expr::List(list) => list.elements.iter().try_for_each(|element| check(element, depth)),
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            if !FUNCTIONS.contains(&name) {
                return Err(format!("there is no function {name} here"));
            }
            call.target.iter().map(AsRef::as_ref).chain(&call.args).try_for_each(|part| check(part, depth))
        }
        Expr::Comprehension(_) => Err("loops (all, exists, map, filter) are not taken".to_owned()),
        Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
            Err("maps and messages are not taken: only names, literals and lists".to_owned())
        }
    }
}

/// Finds a field of the worker that is misspelt.
fn check_field(of: &Expr, field: &str) -> Result<(), String> {
    let known: Vec<&str> = match of {
        Expr::Ident(name) if name == "worker" => WORKER.iter().map(|(name, _)| *name).collect(),
        Expr::Select(outer) if matches!(&outer.operand.expr, Expr::Ident(name) if name == "worker") => {
            let fields = WORKER.iter().find(|(name, _)| *name == outer.field).map(|(_, fields)| *fields);
            fields.unwrap_or_default().to_vec()
        }
        Expr::Ident(_) | Expr::Select(_) | Expr::Call(_) | Expr::List(_) | Expr::Literal(_) => Vec::new(),
        Expr::Comprehension(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    };
    if known.is_empty() || known.contains(&field) {
        return Ok(());
    }
    Err(format!("there is no field {field}: there are {}", known.join(", ")))
}
