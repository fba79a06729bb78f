//! How one layer of configuration lies over another.

use std::collections::BTreeMap;

use crate::{ConfigError, Kind, Node, Origin};

/// The key that names a policy in an axis's table.
pub(crate) const POLICY: &str = "policy";

impl Node {
    /// Lays `over` over this value; what `over` says wins.
    ///
    /// Tables merge key by key. A policy axis (a bare name, or a table with a
    /// `policy`) keeps its settings only as long as its policy stays the same.
    /// A table whose keys are indices changes elements of an array. Anything
    /// else is replaced.
    ///
    /// # Errors
    /// If an index lies outside its array.
    pub fn merge(&mut self, over: Node) -> Result<(), ConfigError> {
        let Node { kind, origin } = over;
        match (&mut self.kind, kind) {
            (Kind::Table(base), Kind::Table(over)) => {
                if over.contains_key(POLICY) && policy_of(base) != policy_of(&over) {
                    self.kind = Kind::Table(over);
                } else {
                    merge_tables(base, over)?;
                }
            }
            (Kind::String(name), Kind::Table(over)) if !over.contains_key(POLICY) => {
                let policy = Node { kind: Kind::String(std::mem::take(name)), origin: self.origin.clone() };
                let mut table = BTreeMap::from([(POLICY.to_owned(), policy)]);
                merge_tables(&mut table, over)?;
                self.kind = Kind::Table(table);
            }
            (Kind::Table(base), Kind::String(name)) if policy_of(base) == Some(name.as_str()) => {}
            (Kind::Array(items), Kind::Table(over))
                if over.keys().all(|key| key.parse::<usize>().is_ok()) =>
            {
                for (key, value) in over {
                    merge_element(items, &key, value)?;
                }
            }
            (_, kind) => self.kind = kind,
        }
        self.origin = origin;
        Ok(())
    }
}

fn policy_of(table: &BTreeMap<String, Node>) -> Option<&str> {
    table.get(POLICY)?.as_str()
}

fn merge_tables(base: &mut BTreeMap<String, Node>, over: BTreeMap<String, Node>) -> Result<(), ConfigError> {
    for (key, value) in over {
        match base.get_mut(&key) {
            Some(below) => below.merge(value).map_err(|error| error.within(key))?,
            None => {
                base.insert(key, value);
            }
        }
    }
    Ok(())
}

fn merge_element(items: &mut [Node], key: &str, value: Node) -> Result<(), ConfigError> {
    let count = items.len();
    let index = key.parse::<usize>().unwrap_or(count);
    match items.get_mut(index) {
        Some(below) => below.merge(value).map_err(|error| error.within(key)),
        None => {
            let origin: Origin = value.origin;
            Err(ConfigError::new(
                Some(origin),
                key,
                format!("there are only {count} elements, counted from 0"),
            ))
        }
    }
}
