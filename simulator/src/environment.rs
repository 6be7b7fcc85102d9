//! The environment variables with which a relay uses the simulators instead of the real providers.

use std::path::Path;

use crate::Simulators;

impl Simulators {
    /// Everything a relay needs, WNS with a Package SID. `ca_file` is where [`Simulators::write_ca`] put the CA.
    pub fn relay_environment(&self, ca_file: &Path) -> Vec<(String, String)> {
        let options = self.wns.options();
        let mut environment = self.without_wns(ca_file);
        push(&mut environment, "WNS_PACKAGE_SID", &options.package_sid);
        push(&mut environment, "WNS_TOKEN_ENDPOINT", &self.wns.token_endpoint());
        environment
    }

    /// The same, WNS with Entra.
    pub fn relay_environment_entra(&self, ca_file: &Path) -> Vec<(String, String)> {
        let options = self.wns.options();
        let mut environment = self.without_wns(ca_file);
        push(&mut environment, "WNS_TENANT_ID", &options.tenant_id);
        push(&mut environment, "WNS_CLIENT_ID", &options.client_id);
        push(
            &mut environment,
            "WNS_TOKEN_ENDPOINT",
            &self.wns.entra_token_endpoint(),
        );
        environment
    }

    fn without_wns(&self, ca_file: &Path) -> Vec<(String, String)> {
        let (key, options) = (self.apns.key(), self.apns.options());
        [
            ("APNS_KEY", key.pem),
            ("APNS_KEY_ID", key.key_id),
            ("APNS_TEAM_ID", options.team_id.clone()),
            ("APNS_BUNDLE_ID", options.bundle_id.clone()),
            ("APNS_BUNDLE_ID_MACOS", options.bundle_id_macos.clone()),
            ("APNS_ENDPOINT", self.apns.endpoint()),
            ("APNS_SANDBOX_ENDPOINT", self.apns_sandbox.endpoint()),
            ("FCM_ENDPOINT", self.fcm.endpoint()),
            ("FCM_SERVICE_ACCOUNT_JSON", self.fcm.service_account_json()),
            ("WNS_CLIENT_SECRET", self.wns.options().client_secret.clone()),
            ("WNS_CHANNEL_HOST_SUFFIX", "localhost".to_owned()),
            ("RELAY_EXTRA_CA_FILE", ca_file.to_string_lossy().into_owned()),
            ("RELAY_ALLOW_TEST_ENDPOINTS", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

fn push(environment: &mut Vec<(String, String)>, name: &str, value: &str) {
    environment.push((name.to_owned(), value.to_owned()));
}
