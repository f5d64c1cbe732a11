"""Signatures follow Standard Webhooks: its published test vector, and its own library as the receiver."""

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.webhooks import signatures

# The example of the specification and of the tests of its libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_signature_equals_the_published_test_vector() -> None:
    signature_headers = signatures.signature_headers(
        [SECRET], MESSAGE, Instant(TIMESTAMP * clock.SECOND + 999_999), BODY
    )

    assert signature_headers == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": str(TIMESTAMP),
        "webhook-signature": SIGNATURE,
    }


@given(st.text(max_size=200), st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True))
def test_the_library_signs_as_we_do(text: str, message: str) -> None:
    body = text.encode(errors="replace")
    secret = signatures.new_signing_secret()

    signature_headers = signatures.signature_headers([secret], message, Instant(TIMESTAMP * clock.SECOND), body)

    library_signature = Webhook(secret).sign(message, datetime.fromtimestamp(TIMESTAMP, UTC), body.decode())
    assert signature_headers["webhook-signature"] == library_signature


def test_each_of_two_secrets_verifies_while_both_sign() -> None:
    old, new = signatures.new_signing_secret(), signatures.new_signing_secret()
    signature_headers = signatures.signature_headers([new, old], MESSAGE, clock.now(), BODY)

    for secret in (old, new):
        assert Webhook(secret).verify(BODY, signature_headers) == {"test": 2432232314}
    with pytest.raises(WebhookVerificationError):
        Webhook(signatures.new_signing_secret()).verify(BODY, signature_headers)


@pytest.mark.parametrize("changed_part", ["webhook-id", "webhook-timestamp", "body"])
def test_nothing_that_is_signed_can_be_changed(changed_part: str) -> None:
    secret = signatures.new_signing_secret()
    signature_headers = signatures.signature_headers([secret], MESSAGE, clock.now(), BODY)
    body = BODY
    if changed_part == "body":
        body = BODY.replace(b"4", b"5")
    else:
        signature_headers[changed_part] = signature_headers[changed_part][:-1] + (
            "1" if signature_headers[changed_part][-1] != "1" else "2"
        )

    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, signature_headers)


def test_a_secret_is_32_random_bytes() -> None:
    signing_secrets = {signatures.new_signing_secret() for _ in range(100)}

    assert len(signing_secrets) == 100
    assert all(len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32 for secret in signing_secrets)


def test_an_invalid_secret_is_refused_for_signing() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        signatures.signature_headers(["whsec_not base64!"], MESSAGE, clock.now(), BODY)
