//! Reference documentation generated from a JSON Schema.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;

/// A policy axis that a schema reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The axis's name.
    pub axis: String,
    /// The names of its policies, in the order of their list.
    pub policies: Vec<String>,
}

/// Every policy axis that a schema reaches, sorted by name.
pub fn axes(schema: &Value) -> Vec<Axis> {
    let mut book = Book { root: schema, written: Vec::new(), axes: BTreeMap::new(), text: String::new() };
    book.table("", schema, &Value::Null);
    book.finish_axes();
    let axis = |(name, schema): (&&str, &&Value)| Axis {
        axis: name.to_string(),
        policies: tables(schema).map(policy_of).collect(),
    };
    book.axes.iter().map(axis).collect()
}

/// A Markdown reference of every key: path, type, default, meaning, with one
/// section per table and one per policy axis.
///
/// `schema` is a JSON Schema as schemars generates it.
pub fn reference(schema: &Value) -> String {
    let mut book = Book { root: schema, written: Vec::new(), axes: BTreeMap::new(), text: String::new() };
    book.table("", schema, &Value::Null);
    book.finish_axes();
    book.text
}

/// A table among the values of another.
struct Inner<'a> {
    path: String,
    schema: &'a Value,
    /// What it is if it is left out; null where nobody says that.
    default: &'a Value,
}

struct Book<'a> {
    root: &'a Value,
    /// The tables of tables written so far, and where.
    written: Vec<(&'a Value, String)>,
    axes: BTreeMap<&'a str, &'a Value>,
    text: String,
}

impl<'a> Book<'a> {
    /// Follows a reference and looks through "or null".
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        if let Some(pointer) = schema["$ref"].as_str() {
            return self.resolve(self.root.pointer(pointer.trim_start_matches('#')).unwrap_or(&Value::Null));
        }
        match &options(schema)[..] {
            [option] => self.resolve(option),
            _ => schema,
        }
    }

    /// Writes the section of a table, then those of the tables in it. `default` is what the
    /// table is if it is left out, where whoever holds it says that.
    fn table(&mut self, path: &str, schema: &'a Value, default: &'a Value) {
        if !path.is_empty() {
            let _ = writeln!(self.text, "## `{path}`\n");
        }
        if let Some(description) = schema["description"].as_str() {
            let _ = writeln!(self.text, "{description}\n");
        }
        let inner = self.rows(path, schema, default);
        if !inner.is_empty() {
            self.written.push((schema, path.to_owned()));
        }
        for Inner { path, schema, default } in inner {
            self.table(&path, schema, default);
        }
    }

    /// Writes one row per key; returns the tables among the values.
    fn rows(&mut self, path: &str, schema: &'a Value, default: &'a Value) -> Vec<Inner<'a>> {
        let mut inner = Vec::new();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut rows = String::new();
        for (key, property) in properties.filter(|(key, _)| *key != crate::merge::POLICY) {
            let target = self.resolve(property);
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if let Some(axis) = target["x-axis"].as_str() {
                self.axes.insert(axis, target);
            }
            let element = self.resolve(&target["items"]);
            if let Some(axis) = element["x-axis"].as_str() {
                self.axes.insert(axis, element);
            }
            // Whoever holds the table knows better than the table's own type.
            let default = default.get(key).unwrap_or(&property["default"]);
            let table = if target["properties"].is_object() {
                Some(Inner { path: path.clone(), schema: target, default })
            } else if element["properties"].is_object() {
                Some(Inner { path: format!("{path}.N"), schema: element, default: &Value::Null })
            } else {
                None
            };
            let description = property["description"].as_str().or(target["description"].as_str());
            let mut description = one_line(description.unwrap_or_default());
            if let Some(table) = table {
                match self.written.iter().find(|(known, _)| std::ptr::eq(*known, table.schema)) {
                    Some((_, known)) => {
                        let _ = write!(description, " Keys as of `{known}`.");
                    }
                    None => inner.push(table),
                }
            }
            let _ = writeln!(
                rows,
                "| `{path}` | {} | {} | {description} |",
                self.type_of(property),
                default_of(default, target),
            );
        }
        if rows.is_empty() {
            self.text.push_str("No keys.\n\n");
        } else {
            let _ = writeln!(self.text, "| key | type | default | meaning |\n|---|---|---|---|\n{rows}");
        }
        inner
    }

    fn finish_axes(&mut self) {
        // Settings of a policy may hold further axes, which join the list.
        let mut written: Vec<&str> = Vec::new();
        while let Some((&name, &schema)) = self.axes.iter().find(|(name, _)| !written.contains(name)) {
            written.push(name);
            let _ = writeln!(self.text, "## Axis: {name}\n\n{}\n", text(&schema["description"]));
            for table in tables(schema) {
                let description = text(&table["description"]);
                let _ = writeln!(self.text, "### {name} `{}`\n\n{description}\n", policy_of(table));
                for Inner { path, schema, default } in self.rows("", table, &Value::Null) {
                    self.table(&path, schema, default);
                }
            }
        }
    }

    fn type_of(&self, property: &'a Value) -> String {
        let schema = self.resolve(property);
        if let Some(axis) = schema["x-axis"].as_str() {
            let anchor = axis.to_lowercase().replace(' ', "-").replace('/', "");
            return format!("[{axis}](#axis-{anchor})");
        }
        let options = options(schema);
        if !options.is_empty() {
            return options.into_iter().map(|option| self.type_of(option)).collect::<Vec<_>>().join(" or ");
        }
        if let Some(name) = schema["const"].as_str() {
            return format!("`\"{name}\"`");
        }
        let names = schema["enum"].as_array().or(schema["oneOf"].as_array());
        if let Some(names) = names {
            let name = |option: &Value| {
                option["const"].as_str().or(option.as_str()).map(str::to_owned).unwrap_or_else(|| {
                    option["enum"].as_array().map_or(String::new(), |names| {
                        names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\", \"")
                    })
                })
            };
            return names
                .iter()
                .map(|option| format!("`\"{}\"`", name(option)))
                .collect::<Vec<_>>()
                .join(", ");
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null")),
            kind => kind.as_str(),
        };
        if let Some(example) = schema["examples"][0].as_str() {
            return format!("string, such as `\"{example}\"`");
        }
        match kind.unwrap_or("any") {
            "array" => format!("array of {}", self.type_of(&schema["items"])),
            "object" => "table".into(),
            "integer" => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
                (Some(low), Some(high)) => format!("integer, {low} to {high}"),
                _ => "integer".into(),
            },
            kind => kind.into(),
        }
    }
}

/// The alternatives of a schema, "nothing" and the policies of an axis aside.
fn options(schema: &Value) -> Vec<&Value> {
    let options = schema["anyOf"].as_array().filter(|_| schema.get("x-axis").is_none());
    options.into_iter().flatten().filter(|option| option["type"] != "null").collect()
}

fn tables(axis: &Value) -> impl Iterator<Item = &Value> {
    axis["anyOf"].as_array().into_iter().flatten().filter(|option| option["properties"].is_object())
}

/// The name of the choice that a table of an axis stands for: its policy, or its
/// only key.
fn policy_of(table: &Value) -> String {
    match &table["properties"][crate::merge::POLICY]["const"] {
        Value::String(name) => one_line(name),
        _ => table["properties"].as_object().and_then(|keys| keys.keys().next()).cloned().unwrap_or_default(),
    }
}

fn text(value: &Value) -> String {
    one_line(value.as_str().unwrap_or_default())
}

/// The default as TOML writes it; of a table only that it is one.
fn default_of(default: &Value, target: &Value) -> String {
    match default {
        Value::Null => String::new(),
        Value::Object(table) => match table.get(crate::merge::POLICY) {
            Some(policy) => format!("`{policy}`"),
            None => String::new(),
        },
        _ if target["properties"].is_object() => String::new(),
        value => format!("`{value}`"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
