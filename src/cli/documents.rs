//! Files of resources: YAML or JSON, as people keep them for Envoy.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Failure;

/// Every resource in these files, in order; `-` is stdin.
///
/// A file holds one document or several; a document is a resource, a list of them, or an object with the list `resources`, which
/// is what Envoy reads from a file.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for file in files {
        for document in parse(file, &text(file)?)? {
            found.extend(resources_in(document));
        }
    }
    Ok(found)
}

fn text(file: &Path) -> Result<String, Failure> {
    let read = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|fault| {
        Failure::usage(format!("cannot read {}", file.display()))
            .because(fault)
            .hint("name a file of resources in YAML or JSON, or - for stdin")
    })
}

/// JSON is tried first where it looks like it, because its faults are then named in its own words.
fn parse(file: &Path, text: &str) -> Result<Vec<Value>, Failure> {
    if text.trim_start().starts_with(['{', '[']) {
        let documents = serde_json::Deserializer::from_str(text).into_iter().collect();
        if let Ok(documents) = documents {
            return Ok(documents);
        }
    }
    serde_saphyr::from_multiple(text).map_err(|fault| {
        Failure::usage(format!("{} is neither YAML nor JSON", file.display()))
            .because(fault)
            .hint("separate documents by a line of ---")
    })
}

fn resources_in(document: Value) -> Vec<Value> {
    match document {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        Value::Object(mut fields) if !fields.contains_key("@type") => match fields.remove("resources") {
            Some(Value::Array(items)) => items,
            _ => vec![Value::Object(fields)],
        },
        single @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => vec![single],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn found(text: &str) -> Vec<Value> {
        let documents = parse(Path::new("-"), text).unwrap();
        documents.into_iter().flat_map(resources_in).collect()
    }

    #[test]
    fn a_file_is_one_resource_or_many_in_either_language() {
        let (a, b) = (json!({ "@type": "t", "name": "a" }), json!({ "@type": "t", "name": "b" }));
        let (one, both) = ([a.clone()], [a.clone(), b.clone()]);
        assert_eq!(found("\"@type\": t\nname: a\n"), one);
        assert_eq!(found("---\n'@type': t\nname: a\n---\n# nothing\n---\n'@type': t\nname: b\n"), both);
        assert_eq!(found("- '@type': t\n  name: a\n- {'@type': t, name: b}\n"), both);
        assert_eq!(found("resources:\n- '@type': t\n  name: a\n- '@type': t\n  name: b\n"), both);
        assert_eq!(found(&json!({ "resources": both }).to_string()), both);
        assert_eq!(found(&json!(both).to_string()), both);
        assert_eq!(found(&format!("{a}\n{b}\n")), both);
        assert_eq!(found("{'@type': t, name: a}"), one);
        assert!(found("").is_empty());
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(parse(Path::new("-"), "a: [1, 2").is_err());
        assert!(parse(Path::new("-"), "{\"a\": 1").is_err());
    }
}
