"""Locks of a mortise agent on this machine, with nothing but the standard library. Install the
package in this directory, or copy this file.

    with Mortise("unix:/run/mortise.sock") as locks:           # or "127.0.0.1:7948"
        with locks.lock("orders/42", wait_seconds=30) as lock:  # Busy if it is not granted in time
            charge(token=lock.token)       # a resource that compares tokens is safe at all times

The agent ends all locks of a Mortise when it is closed or when this process dies. In the second
case a lock with lock_delay_seconds stays taken for that time. A Mortise may be used by several
threads. The agent describes its whole interface at /v1/openapi.json.
"""
import base64, http.client, json, socket, urllib.parse


class MortiseError(Exception): pass
class Busy(MortiseError): pass     # the lock is held by another, or the data has changed
class Lost(MortiseError): pass     # the lock or the lease has ended
class InDoubt(MortiseError): pass  # the lock is not held now, and may be good again: see Lock.regain
class Denied(MortiseError): pass   # the secret does not grant this
class NotReady(MortiseError): pass # the agent cannot answer now: try again later


KINDS = {"busy": Busy, "changed": Busy, "kept": Busy, "lost": Lost, "no lease": Lost, "no lock": Lost,
         "in doubt": InDoubt, "denied": Denied, "no token": Denied, "forbidden": Denied, "not ready": NotReady}


class Mortise:
    """A lease of the agent. timeout is in seconds and limits each step of a call, so it must be
    longer than wait_seconds. token is one of the agent's tokens, or a derived secret."""

    def __init__(self, agent, name="python", timeout=None, token=None):
        self.agent, self.timeout, self.token = agent, timeout, token
        self._held, answer = self._send("POST", "/v1/hold", {"name": name})
        self.lease = json.loads(answer.readline())["lease"]

    def _connect(self):
        if not self.agent.startswith("unix:"):
            return http.client.HTTPConnection(self.agent, timeout=self.timeout)
        conn = http.client.HTTPConnection("localhost", timeout=self.timeout)
        conn.sock = socket.socket(socket.AF_UNIX)
        conn.sock.settimeout(self.timeout)
        conn.sock.connect(self.agent[5:])
        return conn

    def _send(self, method, path, body):
        conn = self._connect()
        try:
            headers = {"Content-Type": "application/json"}
            if self.token:
                headers["Authorization"] = "Bearer " + self.token
            conn.request(method, path, json.dumps(body), headers)
            answer = conn.getresponse()
            if answer.status != 200:
                problem = json.loads(answer.read())
                raise KINDS.get(problem["kind"], MortiseError)(problem["error"])
            return conn, answer
        except BaseException:
            conn.close()
            raise

    def ask(self, path, **body):
        """Post a request, for example ask("/v1/check", key="k", token="7")."""
        return self._answer("POST", path, body)

    def look(self, path, **query):
        """Get an answer, for example look("/v1/key", key="k")."""
        return self._answer("GET", path + "?" + urllib.parse.urlencode(query), {})

    def _answer(self, method, path, body):
        conn, answer = self._send(method, path, body)
        try:
            return json.loads(answer.read())
        finally:
            conn.close()

    def lock(self, key, **terms):
        """Terms: wait_seconds=0, shared=True, upgradable=True, permits=1, of=3, keys=[...] or path="a/b"
        (with key=None), value="...", labels={...}, notice=True, sticky=True, max_waiting=10, max_hold_seconds=60,
        lock_delay_seconds=5, jeopardy_grace_seconds=300, resume=token."""
        if key is not None:
            terms["key"] = key
        if "resume" in terms:
            terms["resume"] = str(terms["resume"])
        return Lock(self, self.ask("/v1/lock", lease=self.lease, **terms))

    def campaign(self, name, value="", **terms):
        """Wait until this process leads the election. The lock is the leadership."""
        return self.lock(name, value=value, labels={"mortise.purpose": "election"}, **terms)

    def leader(self, name):
        """The leader of an election as a dict with leader, value, token and since, or None."""
        found = self.look("/v1/leader", name=name)
        return dict(found, token=int(found["token"])) if "leader" in found else None

    def get(self, key):
        """The data of a key and its revision: b"" and 0 if there is none."""
        found = self.look("/v1/data", key=key)
        return base64.b64decode(found.get("data", "")), int(found["revision"])

    def put(self, key, data, revision=0):
        """Change the data of a key if it is at this revision, and return the new one. Else Busy."""
        body = {"key": key, "data": base64.b64encode(data).decode(), "revision": str(revision)}
        return int(self.ask("/v1/put", **body)["revision"])

    def watch(self, prefix="", after="0"):
        """Yield each hold and each change of data of the keys with this prefix, without end."""
        query = urllib.parse.urlencode({"prefix": prefix, "after": after})
        conn, answer = self._send("GET", "/v1/watch?" + query, {})
        try:
            for line in answer:
                yield json.loads(line)
        finally:
            conn.close()

    def __enter__(self): return self
    def __exit__(self, *_): self.close()

    def close(self):
        try:
            self.ask("/v1/end", lease=self.lease)
        except (MortiseError, OSError):
            pass  # the lease has ended, or the agent is gone
        self._held.close()


class Lock:
    def __init__(self, locks, granted):
        self.locks, self.key, self.token = locks, granted["key"], int(granted["token"])

    def _ask(self, path, **terms):
        return self.locks.ask(path, lease=self.locks.lease, token=str(self.token), **terms)

    def held(self):
        """Ask before each effect. False means that the lock is lost, or that no answer came."""
        try:
            return self._ask("/v1/check")["held"]
        except (MortiseError, OSError):
            return False

    def wanted(self):
        """Whether another request waits for this lock, which must have been made with notice."""
        kept = self.locks.ask("/v1/keepalive", lease=self.locks.lease)["locks"]
        return any(l["token"] == str(self.token) and l.get("wanted", False) for l in kept)

    def regain(self, **terms):
        """Wait until a lock in doubt is good again, for at most wait_seconds, if given: then it is
        InDoubt. Lost means that it is lost. It needs jeopardy_grace_seconds."""
        self._ask("/v1/regain", **terms)

    def set_value(self, value):
        """Change what others see of this lock, such as its progress."""
        self._ask("/v1/value", value=value)

    def put(self, key, data, revision=0):
        """Like Locks.put, but the data changes only while this lock is held."""
        body = {"key": key, "data": base64.b64encode(data).decode(), "revision": str(revision)}
        return int(self._ask("/v1/put", **body)["revision"])

    def unlock(self): self._ask("/v1/unlock")

    def downgrade(self):
        """Make an exclusive lock shared, without releasing it."""
        self._ask("/v1/downgrade")

    def upgrade(self, **terms):
        """Make an upgradable lock exclusive. The result is another lock, with its own token: unlock
        it to step back. Terms: wait_seconds=5."""
        return Lock(self.locks, self._ask("/v1/upgrade", **terms))

    def detach(self):
        """Give up the lock, which stays taken for lock_delay_seconds: resume it by its token."""
        self._ask("/v1/detach")

    def __enter__(self): return self
    def __exit__(self, *_): self.unlock()
