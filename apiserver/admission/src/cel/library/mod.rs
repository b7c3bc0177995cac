//! The functions that Kubernetes adds to CEL (k8s.io/apiserver pkg/cel/library), one file for each library.
//!
//! The crate `kube-cel` (0.8) has these functions too, for `cel` 0.13, which lacks the environment of declared
//! overloads through which costs are charged here. Besides, its results are not the host's, for example:
//! - `format`: writes lists as JSON, and panics at a large precision.
//! - `lists`: a sum overflows unchecked.
//! - `named_format`: `format.named` returns no optional.
//! - `network`: reads the prefix length `/08`.
//! - `regex`: patterns are those of the crate `regex`, not of RE2.
//! - `strings`: `replace` with a negative limit replaces nothing.
//! - `url`: the URL standard's parser drops default ports and `..`, lowers hosts.

mod authorizer;
mod format;
mod lists;
mod network;
mod quantity;
mod re2;
pub mod regex;
mod semantic_version;
pub mod strings;
mod url;

pub use authorizer::{BlockingAuthorizer, ResourceCheck, UserAuthorizer, authorizer, request_resource};

use cel::common::types::{CelList, CelString};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// Declares all libraries.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    strings::declare(env)?;
    lists::declare(env)?;
    lists::declare_sets(env)?;
    regex::declare(env)?;
    url::declare(env)?;
    quantity::declare(env)?;
    network::declare(env)?;
    semantic_version::declare(env)?;
    format::declare(env)?;
    authorizer::declare(env)
}

/// Implements an opaque CEL type: its values can be compared for equality, and be receivers of functions.
macro_rules! opaque {
    ($type:ident, $description:ident, $name:literal) => {
        $crate::cel::library::opaque!($type, $description, $name, {});
    };
    ($type:ident, $description:ident, $name:literal, indexed) => {
        $crate::cel::library::opaque!($type, $description, $name, {
            fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn cel::common::traits::Indexer + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }
        });
    };
    ($type:ident, $description:ident, $name:literal, { $($more:tt)* }) => {
        static $description: cel::common::types::Type =
            cel::common::types::Type::simple_type(cel::common::types::Kind::Opaque, $name);

        impl cel::common::value::Val for $type {
            fn get_type(&self) -> &cel::common::types::Type {
                &$description
            }

            fn cel_type() -> &'static cel::common::types::Type {
                &$description
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other.downcast_ref::<Self>().is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }

            $($more)*
        }

        impl cel::common::value::StaticVal for $type {}
    };
}
pub(crate) use opaque;

/// Returns the argument at `index` as a `T`; fails if it has another type.
pub fn argument<'a, 'b, 'v, T>(args: &'a [CowVal<'b, 'v>], index: usize) -> Result<&'a T, ExecutionError>
where
    T: cel::common::value::FromVal<'a, 'v>,
{
    let found = args.get(index).and_then(|arg| arg.as_ref().downcast_ref::<T>());
    found.ok_or_else(|| ExecutionError::no_such_overload("", vec![]))
}

/// Returns a list of strings.
fn texts<'v>(texts: impl IntoIterator<Item = String>) -> CelList<'v> {
    let items = texts.into_iter().map(|text| Box::new(CelString::from(text)) as Box<dyn Val + 'v>);
    CelList::from(items.collect::<Vec<_>>())
}
