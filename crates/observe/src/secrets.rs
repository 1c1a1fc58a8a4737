//! What never becomes a fact: secrets, and SQL text that users wrote.

/// Why a value that can be a secret is not in the facts.
pub const NOT_KEPT: &str = "not kept: it can hold a secret or a user's statement";

/// Names of variables and options that hold secrets or users' SQL, where no ending tells.
const NAMES: [&str; 14] = [
    "init_connect",
    "init_replica",
    "init_slave",
    "wsrep_provider_options",
    "wsrep_sst_auth",
    "s3_access_key",
    "s3_secret_key",
    "wsrep_notify_cmd",
    "authentication_ldap_simple_bind_root_pwd",
    "authentication_ldap_sasl_bind_root_pwd",
    "keyring_aws_cmk_id",
    "keyring_hashicorp_role_id",
    "file_key_management_filekey",
    "debug",
];

/// Endings of names whose values are secrets.
const ENDINGS: [&str; 9] = [
    "_password",
    "_passwd",
    "_pwd",
    "_token",
    "_secret",
    "_secret_id",
    "_passphrase",
    "_credentials",
    "_access_key",
];

/// Whether a server variable or option can hold a secret. The name may have dashes and upper case.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    // strict and policy switches that end alike say nothing secret.
    const HARMLESS: [&str; 2] = ["mysql_native_password", "disconnect_on_expired_password"];
    if HARMLESS.contains(&name.as_str()) {
        return false;
    }
    name == "password" || NAMES.contains(&name.as_str()) || ENDINGS.iter().any(|e| name.ends_with(e))
}

#[cfg(test)]
mod tests {
    use super::is_secret_variable;

    #[test]
    fn secrets_are_known_by_name_and_policies_are_not_taken_for_them() {
        for name in [
            "report_password",
            "wsrep-sst-auth",
            "Master_Password",
            "password",
            "init_connect",
            "hashicorp_key_management_token",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in [
            "password_history",
            "default_password_lifetime",
            "disconnect_on_expired_password",
            "old_passwords",
            "caching_sha2_password_digest_rounds",
            "sync_binlog",
            "ssl_key",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
