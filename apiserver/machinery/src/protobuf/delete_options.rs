//! metav1.DeleteOptions, which Kubernetes' own clients send as protobuf.

use std::sync::LazyLock;

use super::decode::decode;
use crate::error::ApiError;
use crate::object::Object;
use crate::schema::{Field, ListType, ObjectShape, Schema, Shape};

/// Decodes DeleteOptions from their envelope, as the equivalent JSON object.
///
/// # Errors
/// 400 if the bytes are no DeleteOptions.
pub fn decode_delete_options(body: &[u8]) -> Result<Object, ApiError> {
    decode(body, &DELETE_OPTIONS)
}

/// Field numbers of k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
static DELETE_OPTIONS: LazyLock<Schema> = LazyLock::new(|| {
    let preconditions = vec![field("uid", 1, Shape::String), field("resourceVersion", 2, Shape::String)];
    let strings = Shape::List(Box::new(Schema::new("", Shape::String)), ListType::Atomic);
    structure(vec![
        field("gracePeriodSeconds", 1, Shape::Int64),
        Field { schema: structure(preconditions), ..field("preconditions", 2, Shape::Raw) },
        field("orphanDependents", 3, Shape::Boolean),
        field("propagationPolicy", 4, Shape::String),
        field("dryRun", 5, strings),
        field("ignoreStoreReadErrorWithClusterBreakingPotential", 6, Shape::Boolean),
    ])
});

fn structure(fields: Vec<Field>) -> Schema {
    Schema::new("", Shape::Object(ObjectShape { definition: "", fields, atomic: false }))
}

fn field(name: &'static str, number: u32, shape: Shape) -> Field {
    Field { name, number, required: false, always: false, pointer: None, schema: Schema::new("", shape) }
}
