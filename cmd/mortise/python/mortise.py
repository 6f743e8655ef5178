"""Locks of a mortise agent on this machine, with nothing but the standard library. Copy this file.

    with Mortise("unix:/run/mortise.sock") as locks:           # or "127.0.0.1:7948"
        with locks.lock("orders/42", wait_seconds=30) as lock:      # raises Busy if it is not granted in time
            charge(token=lock.token)                            # a resource that compares tokens is safe at all times

The agent ends all locks of a Mortise when it is closed or when this process dies. In the second case a lock with
lock_delay_seconds stays taken for that time.
"""
import http.client, json, socket


class MortiseError(Exception): pass
class Busy(MortiseError): pass
class Lost(MortiseError): pass


class Mortise:
    def __init__(self, agent, name="python", timeout=None, token=None):
        self.agent, self.timeout, self.token = agent, timeout, token
        self._held, answer = self._send("/v1/hold", {"name": name})
        self.lease = json.loads(answer.readline())["lease"]

    def _send(self, path, body):
        conn = http.client.HTTPConnection("localhost" if self.agent.startswith("unix:") else self.agent, timeout=self.timeout)
        if self.agent.startswith("unix:"):
            conn.sock = socket.socket(socket.AF_UNIX)
            conn.sock.settimeout(self.timeout)
            conn.sock.connect(self.agent[5:])
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        conn.request("POST", path, json.dumps(body), headers)
        answer = conn.getresponse()
        if answer.status != 200:
            problem = json.loads(answer.read())
            raise {"busy": Busy, "lost": Lost, "no lease": Lost, "no lock": Lost}.get(problem["kind"], MortiseError)(problem["error"])
        return conn, answer

    def ask(self, path, **body):
        conn, answer = self._send(path, body)
        try:
            return json.loads(answer.read())
        finally:
            conn.close()

    def lock(self, key, **terms):  # wait_seconds=0, shared=True, permits=1, of=3, value="...", max_hold_seconds=60, lock_delay_seconds=5
        return Lock(self, self.ask("/v1/lock", lease=self.lease, key=key, **terms))

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

    def held(self):
        """Ask before each effect. False means that the lock is lost, or that no answer came."""
        try:
            return self.locks.ask("/v1/check", lease=self.locks.lease, token=str(self.token))["held"]
        except (MortiseError, OSError):
            return False

    def unlock(self): self.locks.ask("/v1/unlock", lease=self.locks.lease, token=str(self.token))
    def __enter__(self): return self
    def __exit__(self, *_): self.unlock()
