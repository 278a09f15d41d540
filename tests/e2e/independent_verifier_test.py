# SPDX-License-Identifier: Apache-2.0
"""Signatures of `muster sign` beside the in-toto project's own libraries: they accept ours and refuse every flipped byte."""
import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MUSTER_SOURCE"], "tests/support"))
import registry

PACKAGES = ["securesystemslib==1.6.0", "in-toto-attestation==0.9.3", "cryptography==50.0.2", "cffi==2.1.1", "pycparser==3.12",
            "protobuf==7.36.2"]
TREE = os.environ["MUSTER_DIST"]


def muster(*arguments, code=0):
    done = subprocess.run([os.path.join(TREE, "bin/muster"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != code:
        sys.exit(f"muster {' '.join(arguments)} ended with {done.returncode}, expected {code}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def signed_run(folder):
    share = os.path.join(TREE, "share/muster/plans")
    run, key = os.path.join(folder, "run"), os.path.join(folder, "key")
    muster("run", f"{share}/node-quick.toml", "--simulate", f"{share}/scenarios/h100x8-healthy.toml", "--out", run, "--plain")
    muster("sign", "--new-key", key)
    muster("sign", run, "--key", key)
    return run, key


def refuses(verify):
    from securesystemslib.exceptions import VerificationError
    try:
        verify()
    except (VerificationError, ValueError):
        return True
    return False


def check_envelope(run, public):
    """The DSSE envelope by securesystemslib: accepted as it is, refused with any byte of payload or signature flipped."""
    from cryptography.hazmat.primitives import serialization
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey
    with open(os.path.join(run, "signature.dsse.json"), encoding="utf-8") as file:
        data = json.load(file)
    with open(public, "rb") as file:
        loaded = serialization.load_pem_public_key(file.read())
    raw = loaded.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    key = SSlibKey.from_crypto(loaded, keyid=hashlib.sha256(raw).hexdigest())
    envelope = Envelope.from_dict(json.loads(json.dumps(data)))
    envelope.verify([key], 1)
    payload = envelope.payload
    for at in range(len(payload)):
        envelope.payload = payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1:]
        assert refuses(lambda: envelope.verify([key], 1)), f"a flipped byte {at} of the payload is accepted"
    signature = base64.b64decode(data["signatures"][0]["sig"])
    for at in range(len(signature)):
        data["signatures"][0]["sig"] = base64.b64encode(signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1:]).decode()
        flipped = Envelope.from_dict(json.loads(json.dumps(data)))
        assert refuses(lambda f=flipped: f.verify([key], 1)), f"a flipped byte {at} of the signature is accepted"
    print(f"securesystemslib accepts the envelope and refuses {len(payload)} + {len(signature)} flipped bytes")
    return payload


def check_statement(run, payload):
    """The in-toto statement by its protobuf definition; each subject is a file with that digest."""
    from google.protobuf import json_format
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement
    document = json_format.Parse(payload, statement_pb2.Statement())
    Statement.copy_from_pb(document).validate()
    names = {subject.name for subject in document.subject}
    assert {"record.json", "report.html", "junit.xml", "profile.toml"} <= names, names
    for subject in document.subject:
        with open(os.path.join(run, subject.name), "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == subject.digest["sha256"], subject.name
    print(f"in-toto-attestation accepts the statement about {len(names)} files")


def check_keys(folder, run):
    """Keys that other programs made: Ed25519 is taken, other types and encrypted ones are refused."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    own = ed25519.Ed25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    kinds = {"foreign": own.private_bytes(pem, pkcs8, plain),
             "encrypted": own.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"word")),
             "rsa": rsa.generate_private_key(65537, 2048).private_bytes(pem, pkcs8, plain),
             "foreign.pub": own.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)}
    paths = {name: os.path.join(folder, name) for name in kinds}
    for name, content in kinds.items():
        with open(os.open(paths[name], os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(content)
    for name in ("encrypted", "rsa", "foreign.pub"):
        assert "expected an Ed25519 private key" in muster("sign", run, "--key", paths[name], code=2), name
    muster("sign", run, "--key", paths["foreign"])  # a second signature
    muster("verify", run, "--key", paths["foreign.pub"], "--key", os.path.join(folder, "key.pub"))
    print("keys of another library are taken; encrypted, RSA and public ones are refused")


def main():
    if "--inside" not in sys.argv:
        try:
            python = registry.environment(os.path.join(os.environ["MUSTER_BUILD"], "attest-python"), PACKAGES)
        except registry.Unavailable as why:
            print(why)
            return 1 if os.environ.get("CI") else 77
        return subprocess.run([python, "-B", __file__, "--inside"], check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        run, key = signed_run(folder)
        check_statement(run, check_envelope(run, key + ".pub"))
        check_keys(folder, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
