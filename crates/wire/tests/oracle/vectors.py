#!/usr/bin/env python3
"""Known answers for the scrambles, by Python's hashlib alone. Prints Rust for tests/it/vectors.rs."""
import hashlib


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def native(password, scramble):
    once = hashlib.sha1(password).digest()
    return xor(once, hashlib.sha1(scramble + hashlib.sha1(once).digest()).digest())


def caching_sha2(password, scramble):
    once = hashlib.sha256(password).digest()
    return xor(once, hashlib.sha256(hashlib.sha256(once).digest() + scramble).digest())


SCRAMBLES = [bytes(range(1, 21)), b"aBcDeFgHiJkLmNoPqRsT", bytes((i * 37 + 11) % 127 + 1 for i in range(20))]
PASSWORDS = [b"x", b"secret", "pässwörd ☃".encode(), b"p" * 200]

print("pub const SCRAMBLES: &[(&str, &str, &str, &str)] = &[")
for scramble in SCRAMBLES:
    for password in PASSWORDS:
        row = (password, scramble, native(password, scramble), caching_sha2(password, scramble))
        print("    (\n" + "".join(f'        "{part.hex()}",\n' for part in row) + "    ),")
print("];")
