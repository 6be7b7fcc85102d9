//! Enrollment of instances and rotation of their keys, on the wire.

use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, time::UnixMillis};

/// 200 of `POST /v1/enroll`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnrollAnswer {
    /// The instance's name at this relay.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub instance_id: InstanceId,
    /// The secret that every later call carries.
    pub instance_key: String,
}

/// 200 of `POST /v1/keys/rotate`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateAnswer {
    /// The instance.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub instance_id: InstanceId,
    /// The new key.
    pub instance_key: String,
    /// The old key works until then.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub previous_valid_until: UnixMillis,
}
