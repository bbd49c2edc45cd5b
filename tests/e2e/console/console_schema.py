"""console_schema.py ORIGIN SCHEMA: a proxy in front of the local cloud that holds every
query of a batch against Google's discovery document.  Prints its own address, then a line
for each part; ends when standard input does."""
import http.server
import json
import sys
import threading
import urllib.request

origin, path = sys.argv[1:3]
document = json.load(open(path, encoding="utf-8"))
schemas = document["schemas"]
base = "/" + document["resources"]["searchanalytics"]["methods"]["query"]["path"].split("{")[0]
parameters = set(document["parameters"])
lock = threading.Lock()


def problems(value, schema, where):
    if "$ref" in schema:
        schema = schemas[schema["$ref"]]
    kind = schema.get("type")
    if kind == "object":
        if not isinstance(value, dict):
            return [where + " is no object"]
        known = schema.get("properties", {})
        found = [f"{where}.{name} is unknown" for name in value if name not in known]
        for name in value:
            if name in known:
                found += problems(value[name], known[name], where + "." + name)
        return found
    if kind == "array":
        if not isinstance(value, list):
            return [where + " is no array"]
        return [p for i, v in enumerate(value) for p in problems(v, schema["items"], f"{where}[{i}]")]
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
    if not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool)):
        return [f"{where} is not of type {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} is {value}, not one of {schema['enum']}"]
    return []


def check_part(part):
    head, _, rest = part.partition("\r\n\r\n")
    line = rest.split("\r\n", 1)[0].split(" ")
    body = rest.split("\r\n\r\n", 1)[1].strip()
    target, _, query = line[1].partition("?")
    found = [] if "Content-ID: <" in head else ["no Content-ID"]
    if line[0] != "POST" or not target.startswith(base) or not target.endswith("/searchAnalytics/query"):
        found.append("wrong method or path: " + " ".join(line))
    if "/" in target[len(base):-len("/searchAnalytics/query")]:
        found.append("the site is not encoded: " + target)
    found += ["parameter " + p for p in query.split("&") if p and p.split("=")[0] not in parameters]
    return found + problems(json.loads(body), {"$ref": "SearchAnalyticsQueryRequest"}, "request")


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        boundary = self.headers["Content-Type"].split("boundary=")[1]
        for part in body.decode("utf-8").split("--" + boundary)[1:-1]:
            found = check_part(part)
            with lock:
                print("part", "good" if not found else "; ".join(found), flush=True)
        self.forward(body)

    def do_GET(self):
        self.forward(None)

    def forward(self, body):
        request = urllib.request.Request(origin + self.path, data=body)
        for name in ("Content-Type", "Authorization"):
            if name in self.headers:
                request.add_header(name, self.headers[name])
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
