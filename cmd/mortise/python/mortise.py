"""Locks of a mortise agent on this machine, with nothing but the standard library. Install the
package in this directory, or copy this file.

    with Mortise("unix:/run/mortise.sock") as locks:           # or "127.0.0.1:7948"
        with locks.lock("orders/42", wait_seconds=30) as lock:  # Busy if it is not granted in time
            charge(token=lock.token)       # a resource that compares tokens is safe at all times

The agent ends all locks of a Mortise when it is closed or when this process dies. In the second
case a lock with lock_delay_seconds stays taken for that time. A Mortise may be used by several
threads. It belongs to the process that made it: after a fork, make another one in the child. The
child can ask whether a lock of its parent is held, and beat for it. Nothing that the child does, nor
its end, ends a lock of its parent.
The agent describes its whole interface at /v1/openapi.json.
"""
from __future__ import annotations

import base64, http.client, json, os, socket, urllib.parse, uuid, weakref
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Type, Union


class MortiseError(Exception): pass
class Busy(MortiseError): pass     # the lock is held by another, or the data has changed
class Lost(MortiseError): pass     # the lock or the lease has ended
class InDoubt(MortiseError): pass  # the lock is not held now, and may be good again: see Lock.regain
class Denied(MortiseError): pass   # the secret or the token does not grant this
class NotReady(MortiseError): pass # the agent is away, or cannot answer now: try again later
class TimedOut(NotReady, TimeoutError): pass # the agent has not answered within the timeout
class Forked(MortiseError): pass   # the Mortise belongs to the parent of this process


KINDS: Dict[str, Type[MortiseError]] = {
    "busy": Busy, "changed": Busy, "kept": Busy, "lost": Lost, "no lease": Lost, "no lock": Lost,
    "in doubt": InDoubt, "denied": Denied, "no token": Denied, "forbidden": Denied, "not ready": NotReady}


class Mortise:
    """A lease of the agent. timeout is in seconds and limits each step of a call, so it must be
    longer than wait_seconds. token is one of the agent's tokens, or a derived secret."""

    def __init__(self, agent: str, name: str = "python", timeout: Optional[float] = None,
                 token: Optional[str] = None) -> None:
        self.agent, self.timeout, self.token = agent, timeout, token
        self._process = os.getpid()
        # Nothing reads the lines after the first one, and unread lines would fill the socket.
        self._held, answer = self._send("POST", "/v1/hold", {"name": name, "quiet": True})
        _living.add(self)
        try:
            self.lease: str = json.loads(answer.readline())["lease"]
        except (OSError, http.client.HTTPException, ValueError) as e:
            self._held.close()
            raise self._away(e) from e

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if not self.agent.startswith("unix:"):
            return http.client.HTTPConnection(self.agent, timeout=timeout)
        conn = http.client.HTTPConnection("localhost", timeout=timeout)
        conn.sock = socket.socket(socket.AF_UNIX)
        conn.sock.settimeout(timeout)
        try:
            conn.sock.connect(self.agent[5:])
        except BaseException:
            conn.close()
            raise
        return conn

    def _away(self, e: BaseException) -> NotReady:
        if isinstance(e, TimeoutError) or isinstance(e, socket.timeout):
            return TimedOut("the agent at %s has not answered within %s s" % (self.agent, self.timeout))
        return NotReady("the agent at %s cannot be reached: %s: is it running, with -listen %s?" % (
            self.agent, e or type(e).__name__, self.agent))

    def _send(self, method: str, path: str, body: Dict[str, Any], timeout: Optional[float] = None) -> Tuple[
            http.client.HTTPConnection, http.client.HTTPResponse]:
        conn = None
        try:
            conn = self._connect(timeout or self.timeout)
            headers = {"Content-Type": "application/json"}
            if self.token:
                headers["Authorization"] = "Bearer " + self.token
            conn.request(method, path, json.dumps(body), headers)
            answer = conn.getresponse()
            if answer.status != 200:
                raise self._problem(answer)
            return conn, answer
        except BaseException as e:
            if conn:
                conn.close()
            if isinstance(e, (OSError, http.client.HTTPException)) and not isinstance(e, MortiseError):
                raise self._away(e) from e
            raise

    def _problem(self, answer: http.client.HTTPResponse) -> MortiseError:
        text = answer.read()
        try:
            problem = json.loads(text)
            return KINDS.get(problem["kind"], MortiseError)(problem["error"])
        except (ValueError, KeyError, TypeError):
            return MortiseError("%s answers with status %d, and is no agent of mortise: %.200r" % (
                self.agent, answer.status, text))

    def ask(self, path: str, /, **body: Any) -> Any:
        """Post a request, for example ask("/v1/check", key="k", token="7")."""
        return self._answer("POST", path, body)

    def look(self, path: str, /, **query: Any) -> Any:
        """Get an answer, for example look("/v1/key", key="k")."""
        return self._answer("GET", path + "?" + urllib.parse.urlencode(query), {})

    def _answer(self, method: str, path: str, body: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        conn, answer = self._send(method, path, body, timeout)
        try:
            return json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise self._away(e) from e
        finally:
            conn.close()

    def _own(self) -> None:
        if os.getpid() != self._process:
            raise Forked("this Mortise belongs to process %d, and this is its child: make a Mortise here" % self._process)

    def _granted(self, path: str, terms: Dict[str, Any]) -> Lock:
        """Ask for a lock. If the answer is lost, the request is given up by its ID, unless the
        caller has given the ID and so can make the same call again."""
        self._own()
        body = dict({"request": uuid.uuid4().hex}, lease=self.lease, **terms)
        answered = False
        try:
            try:
                granted = self._answer("POST", path, body)
                answered = True
            except MortiseError as e:
                answered = e.__cause__ is None
                raise
        finally:
            if not answered and "request" not in terms:
                self._give_up(body["request"])
        return Lock(self, granted)

    def _give_up(self, request: str) -> None:
        try:
            self._answer("POST", "/v1/unlock", {"lease": self.lease, "request": request}, max(self.timeout or 5, 1))
        except MortiseError:
            pass  # the lease has ended, or the agent is away: then the lease ends with its connection

    def lock(self, key: str, *, mode: Optional[str] = None, tree: bool = False,
             also: Sequence[Union[str, Dict[str, Any]]] = (), **terms: Any) -> Lock:
        """mode is "exclusive" (the default), "shared", "upgradable", or permits of a semaphore such as "2 of 5".
        tree=True also excludes the nodes below key: "a/b" is below "a". also has further keys, granted at the same
        moment: each is a key, or {"key": "b", "mode": "shared", "tree": True}. Terms: wait_seconds=0, value="...",
        labels={...}, notice=True, sticky=True, max_waiting=10, max_hold_seconds=60, max_idle_seconds=30 (see
        Lock.beat), lock_delay_seconds=5, jeopardy_grace_seconds=300, resume=token.

        After an exception the lock is not held, even if only the answer was lost. With request="...", an ID of at
        most 64 bytes, it may be: then the same call with the same ID returns the lock."""
        terms["key"] = key
        if mode is not None:
            terms["mode"] = mode
        if tree:
            terms["tree"] = True
        if also:
            terms["also"] = [{"key": one} if isinstance(one, str) else one for one in also]
        if "resume" in terms:
            terms["resume"] = str(terms["resume"])
        return self._granted("/v1/lock", terms)

    def ids(self, count: int = 1) -> range:
        """Unique, rising IDs, 1 to 65,536 of them."""
        first = int(self.ask("/v1/ids", count=count)["first"])
        return range(first, first + count)

    def campaign(self, name: str, value: str = "", **terms: Any) -> Lock:
        """Wait until this process leads the election. The lock is the leadership."""
        return self.lock(name, value=value, labels={"mortise.purpose": "election"}, **terms)

    def leader(self, name: str) -> Optional[Dict[str, Any]]:
        """The leader of an election as a dict with leader, value, token and since, or None."""
        found = self.look("/v1/leader", name=name)
        return dict(found, token=int(found["token"])) if "leader" in found else None

    def get(self, key: str) -> Tuple[bytes, int]:
        """The data of a key and its revision: b"" and 0 if there is none."""
        found = self.look("/v1/data", key=key)
        return base64.b64decode(found.get("data", "")), int(found["revision"])

    def put(self, key: str, data: bytes, revision: int = 0, request: Optional[str] = None) -> int:
        """Change the data of a key if it is at this revision, and return the new one. Else Busy. After NotReady the
        data may have been changed or not. With request="...", an ID of at most 64 bytes, the same call with the same
        ID then has the same result."""
        return int(self.ask("/v1/put", **_data(key, data, revision, request))["revision"])

    def watch(self, prefix: str = "", after: str = "0") -> Iterator[Dict[str, Any]]:
        """Yield each hold and each change of data of the keys with this prefix, without end."""
        query = urllib.parse.urlencode({"prefix": prefix, "after": after})
        conn, answer = self._send("GET", "/v1/watch?" + query, {})
        try:
            for line in answer:
                yield json.loads(line)
        except (OSError, http.client.HTTPException) as e:
            raise self._away(e) from e
        finally:
            conn.close()

    def __enter__(self) -> Mortise: return self
    def __exit__(self, *_: Any) -> None: self.close()

    def close(self) -> None:
        """End the lease. In a child of the process that made this Mortise, close does nothing."""
        if os.getpid() != self._process:
            return
        try:
            self.ask("/v1/end", lease=self.lease)
        except MortiseError:
            pass  # the lease has ended, or the agent is gone
        self._held.close()


def _data(key: str, data: bytes, revision: int, request: Optional[str]) -> Dict[str, str]:
    body = {"key": key, "data": base64.b64encode(data).decode(), "revision": str(revision)}
    return dict(body, request=request) if request else body


# A child that kept the connection would keep the lease of its parent after the parent's end.
_living: weakref.WeakSet[Mortise] = weakref.WeakSet()


def _forked() -> None:
    for locks in list(_living):
        locks._held.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Lock:
    def __init__(self, locks: Mortise, granted: Dict[str, Any]) -> None:
        self.locks, self.key, self.token = locks, granted["key"], int(granted["token"])

    def _ask(self, path: str, **terms: Any) -> Any:
        return self.locks.ask(path, lease=self.locks.lease, token=str(self.token), **terms)

    def _change(self, path: str, **terms: Any) -> Any:
        self.locks._own()
        return self._ask(path, **terms)

    def held(self) -> bool:
        """Ask before each effect. False means that the lock is lost, or that no answer came."""
        try:
            return bool(self._ask("/v1/check")["held"])
        except MortiseError:
            return False

    def beat(self) -> None:
        """Report that the work under this lock moves. A lock with max_idle_seconds is lost when that time passes
        without a beat, so call it for each item of the work, and not in a thread beside the work. Lost means that the
        lock is lost. A child may beat for a lock of its parent."""
        self._ask("/v1/beat")

    def wanted(self) -> bool:
        """Whether another request waits for this lock, which must have been made with notice."""
        kept = self.locks.ask("/v1/keepalive", lease=self.locks.lease)["locks"]
        return any(l["token"] == str(self.token) and l.get("wanted", False) for l in kept)

    def regain(self, **terms: Any) -> None:
        """Wait until a lock in doubt is good again, for at most wait_seconds, if given: then it is
        InDoubt. Lost means that it is lost. It needs jeopardy_grace_seconds."""
        self._change("/v1/regain", **terms)

    def set_value(self, value: str) -> None:
        """Change what others see of this lock, such as its progress."""
        self._change("/v1/value", value=value)

    def put(self, key: str, data: bytes, revision: int = 0, request: Optional[str] = None) -> int:
        """Like Mortise.put, but the data changes only while this lock is held."""
        return int(self._change("/v1/put", **_data(key, data, revision, request))["revision"])

    def unlock(self) -> None: self._change("/v1/unlock")

    def downgrade(self) -> None:
        """Make an exclusive lock shared, without releasing it."""
        self._change("/v1/downgrade")

    def upgrade(self, **terms: Any) -> Lock:
        """Make an upgradable lock exclusive. The result is another lock, with its own token: unlock
        it to step back. Terms: wait_seconds=5."""
        return self.locks._granted("/v1/upgrade", dict(terms, token=str(self.token)))

    def detach(self) -> None:
        """Give up the lock, which stays taken for lock_delay_seconds: resume it by its token."""
        self._change("/v1/detach")

    def __enter__(self) -> Lock: return self

    def __exit__(self, *_: Any) -> None:
        """Unlock the lock. In a child of the process that has it, it does nothing."""
        if os.getpid() == self.locks._process:
            self.unlock()
