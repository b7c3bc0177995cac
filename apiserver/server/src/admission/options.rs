//! The options of a request as admission shows them: CreateOptions, UpdateOptions, DeleteOptions.

use serde_json::{Map, Value};

use super::Operation;
use crate::request::delete_options::DeleteOptions;
use crate::request::query::Query;

/// Where a request's options stand.
#[derive(Clone, Copy, Debug)]
pub enum RequestOptions<'a> {
    /// In the URL, of a create, update or patch.
    Write(&'a Query),
    /// Those of a delete, which have been read.
    Delete(&'a DeleteOptions),
}

impl RequestOptions<'_> {
    /// As an object. A patch has the options of what it turns out to be (k8s.io/apiserver
    /// pkg/endpoints/handlers/patch.go, patchToUpdateOptions, patchToCreateOptions).
    pub fn to_json(self, operation: Operation) -> Value {
        let mut fields = Map::new();
        let mut put = |field: &str, value: Value| fields.insert(field.to_owned(), value);
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        put("kind", kind.into());
        put("apiVersion", "meta.k8s.io/v1".into());
        match self {
            Self::Write(query) => {
                let dry_run: Vec<&str> = query.all("dryRun").collect();
                if !dry_run.is_empty() {
                    put("dryRun", dry_run.into());
                }
                for field in ["fieldManager", "fieldValidation"] {
                    if let Some(value) = query.non_empty(field) {
                        put(field, value.into());
                    }
                }
            }
            Self::Delete(options) => fields.extend(options.to_fields()),
        }
        Value::Object(fields)
    }
}
