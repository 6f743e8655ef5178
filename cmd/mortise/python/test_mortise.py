"""Tests of mortise.py against a server that plays the agent: python3 -m unittest"""
import http.server, inspect, json, os, threading, typing, unittest

import mortise


class Agent(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        self.server.asked.append((self.command, path, query, json.loads(body), self.headers.get("Authorization")))
        if path in self.server.slow:
            self.server.slow[path].wait(30)
        status, text = self.server.answers.get(path, (200, "{}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = answer

    def log_message(self, *_): pass


class Tests(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
        self.server.asked, self.server.slow = [], {}
        self.server.handle_error = lambda *_: None  # a client that has gone
        self.server.answers = {"/v1/hold": (200, '{"lease":"L"}\n'), "/v1/lock": (200, '{"key":"k","token":"7"}')}
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.locks = mortise.Mortise("127.0.0.1:%d" % self.server.server_port, name="me", timeout=5, token="secret")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def last(self):
        """The latest call, without the ID of a request, which is a new one each time."""
        command, path, query, body, token = self.server.asked[-1]
        if path in ("/v1/lock", "/v1/upgrade"):
            self.assertEqual(len(body.pop("request")), 32)
        return command, path, query, body, token

    def test_a_lock_is_taken_and_released(self):
        with self.locks.lock("k", wait_seconds=3) as lock:
            self.assertEqual((lock.key, lock.token), ("k", 7))
            self.assertEqual(self.last()[3], {"lease": "L", "key": "k", "wait_seconds": 3})
        self.assertEqual(self.last(), ("POST", "/v1/unlock", "", {"lease": "L", "token": "7"}, "Bearer secret"))

    def test_several_keys_and_a_resumed_hold(self):
        self.locks.lock("a", also=["b", {"key": "c/d", "mode": "shared", "tree": True}])
        self.assertEqual(self.last()[3], {"lease": "L", "key": "a", "also": [
            {"key": "b"}, {"key": "c/d", "mode": "shared", "tree": True}]})
        self.locks.lock("a/b", mode="2 of 5")
        self.assertEqual(self.last()[3], {"lease": "L", "key": "a/b", "mode": "2 of 5"})
        self.locks.lock("a/b", tree=True)
        self.assertEqual(self.last()[3], {"lease": "L", "key": "a/b", "tree": True})
        self.locks.ask("/v1/lock", lease="L", key="a", request="0" * 32)
        self.assertEqual(self.last()[3], {"lease": "L", "key": "a"})
        self.locks.lock("k", resume=12345678901234567890)
        self.assertEqual(self.last()[3]["resume"], "12345678901234567890")

    def test_what_a_lock_can_do(self):
        lock = self.locks.lock("k")
        for name in ("downgrade", "detach"):
            getattr(lock, name)()
            self.assertEqual(self.last()[1:4], ("/v1/" + name, "", {"lease": "L", "token": "7"}))

    def test_an_upgrade_is_a_lock(self):
        lock = self.locks.lock("k", mode="upgradable")
        self.server.answers["/v1/upgrade"] = (200, '{"key":"k","token":"9"}')
        with lock.upgrade(wait_seconds=5) as up:
            self.assertEqual((up.key, up.token, lock.token), ("k", 9, 7))
            self.assertEqual(self.last()[3], {"lease": "L", "token": "7", "wait_seconds": 5})
        self.assertEqual(self.last()[3], {"lease": "L", "token": "9"})

    def test_held_is_false_without_an_answer(self):
        lock = self.locks.lock("k")
        self.server.answers["/v1/check"] = (200, '{"held":true}')
        self.assertTrue(lock.held())
        self.server.answers["/v1/check"] = (404, '{"kind":"no lease","error":"gone"}')
        self.assertFalse(lock.held())
        self.locks.agent = "127.0.0.1:1"
        self.assertFalse(lock.held())

    def test_regain(self):
        lock = self.locks.lock("k", jeopardy_grace_seconds=300)
        lock.regain(wait_seconds=5)
        self.assertEqual(self.last()[1:4], ("/v1/regain", "", {"lease": "L", "token": "7", "wait_seconds": 5}))
        for code, kind, error in ((409, "in doubt", mortise.InDoubt), (410, "lost", mortise.Lost)):
            self.server.answers["/v1/regain"] = (code, json.dumps({"kind": kind, "error": "why"}))
            with self.assertRaisesRegex(error, "why"):
                lock.regain()

    def test_beat(self):
        lock = self.locks.lock("k", max_idle_seconds=30)
        self.assertEqual(self.last()[3], {"lease": "L", "key": "k", "max_idle_seconds": 30})
        lock.beat()
        self.assertEqual(self.last()[1:4], ("/v1/beat", "", {"lease": "L", "token": "7"}))
        for code, kind, error in ((410, "lost", mortise.Lost), (404, "no lock", mortise.Lost),
                                  (409, "in doubt", mortise.InDoubt)):
            self.server.answers["/v1/beat"] = (code, json.dumps({"kind": kind, "error": "why"}))
            with self.assertRaisesRegex(error, "why"):
                lock.beat()

    def test_wanted(self):
        lock = self.locks.lock("k", notice=True)
        for text, want in (('{"locks":[{"key":"k","token":"7","wanted":true}]}', True),
                           ('{"locks":[{"key":"k","token":"7"},{"key":"l","token":"8","wanted":true}]}', False)):
            self.server.answers["/v1/keepalive"] = (200, text)
            self.assertEqual(lock.wanted(), want)

    def test_errors_have_kinds(self):
        for kind, error in (("busy", mortise.Busy), ("changed", mortise.Busy), ("no lock", mortise.Lost),
                            ("denied", mortise.Denied), ("not ready", mortise.NotReady), ("new", mortise.MortiseError)):
            self.server.answers["/v1/lock"] = (409, json.dumps({"kind": kind, "error": "why"}))
            with self.assertRaisesRegex(error, "why"):
                self.locks.lock("k")

    def test_an_agent_that_is_away_is_not_ready(self):
        for agent in ("127.0.0.1:1", "unix:/nowhere/mortise.sock"):
            with self.assertRaisesRegex(mortise.NotReady, agent + " cannot be reached"):
                mortise.Mortise(agent)
            self.locks.agent = agent
            for call in (lambda: self.locks.lock("k"), lambda: self.locks.get("k"), lambda: self.locks.ids(),
                         lambda: self.locks.leader("e"), lambda: next(self.locks.watch())):
                with self.assertRaises(mortise.NotReady):
                    call()

    def test_another_server_is_no_agent(self):
        self.server.answers["/v1/lock"] = (502, "<html>")
        with self.assertRaisesRegex(mortise.MortiseError, "502, and is no agent"):
            self.locks.lock("k")

    def test_a_lost_answer_gives_the_request_up(self):
        self.locks.timeout = 0.2
        self.server.slow["/v1/lock"] = threading.Event()
        for error in (mortise.TimedOut, TimeoutError, mortise.NotReady):
            with self.assertRaises(error):
                self.locks.lock("k")
        asked = [a for a in self.server.asked if a[1] != "/v1/hold"][-2:]
        self.assertEqual([a[1] for a in asked], ["/v1/lock", "/v1/unlock"])
        self.assertEqual(asked[1][3], {"lease": "L", "request": asked[0][3]["request"]})
        with self.assertRaises(mortise.NotReady):
            self.locks.lock("k", request="mine")
        self.assertEqual(self.server.asked[-1][1], "/v1/lock")
        self.server.slow.pop("/v1/lock").set()
        self.assertEqual(self.locks.lock("k", request="mine").token, 7)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_child_leaves_its_parents_locks(self):
        lock, before = self.locks.lock("k"), len(self.server.asked)
        self.server.answers["/v1/check"] = (200, '{"held":true}')
        pid = os.fork()
        if pid == 0:
            wrong = 1
            try:
                with self.locks, lock:
                    wrong = 0 if lock.held() else 2
                    lock.beat()  # its work may be done in the child
                for call in (lambda: self.locks.lock("l"), lock.unlock, lock.detach, lock.upgrade, lock.regain):
                    try:
                        call()
                        wrong = 3
                    except mortise.Forked:
                        pass
                try:
                    self.locks._held.sock.fileno()
                    wrong = 4
                except AttributeError:
                    pass  # closed
            finally:
                os._exit(wrong)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual([a[1] for a in self.server.asked[before:]], ["/v1/check", "/v1/beat"])
        lock.unlock()

    def test_data(self):
        self.server.answers["/v1/data"] = (200, '{"key":"d","revision":"0"}')
        self.assertEqual(self.locks.get("d"), (b"", 0))
        self.server.answers["/v1/data"] = (200, '{"key":"d","revision":"5","data":"NDI="}')
        self.assertEqual(self.locks.get("d"), (b"42", 5))
        self.server.answers["/v1/put"] = (200, '{"key":"d","revision":"6"}')
        self.assertEqual(self.locks.put("d", b"43", revision=5), 6)
        self.assertEqual(self.last()[3], {"key": "d", "data": "NDM=", "revision": "5"})
        self.locks.put("d", b"43", 5, request="p1")
        self.assertEqual(self.last()[3], {"key": "d", "data": "NDM=", "revision": "5", "request": "p1"})
        self.locks.lock("k").put("d", b"43", request="p2")
        self.assertEqual(self.last()[3], {"lease": "L", "token": "7", "key": "d", "data": "NDM=", "revision": "0",
                                          "request": "p2"})

    def test_all_types_are_hinted(self):
        """Each parameter and result of each function has a hint, and each hint can be read."""
        functions = [f for owner in (mortise, mortise.Mortise, mortise.Lock) for f in vars(owner).values()
                     if inspect.isfunction(f) and f.__module__ == "mortise"]
        self.assertGreater(len(functions), 30)
        for f in functions:
            hints = typing.get_type_hints(f)
            names = [n for n in inspect.signature(f).parameters if n != "self"] + ["return"]
            self.assertEqual([n for n in names if n not in hints], [], f.__qualname__)

    def test_election(self):
        self.locks.campaign("e", value="here")
        self.assertEqual(self.last()[3]["labels"], {"mortise.purpose": "election"})
        self.server.answers["/v1/leader"] = (200, '{"name":"e"}')
        self.assertIsNone(self.locks.leader("e"))
        self.server.answers["/v1/leader"] = (200, '{"name":"e","leader":"a","value":"here","token":"9"}')
        self.assertEqual(self.locks.leader("e")["token"], 9)

    def test_watch(self):
        self.server.answers["/v1/watch"] = (200, '{"kind":"reset"}\n{"kind":"current"}\n')
        self.assertEqual([e["kind"] for e in self.locks.watch("orders/")], ["reset", "current"])
        self.assertIn("prefix=orders%2F", self.last()[2])

    def test_close_ends_the_lease(self):
        with self.locks:
            pass
        self.assertEqual(self.last()[1:4], ("/v1/end", "", {"lease": "L"}))


if __name__ == "__main__":
    unittest.main()
