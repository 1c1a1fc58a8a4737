#!/usr/bin/env python3
"""Known answers for the scrambles, by Python's hashlib alone. Prints Rust for tests/it/vectors.rs.

Ed25519 is computed here from its definition (RFC 8032, section 5.1) with Python's integers, since MariaDB's
client_ed25519 takes SHA512(password) as the expanded key, which libraries do not offer.
"""
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


P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x, y = a
    u, v = b
    k = D * x * u * y * v % P
    return (
        (x * v + u * y) * pow(1 + k, P - 2, P) % P,
        (y * v + x * u) * pow(1 - k, P - 2, P) % P,
    )


def times(n, point):
    out = (0, 1)
    while n:
        if n & 1:
            out = add(out, point)
        point = add(point, point)
        n >>= 1
    return out


def base():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x % 2 else x, y)


def encode(point):
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def sign(expanded, message):
    scalar = int.from_bytes(expanded[:32], "little") & ~7 & (1 << 254) - 1 | 1 << 254
    public = encode(times(scalar, base()))
    r = int.from_bytes(hashlib.sha512(expanded[32:] + message).digest(), "little") % L
    commitment = encode(times(r, base()))
    k = int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little") % L
    return commitment + ((r + k * scalar) % L).to_bytes(32, "little")


def parsec(password, server, client, iterations, salt):
    seed = hashlib.pbkdf2_hmac("sha512", password, salt, iterations, 32)
    return sign(hashlib.sha512(seed).digest(), server + client)


# RFC 8032, section 7.1, test 2: the arithmetic above is right.
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
assert sign(hashlib.sha512(SEED).digest(), b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540a2b27b54")

NONCES = [bytes(range(32)), bytes(255 - i for i in range(31)) + b"\0"]
SALT = bytes(range(100, 118))
print("\n/// Password, server's nonce, client_ed25519's answer, parsec's (nonce reversed, 2048 iterations, salt 100..118).")
print("pub const ED25519: &[(&str, &str, &str, &str)] = &[")
for nonce in NONCES:
    for password in PASSWORDS[:3]:
        plain = sign(hashlib.sha512(password).digest(), nonce)
        row = (password, nonce, plain, parsec(password, nonce, nonce[::-1], 2048, SALT))
        print("    (\n" + "".join(f'        "{part.hex()}",\n' for part in row) + "    ),")
print("];")
