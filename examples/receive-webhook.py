"""
An example of the receiver of a webhook sink, in Python's standard library:

  WEBHOOK_SECRET=whsec_… PORT=8081 python3 examples/receive-webhook.py
  CATCHWORD_SINK_SHOP='webhook+http://127.0.0.1:8081/#allow=private' CATCHWORD_SINK_SHOP_SECRET=whsec_… npx catchword relay

The last request may come twice, so handle an event so that a second time does no harm.
"""

import base64
import hashlib
import hmac
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"), validate=True)
MAX_AGE_SECONDS = 300
MAX_BYTES = 64_000_000


def is_signed(headers, body):
    """Checks the signature as Standard Webhooks describes it: https://www.standardwebhooks.com"""
    sent_at = headers.get("webhook-timestamp", "")
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > MAX_AGE_SECONDS:
        return False
    content = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
    # While the secret is changed, there is a signature for each.
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


def handle(event):
    data = event["data"]
    if data["op"] in ("created", "restored"):
        print(f"{data['vbid']}: sell {data['product'].get('title')}", flush=True)
    elif data["op"] == "updated":
        print(f"{data['vbid']}: changed {', '.join(data['changed'])}", flush=True)
    elif data["op"] == "removed":
        print(f"{data['vbid']}: do not sell any more", flush=True)


class Receiver(BaseHTTPRequestHandler):
    # Keeps the connection open between requests.
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", "0"))
        if length > MAX_BYTES:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        if not is_signed(self.headers, body):
            return self.answer(401)
        try:
            for event in json.loads(body):
                handle(event)
        except (KeyError, TypeError, ValueError):
            # catchword parks what is not an event. It retries after 401 and 500.
            return self.answer(400)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8081"))), Receiver) as server:
    print(f"listening on {server.server_address[1]}", flush=True)
    server.serve_forever()
