//! The key of a question, in bytes: requests with equal keys get the same answer.

use crate::request::user::User;

use super::AuthorizationAttributes;

/// Everything that a SubjectAccessReview would carry, each text with its length before it.
pub(super) fn key(user: &User, attributes: &AuthorizationAttributes) -> Vec<u8> {
    let mut key = Vec::with_capacity(256);
    put(&mut key, &user.name);
    put(&mut key, &user.uid);
    put_all(&mut key, &user.groups);
    count(&mut key, user.extra.len());
    for (name, values) in &user.extra {
        put(&mut key, name);
        put_all(&mut key, values);
    }
    put(&mut key, &attributes.verb);
    put(&mut key, &attributes.resource);
    if attributes.resource.is_empty() {
        put(&mut key, &attributes.path);
        return key;
    }
    let AuthorizationAttributes { group, version, subresource, namespace, name, .. } = attributes;
    [group, version, subresource, namespace, name].into_iter().for_each(|text| put(&mut key, text));
    for selector in [&attributes.label_selector, &attributes.field_selector] {
        put_all(&mut key, selector.as_slice());
    }
    key
}

fn put_all(key: &mut Vec<u8>, texts: &[String]) {
    count(key, texts.len());
    texts.iter().for_each(|text| put(key, text));
}

fn put(key: &mut Vec<u8>, text: &str) {
    count(key, text.len());
    key.extend_from_slice(text.as_bytes());
}

fn count(key: &mut Vec<u8>, number: usize) {
    key.extend_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        User { name: name.into(), groups, ..User::default() }
    }

    fn about(resource: &str, name: &str, labels: Option<&str>) -> AuthorizationAttributes {
        let (resource, name) = (resource.to_owned(), name.to_owned());
        AuthorizationAttributes {
            resource,
            name,
            label_selector: labels.map(str::to_owned),
            ..AuthorizationAttributes::default()
        }
    }

    #[test]
    fn different_questions_have_different_keys() {
        let ann = user("ann", &["a", "b"]);
        let questions = [
            key(&ann, &about("pods", "x", None)),
            key(&ann, &about("podsx", "", None)),
            key(&ann, &about("pods", "x", Some(""))),
            key(&ann, &about("pods", "x", Some("a=b"))),
            key(&user("ann", &["ab"]), &about("pods", "x", None)),
            key(&user("anna", &["b"]), &about("pods", "x", None)),
            key(&ann, &AuthorizationAttributes { path: "/a".into(), ..AuthorizationAttributes::default() }),
            key(&ann, &AuthorizationAttributes { path: "/b".into(), ..AuthorizationAttributes::default() }),
        ];
        let different: std::collections::HashSet<_> = questions.iter().collect();
        assert_eq!(different.len(), questions.len());
    }
}
