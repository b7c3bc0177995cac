//! Our own kinds beside custom resources of their schemas: where a compiled-in kind is not what a custom
//! resource is, and where the rules of the two KEPs go beyond a schema.

mod creation;
mod reads;
mod writes;

use super::{Difference, each};

/// A sequence, the source of its differences, and the fields of its answers.
type DifferenceGroup = (&'static str, &'static str, &'static [(usize, &'static str)]);

pub(super) fn all() -> Vec<Difference> {
    let groups = [creation::ALL, writes::ALL, reads::ALL].concat();
    groups.into_iter().flat_map(|(sequence, source, fields)| each(sequence, source, fields)).collect()
}

const STRUCTS: &str = "the structs of a compiled-in kind are always there, and nobody owns them by themselves (seen on kube-apiserver 1.36.3)";
const AGES: &str = "the printers of compiled-in kinds give ages the type string, custom resources date (k8s.io/kubernetes pkg/printers, k8s.io/apiextensions-apiserver pkg/registry/customresource/tableconvertor)";
const NAMES: &str = "we say what the name is that of";
const CELLS: &str =
    "no JSON path makes of an object what the column shows, or what it shows where there is nothing";
const ITEMS: &str = "items of lists of a compiled-in kind carry no kind and no version of their own (seen on kube-apiserver 1.36.3)";
const CONTINUE: &str =
    "metav1.ListMeta leaves out an empty continue; the list of a custom resource is unstructured and has it";
const NULL: &str = "metadata of an empty list of custom resources has null for its items, that of compiled-in kinds an empty list, as PodDisruptionBudgets show";
const WORDS: &str = "the words of compiled-in kinds (seen on kube-apiserver 1.36.3)";
const KINDS: &str =
    "a body of another kind meets the decoder of a compiled-in kind, and the validation of a custom resource";
const TYPES: &str =
    "a value of the wrong type meets the decoder of a compiled-in kind, and the schema of a custom resource";
const KEYS: &str = "the schema of a compiled-in kind has Go's zero value for a field that is always written, so that no key is left out (k8s.io/kube-openapi, generators)";
const NAMED: &str = "validation of compiled-in kinds names the field that is the key, as of containers (k8s.io/kubernetes pkg/apis/core/validation)";
const NAME: &str = "KEP-4563: the name is the UID of the pod, which is looked at first";
const UNION: &str = "KEP-4563: exactly one member of the target must be set";
const NODES: &str = "the selector is a struct of core/v1, whose terms are what is missing (k8s.io/kubernetes pkg/apis/core/validation, ValidateNodeSelector)";
const TWICE: &str = "custom resources look at their metadata once more than the generic strategy does, and tell of each error again (k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go)";
const EMPTY: &str =
    "an empty list is left out of a Go struct (omitempty), and kept in an unstructured object";
