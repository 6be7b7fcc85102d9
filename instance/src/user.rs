//! Whose devices: an account of the host.

/// A tenant that the host does not name.
pub const DEFAULT_TENANT: &str = "default";

/// One account. Both parts are the host's own ids; this crate only compares them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct User {
    /// [`DEFAULT_TENANT`] unless the host has tenants.
    pub tenant: String,
    /// Within the tenant.
    pub id: String,
}

impl User {
    /// A user of a host without tenants.
    pub fn new(id: impl Into<String>) -> Self {
        Self::of_tenant(DEFAULT_TENANT, id)
    }

    /// A user of a host with tenants. The same id in another tenant is another user.
    pub fn of_tenant(tenant: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            tenant: tenant.into(),
            id: id.into(),
        }
    }
}
