"""The sealed payload with Python's `cryptography`. Driven by tests/it/interoperability.rs; the protocol is in README.md."""

import base64
import os
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

POINT, IV, TAG = 65, 12, 16
PADDED = (256, 512, 1024, 1792, 2560)


def generate():
    key = ec.generate_private_key(ec.SECP256R1())
    scalar = key.private_numbers().private_value.to_bytes(32, "big")
    return f"{encode(scalar)} {encode(point_of(key))}"


def seal(public_key, text):
    device = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(public_key))
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    iv = os.urandom(IV)
    sealed = AESGCM(derive(ephemeral, device)).encrypt(iv, pad(decode(text)), None)
    # The library puts the tag last; the payload has it first.
    ciphertext, tag = sealed[:-TAG], sealed[-TAG:]
    return encode(point_of(ephemeral) + iv + tag + ciphertext)


def open_payload(scalar, _public_key, sealed):
    payload = decode(sealed)
    if len(payload) < POINT + IV + TAG or payload[0] != 4:
        raise ValueError("not a payload")
    device = ec.derive_private_key(int.from_bytes(decode(scalar), "big"), ec.SECP256R1())
    # Refuses a point that is not on the curve.
    ephemeral = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), payload[:POINT])
    iv, rest = payload[POINT : POINT + IV], payload[POINT + IV :]
    tag, ciphertext = rest[:TAG], rest[TAG:]
    return encode(AESGCM(derive(device, ephemeral)).decrypt(iv, ciphertext + tag, None))


def derive(ours, theirs):
    shared = ours.exchange(ec.ECDH(), theirs)
    return HKDF(hashes.SHA256(), 32, None, b"sovereign-push-v1").derive(shared)


def point_of(key):
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def pad(json):
    return json.ljust(next(length for length in PADDED if len(json) <= length))


def encode(data):
    return base64.b64encode(data).decode()


def decode(text):
    return base64.b64decode(text, validate=True)


CALLS = {"generate": generate, "seal": seal, "open": open_payload}

for line in sys.stdin:
    name, *fields = line.rstrip("\n").split(" ")
    try:
        print("ok", CALLS[name](*fields), flush=True)
    except (ValueError, InvalidTag):
        print("refused", flush=True)
