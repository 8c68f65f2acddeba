"""A small S3 server of the tests' own. It checks every signature by its own arithmetic, and fails as
it is told: `faults` maps a word to how often it still happens.

    with FakeS3() as s3:
        s3.environment("artifacts/prefix")
        s3.faults["slow down"] = 2

    slow down     503 SlowDown
    full          507 InsufficientStorage, for what is put there
    quota         403 QuotaExceeded, as Ceph says it
    no part       200 with an error, when parts are put together
    whole         ranges are ignored
    cut           half of the bytes, then the connection ends
    half          half of the range that was asked for, well-formed
    elsewhere     another range than the one that was asked for
    other         If-Match is ignored, and another object is there
    lost          parts are put together, and the answer is lost
    redirect      307, to nowhere
    page          503 with a page of 200 KB around it
    pair          a part is answered when another one has come
    silent        no answer at all
    clock         403 RequestTimeTooSkewed, until the client takes the server's date
"""
import hashlib
import hmac
import http.server
import re
import ssl
import threading
import time
import urllib.parse

CLOCK = 3600  # seconds that its clock is ahead with the fault "clock"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def fault(self, name):
        with self.server.lock:
            left = self.server.faults.get(name, 0)
            self.server.faults[name] = max(0, left - 1)
        return left > 0

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def date_time_string(self, timestamp=None):
        ahead = CLOCK if self.server.skewed else 0
        return super().date_time_string((timestamp or time.time()) + ahead)

    def refuse(self, status, code, words="the tests want it"):
        self.answer(status, ("<Error><Code>%s</Code><Message>%s</Message></Error>" % (
            code, words)).encode())

    def why_not_signed(self, body):
        """The words of AWS's own description of Signature Version 4."""
        found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,"
                         r" ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$",
                         self.headers.get("Authorization", ""))
        if not found:
            return "MissingSecurityHeader"
        key, day, region, names, signature = found.groups()
        if key != self.server.key:
            return "InvalidAccessKeyId"
        path, _, query = self.path.partition("?")
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&") if p)
        signed = "".join("%s:%s\n" % (n, self.headers.get(n, "").strip()) for n in names.split(";"))
        said = self.headers.get("x-amz-content-sha256", "")
        if any(n not in self.headers for n in names.split(";")):
            return "SignatureDoesNotMatch"  # as real ones do
        if said != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";")):
            return "AccessDenied"
        request = "\n".join([self.command, path, "&".join(pairs), signed, names, said])
        when = self.headers["x-amz-date"]
        scope = "/".join([day, region, "s3", "aws4_request"])
        text = "\n".join(["AWS4-HMAC-SHA256", when, scope,
                          hashlib.sha256(request.encode()).hexdigest()])
        secret = ("AWS4" + self.server.secret).encode()
        for part in (day, region, "s3", "aws4_request"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        if hmac.new(secret, text.encode(), hashlib.sha256).hexdigest() != signature:
            return "SignatureDoesNotMatch"
        now = time.time() + (CLOCK if self.server.skewed else 0)
        sent = time.mktime(time.strptime(when, "%Y%m%dT%H%M%SZ")) - time.timezone
        return None if abs(now - sent) < 900 else "RequestTimeTooSkewed"

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        with self.server.lock:
            self.server.requests.append((self.command, self.path, len(body)))
        if self.fault("silent"):
            self.server.wake.wait(300)
            self.close_connection = True
            return
        if "partNumber" in query and self.fault("pair"):
            self.server.pair.wait(300)
        why = self.why_not_signed(body)
        if why:
            self.refuse(403, why, "it is not signed as it should be")
        elif self.fault("slow down"):
            self.refuse(503, "SlowDown")
        elif self.fault("page"):
            self.answer(503, b"<html>" + 200000 * b"x")
        elif self.fault("redirect"):
            self.answer(307, Location="http://127.0.0.1:1/elsewhere")
        elif self.command in ("PUT", "POST") and self.fault("full"):
            self.refuse(507, "InsufficientStorage")
        elif self.command in ("PUT", "POST") and self.fault("quota"):
            self.refuse(403, "QuotaExceeded")
        elif not path.startswith("/" + self.server.bucket):
            self.refuse(404, "NoSuchBucket")
        else:
            with self.server.lock:
                self.answer_signed(path[len(self.server.bucket) + 2:], query, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def answer_signed(self, key, query, body):
        s = self.server
        name = self.command + ("" if not query else " " + sorted(query)[0])
        if name == "POST uploads":
            upload = "up.%d" % (len(s.requests))
            s.uploads[upload] = {}
            self.answer(200, ("<R><UploadId>%s</UploadId></R>" % upload).encode())
        elif self.command == "PUT" and query:
            etag = '"%s"' % hashlib.sha256(body).hexdigest()[:32]
            s.uploads[query["uploadId"]][int(query["partNumber"])] = (etag, body)
            self.answer(200, ETag=etag)
        elif name == "POST uploadId":
            if self.fault("no part"):
                self.refuse(200, "InternalError")
                return
            if query["uploadId"] not in s.uploads:
                self.refuse(404, "NoSuchUpload")
                return
            parts = s.uploads.pop(query["uploadId"])
            wanted = re.findall(rb"<PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag>", body)
            assert [(int(n), e.decode()) for n, e in wanted] == [
                (n, parts[n][0]) for n in sorted(parts)], "parts are listed as they were sent"
            s.store[key] = b"".join(parts[n][1] for n in sorted(parts))
            if self.fault("lost"):
                self.close_connection = True
                return
            self.answer(200, b"<R><ETag>x</ETag></R>")
        elif self.command == "DELETE":
            if "uploadId" in query:
                s.uploads.pop(query["uploadId"], None)
            else:
                s.store.pop(key, None)
            self.answer(204)
        elif self.command == "PUT":
            s.store[key] = body
            self.answer(200, ETag=self.etag(body))
        elif not key:
            self.answer(200, b"<List></List>")
        elif key not in s.store:
            self.refuse(404, "NoSuchKey")
        else:
            self.answer_bytes(s.store[key])

    @staticmethod
    def etag(body):
        return '"%s"' % hashlib.sha256(body).hexdigest()[:32]

    def answer_bytes(self, body):
        if self.command == "GET" and self.fault("other"):
            body = body[::-1]
            self.headers.replace_header("If-Match", self.etag(body))
        etag = self.etag(body)
        if self.headers.get("If-Match", etag) != etag:
            self.refuse(412, "PreconditionFailed")
            return
        span = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
        if self.command == "HEAD":
            self.answer(200, Content_Length=str(len(body)), ETag=etag)
        elif not span or self.fault("whole"):
            self.answer(200, body, ETag=etag)
        elif int(span[1]) >= len(body):
            self.refuse(416, "InvalidRange")
        else:
            at, end = int(span[1]), min(int(span[2]) + 1, len(body))
            if self.fault("elsewhere"):
                at, end = at + 1000, end + 1000
            if self.fault("half"):
                end -= (end - at) // 2
            part = body[at:end]
            cut = self.fault("cut")
            self.answer(206, part[:len(part) // 2] if cut else part, ETag=etag,
                        Content_Range="bytes %d-%d/%d" % (at, end - 1, len(body)),
                        Content_Length=str(len(part)))
            self.close_connection = self.close_connection or cut


class FakeS3(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    key, secret, bucket = "STENOTESTKEY", "steno-test-secret", "artifacts"

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.certificate = certificate  # a file with its key: https
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.lock = threading.RLock()
        self.store, self.uploads, self.faults, self.requests = {}, {}, {}, []
        self.skewed = False
        self.wake = threading.Event()
        self.pair = threading.Barrier(2)

    def handle_error(self, *who):
        pass  # clients that give up

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *why):
        self.wake.set()
        self.shutdown()
        self.server_close()

    @property
    def endpoint(self):
        return "http%s://127.0.0.1:%d" % ("s" * bool(self.certificate), self.server_address[1])

    def environment(self, where, **more):
        return dict({"STENO_BLOBS": "s3://%s?endpoint=%s" % (where, self.endpoint),
                     "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}, **more)

    def objects(self, bucket):
        assert bucket == self.bucket
        with self.lock:
            return sorted(self.store)

    def unfinished(self, bucket):
        assert bucket == self.bucket
        with self.lock:
            return sorted(self.uploads)
