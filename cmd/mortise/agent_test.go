//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (a *agentProcess) post(t *testing.T, path string, body, answer any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.client().Post("http://localhost"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err == nil && answer != nil {
		err = json.Unmarshal(said, answer)
	}
	if err != nil {
		t.Fatalf("%s says %q: %v", path, said, err)
	}
	return r.StatusCode
}

type object map[string]any

// lockOfAShortLease opens leases of a second until one of them has the lock in time.
func (a *agentProcess) lockOfAShortLease(t *testing.T, terms object) (lock lockText, id string) {
	t.Helper()
	for {
		var lease struct{ Lease string }
		if code := a.post(t, "/v1/leases", object{"ttl_seconds": 1, "name": "shop"}, &lease); code != http.StatusOK {
			t.Fatal(code)
		}
		terms["lease"] = lease.Lease
		switch code := a.post(t, "/v1/lock", terms, &lock); code {
		case http.StatusOK:
			return lock, lease.Lease
		case http.StatusNotFound, http.StatusGone: // the machine is busy, and the lease has ended
		default:
			t.Fatal(code)
		}
	}
}

// The locks of a client must be released when the client is lost, whether the client keeps its
// lease by requests or by a connection.
func TestTheAgentsClients(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	a, b := f.agents[0], f.agents[1]
	var lease struct{ Lease string }
	if code := a.post(t, "/v1/leases", object{"ttl_seconds": 60, "name": "shop"}, &lease); code != http.StatusOK {
		t.Fatal(code)
	}
	var lock lockText
	if code := a.post(t, "/v1/lock", object{"lease": lease.Lease, "key": "k", "wait_seconds": 0},
		&lock); code != http.StatusOK || lock.Token == 0 {
		t.Fatal(code, lock)
	}
	var other struct{ Lease string }
	b.post(t, "/v1/leases", object{"ttl_seconds": 60}, &other)
	var p problem
	if code := b.post(t, "/v1/lock", object{"lease": other.Lease, "key": "k", "wait_seconds": 0},
		&p); code != http.StatusConflict || p.Held == nil || p.Held.Value != "shop" || p.Held.Holder != "a" {
		t.Errorf("%d %+v", code, p)
	}
	if code := b.post(t, "/v1/lock", object{"lease": other.Lease, "key": "k", "wait_seconds": 0.1},
		&p); code != http.StatusConflict || p.Kind != "busy" {
		t.Errorf("%d %+v", code, p)
	}
	var kept struct{ Locks []lockText }
	if code := a.post(t, "/v1/keepalive", object{"lease": lease.Lease}, &kept); code != http.StatusOK ||
		len(kept.Locks) != 1 || kept.Locks[0] != lock {
		t.Errorf("%d %+v", code, kept)
	}
	var next lockText
	short, lost := a.lockOfAShortLease(t, object{"key": "l"})
	if code := b.post(t, "/v1/lock", object{"lease": other.Lease, "key": "l", "wait_seconds": patience.Seconds()},
		&next); code != http.StatusOK || next.Token <= short.Token {
		t.Fatal(code, next)
	}
	if code := a.post(t, "/v1/keepalive", object{"lease": lost}, &p); code != http.StatusNotFound ||
		p.Kind != "no lease" {
		t.Errorf("%d %+v", code, p)
	}
	// The lease of this client ends with its connection.
	var held, released bool
	hold, err := a.client().Post("http://localhost/v1/hold", "application/json",
		strings.NewReader(`{"name":"streamer"}`))
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(hold.Body)
	if err := lines.Decode(&lease); err != nil {
		t.Fatal(err)
	}
	if code := a.post(t, "/v1/lock", object{"lease": lease.Lease, "key": "s"}, &lock); code != http.StatusOK {
		t.Fatal(code)
	}
	check := func(agent *agentProcess, body object) bool {
		var answer struct{ Held bool }
		agent.post(t, "/v1/check", body, &answer)
		return answer.Held
	}
	held = check(a, object{"lease": lease.Lease, "token": lock.Token}) &&
		check(b, object{"key": "s", "token": lock.Token})
	f.mortise("unlock", "--force", "s", "--token", tokenText(lock.Token), "--reason", "a test").wants(t, exitOK)
	var loss lockText
	if err := lines.Decode(&loss); err != nil || loss.Token != lock.Token || !strings.Contains(loss.Lost, "a test") {
		t.Errorf("the loss is told as %+v, %v", loss, err)
	}
	released = !check(b, object{"key": "s", "token": lock.Token})
	if !held || !released {
		t.Errorf("held %v, then released %v", held, released)
	}
	a.post(t, "/v1/lock", object{"lease": lease.Lease, "key": "s"}, &lock)
	_ = hold.Body.Close()
	if code := b.post(t, "/v1/lock", object{"lease": other.Lease, "key": "s", "wait_seconds": patience.Seconds()},
		&next); code != http.StatusOK {
		t.Error(code)
	}
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	if err := b.cmd.Wait(); err != nil {
		t.Error(err)
	}
	f.mortise("run", "-n", "s", "--", "true").wants(t, exitOK)
}

// The lock of a client that dies must stay taken for its lock_delay, and the audit log must name
// the client. A client that ends its lease must release its locks immediately.
func TestALostClientsLockKeepsItsDelay(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	a, b := f.agents[0], f.agents[1]
	var other struct{ Lease string }
	b.post(t, "/v1/leases", object{"ttl_seconds": 60}, &other)
	stays := func(key string, delay time.Duration, end func()) {
		t.Helper()
		began, next := time.Now(), lockText{}
		end()
		if code := b.post(t, "/v1/lock", object{"lease": other.Lease, "key": key, "wait_seconds": patience.Seconds()},
			&next); code != http.StatusOK {
			t.Fatal(key, code)
		}
		if waited := time.Since(began); waited < delay {
			t.Errorf("%s: the next had the lock after %v, the delay is %v", key, waited, delay)
		}
	}
	a.lockOfAShortLease(t, object{"key": "silence", "lock_delay_seconds": 2})
	stays("silence", 2*time.Second, func() {})
	hold := func(key string, delay time.Duration) (lease string, leave func() error) {
		t.Helper()
		answer, err := a.client().Post("http://localhost/v1/hold", "application/json", strings.NewReader(`{"name":"shop"}`))
		if err != nil {
			t.Fatal(err)
		}
		var opened struct{ Lease string }
		if err := json.NewDecoder(answer.Body).Decode(&opened); err != nil {
			t.Fatal(err)
		}
		if code := a.post(t, "/v1/lock", object{"lease": opened.Lease, "key": key, "lock_delay_seconds": delay.Seconds()},
			&lockText{}); code != http.StatusOK {
			t.Fatal(key, code)
		}
		return opened.Lease, answer.Body.Close
	}
	_, leave := hold("hold", 2*time.Second)
	stays("hold", 2*time.Second, func() { _ = leave() })
	lease, _ := hold("end", time.Hour)
	stays("end", 0, func() { a.post(t, "/v1/end", object{"lease": lease}, nil) })
	f.mortise("audit").wants(t, exitOK, `client "shop" of the agent did not keep its lease alive for 1s`,
		`client "shop" of the agent closed its connection, or died`)
}

func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	run := func(script string) *exec.Cmd {
		cmd := exec.Command(python, "-c",
			"import json, os\nfrom mortise import *\nagent = 'unix:' + os.environ['AGENT']\n"+script)
		cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1", "AGENT="+f.agents[0].socket,
			"OTHER="+f.agents[1].socket)
		return cmd
	}
	out, err := run(`
with Mortise(agent, name="first") as one, Mortise("unix:" + os.environ["OTHER"]) as two:
    with one.lock("orders/42", wait_seconds=30, value="paints") as lock:
        assert lock.held() and lock.key == "orders/42" and lock.token > 0
        try:
            two.lock("orders/42", wait_seconds=0)
            raise SystemExit("two holders")
        except Busy as e:
            assert "paints" in str(e), e
        first = lock.token
    assert not lock.held()
    later = two.lock("orders/42")
    assert later.token > first
    later.unlock()
    one.lock("left/1")
    writer = one.lock("orders/43", notice=True, labels={"by": "test"}, lock_delay_seconds=60)
    assert not writer.wanted()
    writer.downgrade()
    two.lock("orders/43", mode="shared", wait_seconds=30).unlock()
    editor = one.lock("orders/44", mode="upgradable")
    with two.lock("orders/44", mode="shared", wait_seconds=30) as reader:
        pass
    with editor.upgrade(wait_seconds=30) as up:
        assert up.token > reader.token and editor.held()
    editor.unlock()
    writer.detach()
    two.lock("orders/43", resume=writer.token).unlock()
    at = one.put("progress", b"1")
    assert two.get("progress") == (b"1", at)
    two.put("progress", b"2", revision=at)
    try:
        one.put("progress", b"3", revision=at)
        raise SystemExit("two writers")
    except Busy:
        pass
    assert one.leader("leader") is None
    term = two.campaign("leader", value="here")
    assert one.leader("leader")["value"] == "here"
    assert next(one.watch("orders/"))["kind"] == "reset"
    term.unlock()
with Mortise(agent) as three:
    three.lock("left/1", wait_seconds=30).unlock()
    import signal, socket, time
    # A worker that lives on does not keep the lock of its parent that was killed.
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.close(read)
        forking = Mortise(agent)
        forking.lock("forked/1")
        worker = os.fork()
        if worker == 0:
            time.sleep(1000)
        os.write(write, b"%d" % worker)
        time.sleep(1000)
    worker = int(os.read(read, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    three.lock("forked/1", wait_seconds=10).unlock()  # 0.1 s is expected
    os.kill(worker, signal.SIGKILL)
    # The end of a worker does not end the lock of its parent that lives.
    with three.lock("forked/2") as kept:
        if os.fork() == 0:
            with three, kept:
                pass
            os._exit(0)
        os.wait()
        time.sleep(0.5)
        assert kept.held()
    # After a lost answer the same call returns the lock, or the request was given up.
    body = json.dumps({"lease": three.lease, "key": "lost/1", "request": "r", "wait_seconds": 0}).encode()
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(os.environ["AGENT"])
    raw.sendall(b"POST /v1/lock HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body)
    token = json.loads(raw.recv(4096).partition(b"\r\n\r\n")[2])["token"]  # the client does not see it
    raw.close()
    again = three.lock("lost/1", request="r", wait_seconds=0)
    assert str(again.token) == token, (again.token, token)
    hasty = Mortise(agent)
    hasty.timeout = 0.2
    try:
        hasty.lock("lost/1", wait_seconds=30)
        raise SystemExit("a second holder")
    except NotReady as e:
        assert isinstance(e, TimeoutError), e
    again.unlock()
    three.lock("lost/1", wait_seconds=0).unlock()
    hasty.timeout = None
    hasty.close()
try:
    one.lock("left/2")
    raise SystemExit("a lock without a lease")
except Lost:
    print("all is well")
`).CombinedOutput()
	if err != nil || string(out) != "all is well\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	dying := run("m = Mortise(agent)\nm.lock('dead/1')\nprint('held', flush=True)\nimport time\ntime.sleep(1000)")
	pipe, err := dying.StdoutPipe()
	if err == nil {
		err = dying.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line := make([]byte, 5); true {
		if _, err := io.ReadFull(pipe, line); err != nil || string(line) != "held\n" {
			_ = dying.Process.Kill()
			t.Fatal(string(line), err)
		}
	}
	f.mortise("run", "-n", "dead/1", "--", "true").wants(t, exitBusy)
	_ = dying.Process.Kill()
	_ = dying.Wait()
	f.mortise("run", "-w", patience.String(), "dead/1", "--", "echo", "granted").wants(t, exitOK, "granted")
}

// TestPythonPackage runs the tests of the package, and builds its source distribution.
func TestPythonPackage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("python")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command(python, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("-m", "unittest"); !strings.Contains(out, "Ran 18 tests") {
		t.Errorf("the tests say %s", out)
	}
	if exec.Command(python, "-c", "import setuptools").Run() != nil {
		t.Skip("setuptools is not there: the package is not built")
	}
	run("-c", "from setuptools import build_meta; build_meta.build_sdist('dist')")
	if built, err := filepath.Glob(filepath.Join(dir, "dist", "mortise*agent-*.tar.gz")); err != nil || len(built) != 1 {
		t.Errorf("built were %v, %v", built, err)
	}
}

func TestReadme(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not there")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	bin := filepath.Join(f.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	wrapper := "#!/bin/sh\n" + asMortise + "=1 exec " + os.Args[0] + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "mortise"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sh\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("%d blocks of shell: the test would see nothing", len(blocks))
	}
	for _, block := range blocks {
		script, _, _ := strings.Cut(block, "```")
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = f.dir
		cmd.Env = append(f.environ("NAME=reader"), "PATH="+bin+":"+os.Getenv("PATH"), "SOCKET="+f.agents[0].socket)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		t.Logf("%s\n%s[%v]", script, out, time.Since(began).Round(time.Millisecond))
		if err != nil {
			t.Errorf("%v\n%s\n%s", err, script, out)
		}
	}
}

func TestTheDoorIsForThisMachine(t *testing.T) {
	f := &fleet{t: t}
	dir := t.TempDir()
	cmd := f.command("agent", "-listen", "127.0.0.1:0", "-o", "json", "-bind", "127.0.0.1:0", "-dir", dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var at struct{ Listen string }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		t.Fatal(err)
	}
	ask := func(change func(*http.Request)) int {
		r, _ := http.NewRequest(http.MethodPost, "http://"+at.Listen+"/v1/leases",
			strings.NewReader(`{"ttl_seconds": 5}`))
		r.Header.Set("Content-Type", "application/json")
		change(r)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for want, change := range map[int]func(*http.Request){
		http.StatusOK:         func(*http.Request) {},
		http.StatusForbidden:  func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		http.StatusBadRequest: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		if got := ask(change); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	if got := ask(func(r *http.Request) { r.Host = "evil.example" }); got != http.StatusForbidden {
		t.Errorf("%d for a name that leads here", got)
	}
	misspelt := func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(`{"tll":"5s"}`))
		r.ContentLength = -1
	}
	if got := ask(misspelt); got != http.StatusBadRequest {
		t.Errorf("%d for a field that is misspelt", got)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
