"""Drives the generated Python bindings as an app would. Told a directory; prints the public key, reads payloads."""

import asyncio
import json
import os
import stat
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from sovereign_device import (
    ApnsEnvironment,
    CallError,
    DeviceKeyStore,
    DevicePlatform,
    DeviceStore,
    DeviceToken,
    InstanceClient,
    InstanceSession,
    InstanceTrust,
    KeyStoreError,
    OpenError,
    SetupError,
    StoreError,
    TokenError,
    change_file_passphrase,
)

WORK = Path(sys.argv[1])
KEY = WORK / "below" / "key"


@contextmanager
def raises(kind):
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind} was not raised")


def file_store(passphrase="one", path=KEY):
    return DeviceStore.file(str(path), passphrase)


def keys_in_a_file():
    assert file_store().existing_keys() is None
    keys = file_store().open_or_make_keys()
    assert file_store().open_or_make_keys().public_key() == keys.public_key()
    assert stat.S_IMODE(KEY.stat().st_mode) == 0o600

    with raises(StoreError.NoPassphrase):
        file_store("")
    with raises(StoreError.WrongPassphrase):
        file_store("two").open_or_make_keys()
    change_file_passphrase(str(KEY), "one", "two")
    assert file_store("two").existing_keys().public_key() == keys.public_key()
    change_file_passphrase(str(KEY), "two", "one")

    whole = KEY.read_bytes()
    for content, kind in [
        (whole[:50], StoreError.Damaged),
        (b"somebody's notes", StoreError.Foreign),
        (whole[:7] + b"\x02" + whole[8:], StoreError.Newer),
    ]:
        KEY.write_bytes(content)
        with raises(kind):
            file_store().open_or_make_keys()
        assert KEY.read_bytes() == content
    KEY.write_bytes(whole)
    KEY.chmod(0o644)
    with raises(StoreError.Exposed):
        file_store().existing_keys()
    KEY.chmod(0o600)
    with raises(StoreError.Io):
        file_store(path=KEY / "below a file").existing_keys()
    assert file_store().existing_keys().public_key() == keys.public_key()
    return keys


class OwnStore(DeviceKeyStore):
    """What an app on a phone writes over its Keychain or Keystore."""

    def __init__(self):
        self.kept = None
        self.failure = None

    def read(self):
        if self.failure:
            raise self.failure
        return self.kept

    def put_if_absent(self, entry):
        self.kept = self.kept or entry
        return self.kept

    def forget(self):
        self.kept = None


def keys_in_the_apps_own_store():
    own = OwnStore()
    store = DeviceStore.own(own)
    first = store.open_or_make_keys().public_key()
    assert store.existing_keys().public_key() == first and own.kept.startswith(b"sovereign-device-key 1 ")
    for failure in [KeyStoreError.Failed(reason="the Keychain is locked"), ValueError("not declared")]:
        own.failure = failure
        with raises(StoreError.Host):
            store.open_or_make_keys()
    own.failure = None
    own.kept = b"hunter2"
    with raises(StoreError.Foreign):
        store.open_or_make_keys()
    store.forget()
    assert store.existing_keys() is None
    assert store.open_or_make_keys().public_key() != first


def keys_where_there_is_no_store():
    with raises(StoreError.Unavailable):
        DeviceStore.system("org.example.app", "alice").open_or_make_keys()


def opens(keys, payloads):
    opened = keys.open(payloads["good"])
    assert (opened.title, opened.body, opened.url, opened.tag) == ("Ünïcode 👋", "b", "/x", "t")
    assert json.loads(opened.data_json) == {"n": 1}
    bare = keys.open(payloads["bare"])
    assert (bare.title, bare.body, bare.url, bare.tag, bare.data_json) == ("t", "", None, None, None)
    for sealed, kind in [
        (payloads["another"], OpenError.NotForThisKey),
        (payloads["nothing"], OpenError.NotANotification),
        (payloads["good"][:100], OpenError.Damaged),
        ("A" * 6000, OpenError.TooLarge),
    ]:
        with raises(kind):
            keys.open(sealed)


def tokens():
    assert DeviceToken.ios(bytes([0, 0xAB, 255])).text() == "00abff"
    assert DeviceToken.macos(b"\x01").platform() == DevicePlatform.MACOS
    assert DeviceToken.android("a:b_c-d").text() == "a:b_c-d"
    uri = "https://db5.notify.windows.com/?token=A%2f"
    assert (DeviceToken.windows(uri).text(), DeviceToken.windows(uri).platform()) == (uri, DevicePlatform.WINDOWS)
    for make, wrong, kind in [
        (DeviceToken.ios, b"", TokenError.Apns),
        (DeviceToken.android, "two words", TokenError.Fcm),
        (DeviceToken.windows, "https://example.org/", TokenError.Channel),
    ]:
        with raises(kind):
            make(wrong)


class Handler(BaseHTTPRequestHandler):
    """Answers what the test put first in line, and keeps what it was asked."""

    answers = []
    asked = []

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode()
        self.asked.append((self.command, self.path, dict(self.headers), body))
        status, headers, text = self.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


def client(base, session=None, **trust):
    return InstanceClient(base, session or InstanceSession.BEARER(token="the-session"), InstanceTrust(**trust))


def setup_errors():
    for base, trust, kind in [
        ("not an address", {}, SetupError.Address),
        ("http://127.0.0.1:1", {}, SetupError.Plaintext),
        ("http://example.org", {"plain_loopback": True}, SetupError.Plaintext),
        ("https://example.org", {"extra_certificates": ""}, SetupError.NoCertificate),
    ]:
        with raises(kind):
            client(base, **trust)
    with raises(SetupError.Session):
        client("https://example.org", InstanceSession.COOKIE(header="a=b\r\nx: y"))
    client("https://example.org")


async def registers(keys, base):
    instance = client(base, InstanceSession.COOKIE(header="sid=1"), plain_loopback=True)
    Handler.answers.append((200, {}, '{"ok":true}'))
    sandbox = DeviceToken.ios(b"\xab\xcd").in_environment(ApnsEnvironment.SANDBOX)
    await instance.register(sandbox, keys)
    command, path, headers, body = Handler.asked.pop()
    assert (command, path) == ("POST", "/api/account/push-device-token")
    assert headers["cookie"] == "sid=1"
    key = keys.public_key()
    assert json.loads(body) == {"platform": "ios", "deviceToken": "abcd", "publicKey": key, "environment": "sandbox"}

    devices = '[{"id":"7","platform":"ios","createdAt":1700000000,"lastUsedAt":null}]'
    Handler.answers.append((200, {}, '{"relayEnabled":true,"devices":' + devices + "}"))
    known = await instance.registrations()
    (device,) = known.devices
    assert known.relay_enabled and (device.id, device.platform) == ("7", DevicePlatform.IOS)
    assert (device.created_at, device.last_used_at) == (1700000000, None)

    Handler.answers += [(200, {}, '{"ok":true}'), (404, {}, '{"error":"not_found"}')]
    assert await instance.revoke("7") is True
    assert await instance.revoke("8") is False
    assert [asked[:2] for asked in Handler.asked[-2:]] == [
        ("DELETE", "/api/account/push-device-token/7"),
        ("DELETE", "/api/account/push-device-token/8"),
    ]


async def call_errors(keys, base):
    instance = client(base, plain_loopback=True)
    token = DeviceToken.android("t")
    for answer, kind in [
        ((401, {}, "{}"), CallError.Unauthenticated),
        ((503, {}, '{"error":"not_configured"}'), CallError.PushOff),
        ((302, {"location": base + "/elsewhere"}, ""), CallError.Unreadable),
        ((200, {}, "<html>"), CallError.Unreadable),
    ]:
        Handler.answers.append(answer)
        with raises(kind):
            await instance.register(token, keys)
    assert not Handler.answers and Handler.asked[-1][1] != "/elsewhere"

    Handler.answers.append((429, {"retry-after": "7"}, '{"error":"rate_limited","message":"slower"}'))
    try:
        await instance.register(token, keys)
        raise AssertionError("not refused")
    except CallError.Refused as error:
        said = (error.status, error.code, error.reason, error.retry_after_seconds, error.is_retryable)
        assert said == (429, "rate_limited", "slower", 7, True)


async def unreachable(keys, base):
    with raises(CallError.Unreachable):
        await client(base, plain_loopback=True).register(DeviceToken.android("t"), keys)


def calls(keys):
    server = HTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        asyncio.run(registers(keys, base))
        asyncio.run(call_errors(keys, base))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    asyncio.run(unreachable(keys, base))


def main():
    keys = keys_in_a_file()
    print(keys.public_key(), flush=True)
    opens(keys, json.loads(sys.stdin.readline()))
    keys_in_the_apps_own_store()
    keys_where_there_is_no_store()
    tokens()
    setup_errors()
    calls(keys)
    file_store().forget()
    assert not os.path.exists(KEY)
    print("all as it should be")


main()
