//! Scrambles and RSA against independent answers.

use std::io::Write;
use std::process::{Command, Stdio};

use mydyno_wire::auth;

use crate::vectors::{ED25519, SCRAMBLES};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn scrambles_are_those_of_an_independent_implementation() {
    for (password, scramble, native, caching_sha2) in SCRAMBLES {
        let (password, scramble) = (bytes(password), bytes(scramble));
        assert_eq!(auth::native_scramble(&password, &scramble).to_vec(), bytes(native));
        assert_eq!(auth::caching_sha2_scramble(&password, &scramble).to_vec(), bytes(caching_sha2));
    }
}

#[test]
fn signatures_are_those_of_the_definition() {
    let salt: Vec<u8> = (100..118).collect();
    for (password, nonce, plain, parsec) in ED25519 {
        let (password, nonce) = (bytes(password), bytes(nonce));
        assert_eq!(auth::ed25519_sign(&password, &nonce).to_vec(), bytes(plain));
        let mut client: [u8; 32] = nonce.clone().try_into().unwrap();
        client.reverse();
        assert_eq!(auth::parsec_sign(&password, &nonce, &client, 2048, &salt).to_vec(), bytes(parsec));
    }
}

fn openssl(args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is needed: install the package openssl");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {args:?} failed");
    output.stdout
}

#[test]
fn openssl_decrypts_what_was_encrypted_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().join("key.pem");
    let private = private.to_str().unwrap();
    openssl(&["genrsa", "-out", private, "2048"], b"");
    let public = String::from_utf8(openssl(&["rsa", "-in", private, "-pubout"], b"")).unwrap();
    let scramble = b"aBcDeFgHiJkLmNoPqRsT";
    let password = b"a password that is longer than its scramble\0";
    let sent = auth::rsa_encrypt(password, scramble, &public, "test").unwrap();
    let padding = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha1"];
    let args = [&["pkeyutl", "-decrypt", "-inkey", private][..], &padding].concat();
    let received = openssl(&args, &sent);
    let mixed: Vec<u8> = password.iter().zip(scramble.iter().cycle()).map(|(p, s)| p ^ s).collect();
    assert_eq!(received, mixed);
}

#[test]
fn a_key_that_is_none_and_a_password_that_is_too_long_are_refused() {
    let error = auth::rsa_encrypt(b"x\0", b"12345678", "no key", "caching_sha2_password").unwrap_err();
    assert!(error.to_string().contains("not an RSA key"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().join("key.pem");
    openssl(&["genrsa", "-out", private.to_str().unwrap(), "1024"], b"");
    let public = openssl(&["rsa", "-in", private.to_str().unwrap(), "-pubout"], b"");
    let public = String::from_utf8(public).unwrap();
    let error = auth::rsa_encrypt(&[b'x'; 200], b"12345678", &public, "caching_sha2_password").unwrap_err();
    assert!(error.to_string().contains("1024 bits"), "{error}");
}
