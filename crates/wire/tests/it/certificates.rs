//! Certificates for a test server, made by openssl: an authority, a server, a client, and another authority.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the files are.
pub struct Certificates {
    folder: PathBuf,
    /// Arguments of openssl for new keys.
    keys: &'static [&'static str],
}

const ELLIPTIC: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
/// For servers that know nothing newer.
const RSA: &[&str] = &["-newkey", "rsa:2048"];

impl Certificates {
    /// Makes them in `folder`.
    pub fn make(folder: &Path) -> Self {
        Self::of(folder, ELLIPTIC)
    }

    /// With RSA keys, in the form that old servers read.
    pub fn make_rsa(folder: &Path) -> Self {
        let made = Self::of(folder, RSA);
        let key = made.text("server.key");
        made.openssl(&["rsa", "-in", &key, "-out", &key, "-traditional"]);
        made
    }

    fn of(folder: &Path, keys: &'static [&'static str]) -> Self {
        let made = Self { folder: folder.to_owned(), keys };
        made.authority("ca");
        made.authority("other-ca");
        made.authority("self");
        made.signed("server", "subjectAltName=IP:127.0.0.1");
        made.signed("client", "extendedKeyUsage=clientAuth");
        made
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn authority(&self, name: &str) {
        let subject = format!("/CN={name}");
        self.new_key(&[
            "-x509",
            "-nodes",
            "-days",
            "30",
            "-subj",
            &subject,
            "-keyout",
            &self.text(&format!("{name}.key")),
            "-out",
            &self.text(&format!("{name}.pem")),
        ]);
    }

    fn signed(&self, name: &str, extension: &str) {
        let subject = format!("/CN={name}");
        let extensions = self.path(&format!("{name}.ext"));
        std::fs::write(&extensions, format!("{extension}\nbasicConstraints=CA:FALSE\n")).unwrap();
        let file = |ending: &str| self.text(&format!("{name}.{ending}"));
        self.new_key(&["-nodes", "-subj", &subject, "-keyout", &file("key"), "-out", &file("csr")]);
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &file("csr"),
            "-CA",
            &self.text("ca.pem"),
            "-CAkey",
            &self.text("ca.key"),
            "-CAcreateserial",
            "-days",
            "30",
            "-extfile",
            &file("ext"),
            "-out",
            &file("pem"),
        ]);
    }

    fn new_key(&self, args: &[&str]) {
        self.openssl(&[&["req"], self.keys, args].concat());
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn openssl(&self, args: &[&str]) {
        let output = Command::new("openssl")
            .args(args)
            .output()
            .expect("openssl is needed: install the package openssl");
        assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
