//! A document as a tree in which every value remembers where it was written.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{ConfigError, Origin};

/// Most names in a dotted key; ours, far more than any table is deep. A tree of a document that
/// is written out is no deeper than its parser allows.
const DEEPEST: usize = 64;

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// No value (from JSON only; TOML has none).
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction or exponent.
    Float(f64),
    /// A string; dates are kept as they are written.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// A table, sorted by key.
    Table(BTreeMap<String, Node>),
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub kind: Kind,
    /// Where it was written.
    pub origin: Origin,
}

impl Node {
    /// Reads a TOML document called `name` in error messages.
    ///
    /// # Errors
    /// The first violation of TOML's syntax, with line and column.
    pub fn parse(text: &str, name: &str) -> Result<Node, ConfigError> {
        let lines = Lines::new(text, name);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let line_start = lines.starts[lines.line(at) - 1];
            let column = text[line_start..at].chars().count() + 1;
            let message = format!("column {column}: {}", error.message().replace('\n', "; "));
            ConfigError::new(Some(lines.origin(at)), "", message)
        })?;
        table_node(table.into_inner(), lines.origin(0), &lines)
    }

    /// Reads one override, `path=text`: a tree with a single leaf.
    ///
    /// `text` is a TOML value if it can be read as one, otherwise a string, so
    /// that `1GiB` and `fifo` need no quotes.
    ///
    /// # Errors
    /// If `path` is not made of keys joined by dots.
    pub fn parse_override(path: &str, text: &str) -> Result<Node, ConfigError> {
        let lines = Lines { starts: vec![0], name: None };
        let value = DeValue::parse(text).ok().and_then(|value| value_node(value, &lines, None).ok());
        let value =
            value.unwrap_or_else(|| Node { kind: Kind::String(text.to_owned()), origin: Origin::Override });
        value.nest(path)
    }

    /// A tree from JSON, as defaults are; every value has `origin`.
    pub fn from_json(value: Value, origin: &Origin) -> Node {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Boolean(value),
            Value::Number(number) => match number.as_i128() {
                Some(integer) => Kind::Integer(integer),
                None => Kind::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Kind::String(text),
            Value::Array(items) => {
                Kind::Array(items.into_iter().map(|item| Node::from_json(item, origin)).collect())
            }
            Value::Object(entries) => Kind::Table(
                entries.into_iter().map(|(key, value)| (key, Node::from_json(value, origin))).collect(),
            ),
        };
        Node { kind, origin: origin.clone() }
    }

    /// Puts the value under a dotted path.
    ///
    /// # Errors
    /// If `path` is not made of keys joined by dots, or of more than there are anywhere.
    pub fn nest(self, path: &str) -> Result<Node, ConfigError> {
        if path.split('.').any(|key| key.is_empty() || key.contains(char::is_whitespace)) {
            let message =
                format!("{path:?} is not a key; write names joined by dots, such as device.scheduler");
            return Err(ConfigError::new(Some(self.origin), "", message));
        }
        if path.split('.').nth(DEEPEST).is_some() {
            let message = format!("a key of more than {DEEPEST} names joined by dots");
            return Err(ConfigError::new(Some(self.origin), "", message));
        }
        Ok(path.rsplit('.').fold(self, |node, key| {
            let origin = node.origin.clone();
            Node { kind: Kind::Table(BTreeMap::from([(key.to_owned(), node)])), origin }
        }))
    }

    /// The value under a dotted path, if it is written.
    pub fn get(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| match &node.kind {
            Kind::Table(entries) => entries.get(key),
            Kind::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The value under a dotted path, to change.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Node> {
        path.split('.').try_fold(self, |node, key| match &mut node.kind {
            Kind::Table(entries) => entries.get_mut(key),
            Kind::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Takes a key out of a table.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        match &mut self.kind {
            Kind::Table(entries) => entries.remove(key),
            _ => None,
        }
    }

    /// The string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// An error about the table under `path` (empty for this one), or about that
    /// of its keys which the message begins with, placed where that is written.
    pub fn error_in(&self, path: &str, message: &str) -> ConfigError {
        if let Some((key, rest)) = message.split_once([':', ' ']) {
            let key = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            if self.get(&key).is_some() {
                return self.error_at(&key, rest.trim_start());
            }
        }
        self.error_at(path, message)
    }

    /// An error about the value under `path`, placed where it or the nearest
    /// enclosing table was written: what is wrong with a default is wrong beside that.
    pub fn error_at(&self, path: &str, message: impl Into<String>) -> ConfigError {
        let mut prefix = path;
        let origin = loop {
            let origin = self.get(prefix).map(|node| &node.origin);
            match (origin.filter(|origin| **origin != Origin::Default), prefix.rsplit_once('.')) {
                // What was set over a document may have been another key of that table.
                (Some(Origin::Override), _) if self.get(path).is_some() && prefix != path => break None,
                (Some(origin), _) => break Some(origin.clone()),
                (None, Some((shorter, _))) => prefix = shorter,
                (None, None) => break Some(self.origin.clone()).filter(|origin| *origin != Origin::Default),
            }
        };
        ConfigError::new(origin, path, message)
    }
}

/// Where the lines of a document begin.
struct Lines {
    starts: Vec<usize>,
    /// `None` for an override, which has no lines.
    name: Option<Arc<str>>,
}

impl Lines {
    fn new(text: &str, name: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Lines { starts, name: Some(name.into()) }
    }

    /// The line of a byte offset, counted from 1.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    fn origin(&self, offset: usize) -> Origin {
        match &self.name {
            Some(name) => Origin::Line { document: name.clone(), line: self.line(offset) },
            None => Origin::Override,
        }
    }
}

fn table_node(table: DeTable<'_>, origin: Origin, lines: &Lines) -> Result<Node, ConfigError> {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let start = key.span().start;
        let name = key.into_inner().into_owned();
        let node = value_node(value, lines, Some(start)).map_err(|error| error.within(&name))?;
        entries.insert(name, node);
    }
    Ok(Node { kind: Kind::Table(entries), origin })
}

/// `key` is where the value's key begins, the line a user looks for.
fn value_node(value: Spanned<DeValue<'_>>, lines: &Lines, key: Option<usize>) -> Result<Node, ConfigError> {
    let origin = lines.origin(key.unwrap_or(value.span().start));
    let kind = match value.into_inner() {
        DeValue::Boolean(value) => Kind::Boolean(value),
        DeValue::Integer(digits) => match i128::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(value) => Kind::Integer(value),
            Err(_) => return Err(ConfigError::new(Some(origin), "", format!("{digits} is too large"))),
        },
        DeValue::Float(digits) => {
            Kind::Float(digits.as_str().parse().expect("the parser checked the number"))
        }
        DeValue::String(text) => Kind::String(text.into_owned()),
        DeValue::Datetime(date) => Kind::String(date.to_string()),
        DeValue::Array(items) => Kind::Array(
            items.into_iter().map(|item| value_node(item, lines, None)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => return table_node(table, origin, lines),
    };
    Ok(Node { kind, origin })
}
