"""An identity provider on this machine: its keys, a key set over HTTP, ID-JAGs, security events, and faults on
request."""

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, TypeAlias

import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from countersign.store.auth import trusted_issuers
from countersign.store.context import Store

ID_JAG = "oauth-id-jag+jwt"
SECEVENT = "secevent+jwt"
REVOKED = "https://schemas.workos.com/events/agent/auth/identity/assertion/revoked"
NAME = "Example ID"

Members: TypeAlias = dict[str, Any]
Private: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


@dataclass
class SigningKey:
    """A private key, its algorithm and its id."""

    algorithm: str
    private: Private
    kid: str

    def sign(self, message: bytes) -> bytes:
        """Return the signature in the form of JWS."""
        match self.private:
            case ec.EllipticCurvePrivateKey():
                size = (self.private.curve.key_size + 7) // 8
                digest = hashes.SHA256() if size == 32 else hashes.SHA384()
                r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(digest)))
                return r.to_bytes(size) + s.to_bytes(size)
            case rsa.RSAPrivateKey():
                pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
                how = pss if self.algorithm == "PS256" else padding.PKCS1v15()
                return self.private.sign(message, how, hashes.SHA256())
            case ed25519.Ed25519PrivateKey():
                return self.private.sign(message)

    def jwk(self) -> Members:
        """Return the public key for the key set."""
        public_members: Members = {"kid": self.kid, "alg": self.algorithm, "use": "sig"}
        match self.private:
            case ec.EllipticCurvePrivateKey():
                numbers = self.private.public_key().public_numbers()
                size = (self.private.curve.key_size + 7) // 8
                coordinates = {"x": b64(numbers.x.to_bytes(size)), "y": b64(numbers.y.to_bytes(size))}
                return {**public_members, "kty": "EC", "crv": f"P-{self.private.curve.key_size}", **coordinates}
            case rsa.RSAPrivateKey():
                public = self.private.public_key().public_numbers()
                modulus = public.n.to_bytes((public.n.bit_length() + 7) // 8)
                return {**public_members, "kty": "RSA", "n": b64(modulus), "e": b64(public.e.to_bytes(3))}
            case ed25519.Ed25519PrivateKey():
                return {
                    **public_members,
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "x": b64(self.private.public_key().public_bytes_raw()),
                }


def b64(data: bytes) -> str:
    """Encode bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@cache
def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


_MAKERS: dict[str, Callable[[], Private]] = {
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
    # Two of these are slow to generate, so one key serves both algorithms, under two ids.
    "RS256": _rsa,
    "PS256": _rsa,
}


def new_key(algorithm: str) -> SigningKey:
    """Return a new key (RSA: one for the test run)."""
    return SigningKey(algorithm, _MAKERS[algorithm](), f"{algorithm.lower()}-{uuid.uuid4().hex[:8]}")


def compact(header: Members | bytes, payload: Members | bytes, sign: Callable[[bytes], bytes]) -> str:
    """Return a compact JWS of exactly these parts."""
    parts = [
        token_part if isinstance(token_part, bytes) else json.dumps(token_part).encode()
        for token_part in (header, payload)
    ]
    message = ".".join(map(b64, parts))
    return f"{message}.{b64(sign(message.encode()))}"


@dataclass
class IdentityProvider:
    """The running provider. The answer at its key set's address can be changed while it runs: `body` replaces the key
    set, `status` and further `headers` are set, and `delay_s` passes before each of `drips` pieces."""

    issuer: str
    keys: dict[str, SigningKey]
    requests: int = 0
    paths: list[str] = field(default_factory=list)
    body: bytes | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Cache-Control": "max-age=600"})
    delay_s: float = 0.0
    drip_s: float = 0.0
    stopped: Event = field(default_factory=Event)
    stop: Callable[[], None] = lambda: None

    @property
    def jwks_uri(self) -> str:
        """The address of its key set."""
        return f"{self.issuer}/jwks.json"

    def key_set(self) -> bytes:
        """Return the key set."""
        return json.dumps({"keys": [key.jwk() for key in self.keys.values()]}).encode()

    def rotate(self, algorithm: str = "ES256") -> None:
        """Replace a key. The old key leaves the key set at once."""
        self.keys[algorithm] = new_key(algorithm)

    async def trust(self, store: Store, **members: Any) -> None:
        """Make the store trust this provider, with every algorithm unless `algorithms` names others."""
        issuer_fields = {"name": NAME, "jwks_uri": self.jwks_uri, "algorithms": tuple(self.keys), **members}
        async with store.database.transaction() as transaction:
            await trusted_issuers.add(transaction, store, self.issuer, **issuer_fields)

    def signed(self, payload: Members | bytes, header: Members | None = None, algorithm: str = "ES256") -> str:
        """Return a signed token with any payload. Given header members replace the usual members. None removes a
        member."""
        key = self.keys[algorithm]
        all_headers = {"alg": algorithm, "kid": key.kid, "typ": ID_JAG, **(header or {})}
        return compact({name: value for name, value in all_headers.items() if value is not None}, payload, key.sign)

    def claims(self, audience: str, now_s: int | None = None, **claims: Any) -> Members:
        """Return the claims of a valid ID-JAG for ann@example.com, who signed in a minute ago. Given claims replace
        these claims. None removes a claim."""
        moment_s = int(time.time()) if now_s is None else now_s
        usual_claims = {
            "iss": self.issuer,
            "sub": "user-1",
            "aud": audience,
            "client_id": "agent-1",
            "jti": uuid.uuid4().hex,
            "iat": moment_s,
            "exp": moment_s + 300,
            "auth_time": moment_s - 60,
            "email": "ann@example.com",
            "email_verified": True,
        }
        return {name: value for name, value in (usual_claims | claims).items() if value is not None}

    def mint(self, audience: str, *, algorithm: str = "ES256", header: Members | None = None, **claims: Any) -> str:
        """Return an ID-JAG for the service of this issuer identifier. `claims` are described at the method `claims`."""
        return self.signed(self.claims(audience, **claims), header, algorithm)

    def event(self, audience: str, subject: str | None = "user-1", **claims: Any) -> str:
        """Return a security event token that revokes the assertions about the subject."""
        usual_claims = {
            "iss": self.issuer,
            "aud": audience,
            "jti": uuid.uuid4().hex,
            "iat": int(time.time()),
            "sub": subject,
            "events": {REVOKED: {}},
        }
        event_claims = {name: value for name, value in (usual_claims | claims).items() if value is not None}
        return self.signed(event_claims, {"typ": SECEVENT})

    def push(self, root_url: str, token: str) -> httpx.Response:
        """Deliver an event to a running service (RFC 8935 §2)."""
        return httpx.post(f"{root_url}/healthz", content=token, headers={"Content-Type": f"application/{SECEVENT}"})


class _Handler(BaseHTTPRequestHandler):
    provider: IdentityProvider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the configured answer."""
        provider = self.provider
        provider.requests += 1
        provider.paths.append(self.path)
        provider.stopped.wait(provider.delay_s)
        body = provider.key_set() if provider.body is None else provider.body
        self.send_response(provider.status)
        for name, value in {"Content-Length": str(len(body)), **provider.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self._write(body)
        except OSError:
            self.close_connection = True

    def _write(self, body: bytes) -> None:
        drip_s = self.provider.drip_s
        for start in range(0, len(body), 1 if drip_s else max(1, len(body))):
            self.wfile.write(body[start : start + 1] if drip_s else body)
            if drip_s and self.provider.stopped.wait(drip_s):
                return

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serve_provider() -> Iterator[IdentityProvider]:
    """Run a provider on a free port of this machine, until the block ends or the provider is stopped."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    keys = {algorithm: new_key(algorithm) for algorithm in _MAKERS}
    provider = IdentityProvider(f"http://127.0.0.1:{server.server_address[1]}", keys)
    handler.provider = provider
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()

    def stop() -> None:
        provider.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()

    provider.stop = stop
    try:
        yield provider
    finally:
        if not provider.stopped.is_set():
            stop()
