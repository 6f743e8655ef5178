package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-lock/mortise"
)

// devWithin is five times what the slowest step takes on a machine with two busy processors.
const devWithin = 60 * time.Second

// devRun is a process of mortise dev.
type devRun struct {
	t     *testing.T
	cmd   *exec.Cmd
	tmp   string
	keys  io.WriteCloser // nil if it runs without keys
	errs  bytes.Buffer
	lines chan string // closed at the end of the output

	mu  sync.Mutex // guards all
	all []string
}

// startDev starts mortise dev with a pipe of keys.
func startDev(t *testing.T, flags ...string) *devRun {
	t.Helper()
	r := newDevRun(t, append([]string{"-keys"}, flags...)...)
	keys, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.keys = keys
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.start(out)
	return r
}

func newDevRun(t *testing.T, flags ...string) *devRun {
	r := &devRun{t: t, tmp: t.TempDir(), lines: make(chan string, 10_000)}
	r.cmd = exec.Command(os.Args[0], append([]string{"dev"}, flags...)...)
	r.cmd.Env = append(os.Environ(), asMortise+"=1", "TMPDIR="+r.tmp)
	r.cmd.Stderr = &r.errs
	return r
}

func (r *devRun) start(out io.Reader) {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.t.Logf("mortise dev printed\n%s\n%s", strings.Join(r.all, "\n"), r.errs.String())
	})
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.mu.Lock()
			r.all = append(r.all, s.Text())
			r.mu.Unlock()
			r.lines <- s.Text()
		}
	}()
}

// await returns the groups of the first further line that a pattern matches.
func (r *devRun) await(pattern string) []string {
	r.t.Helper()
	re, began := regexp.MustCompile(pattern), time.Now()
	limit := time.After(devWithin)
	for {
		select {
		case line, more := <-r.lines:
			if !more {
				r.t.Fatalf("the output has ended before %q", pattern)
			}
			if found := re.FindStringSubmatch(line); found != nil {
				r.t.Logf("after %v of %v: %s", time.Since(began).Round(time.Millisecond), devWithin, line)
				return found
			}
		case <-limit:
			r.t.Fatalf("%q was not printed within %v", pattern, devWithin)
		}
	}
}

func (r *devRun) press(keys string) {
	r.t.Helper()
	if _, err := io.WriteString(r.keys, keys); err != nil {
		r.t.Fatal(err)
	}
}

// children returns the processes of the instances.
func (r *devRun) children() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(r.cmd.Process.Pid) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// ends waits for the end of the process, and checks its exit code and that nothing is left.
func (r *devRun) ends(code int, pids []int) {
	r.t.Helper()
	timer := time.AfterFunc(devWithin, func() { _ = r.cmd.Process.Kill() })
	defer timer.Stop()
	began := time.Now()
	_ = r.cmd.Wait()
	r.t.Logf("it has ended after %v of %v", time.Since(began).Round(time.Millisecond), devWithin)
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d: %s", got, code, r.errs.String())
	}
	allEnd(r.t, pids)
	if code == exitOK {
		isEmpty(r.t, r.tmp)
	}
}

// granted waits for a grant to an instance whose number a pattern matches. It returns the number
// and the token.
func (r *devRun) granted(pattern string) (number string, token uint64) {
	r.t.Helper()
	found := r.await(`dev-(` + pattern + `) is granted demo/report with token (\d+)`)
	token, err := strconv.ParseUint(found[2], 10, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return found[1], token
}

// but is a pattern of all numbers of three instances except one.
func but(number string) string { return "[" + strings.ReplaceAll("123", number, "") + "]" }

// TestDevShowsWhatAKillDoes kills the leader while it holds the lock.
func TestDevShowsWhatAKillDoes(t *testing.T) {
	t.Parallel()
	r := startDev(t)
	page := r.await(`^  (http://.*/console/)$`)[1]
	leader := r.await(`dev-(\d) leads\.`)[1]
	if answer, err := http.Get(page); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the page: %v, %v", answer, err)
	}
	_, before := r.granted(leader)
	r.press(leader)
	r.await(`dev-` + leader + ` is killed \(kill -9 \d+\)\. It held demo/report with token ` + fmt.Sprint(before) +
		`, which stays taken for up to 2\.0 s, or until dev-` + leader + ` starts again\. It led\.$`)
	next := r.await(`dev-(\d) leads, .* after dev-` + leader + ` was killed\.`)[1]
	if next == leader {
		t.Errorf("dev-%s leads after it was killed", leader)
	}
	found := r.await(`dev-(\d) is granted demo/report with token (\d+) after a wait of .* s, .* s after dev-` + leader +
		` was killed\.`)
	if after, _ := strconv.ParseUint(found[2], 10, 64); found[1] == leader || after <= before {
		t.Errorf("the token is %d, and was %d", after, before)
	}
	if n := len(r.children()); n != 2 {
		t.Errorf("%d instances run, want 2", n)
	}
	r.press("p" + leader)
	r.await(`dev-` + leader + ` does not run: ` + leader + ` starts it\.`)
	r.press(leader)
	r.await(`dev-` + leader + ` starts again, as process \d+\.`)
	r.await(`dev-` + leader + ` can get locks\.`)
	r.granted(leader)

	r.press("123")
	r.await(`1 of 3 instances is left, and 2 must agree: no lock is granted until another one is back\.`)
	r.await(`0 of 3 instances are left`)
	r.await(`No leader is known\.`)
	r.press("12")
	r.await(`dev-[12] leads, .* after dev-` + next + ` was killed|dev-[12] leads\.`)
	r.granted("[12]")
	pids := r.children()
	r.press("q")
	r.ends(exitOK, pids)
}

// TestDevShowsWhatAPauseDoes pauses the holder before its write.
func TestDevShowsWhatAPauseDoes(t *testing.T) {
	t.Parallel()
	r := startDev(t)
	holder, token := r.granted(`\d`)
	r.press("p" + holder)
	r.await(`dev-` + holder + ` is paused \(SIGSTOP\)\. It holds demo/report with token ` + fmt.Sprint(token) +
		`, for up to 2\.0 s more\.`)
	r.press("c" + holder)
	r.await(`dev-` + holder + ` is paused: p` + holder + ` lets it go on\.`)
	next, higher := r.granted(but(holder))
	if next == holder || higher <= token {
		t.Errorf("token %d of dev-%s after token %d of dev-%s", higher, next, token, holder)
	}
	r.press("p" + holder)
	r.await(`dev-` + holder + ` goes on \(SIGCONT\)\.`)
	r.await(`dev-` + holder + ` writes the report with token ` + fmt.Sprint(token) +
		`, and is refused: token \d+ has written it\.`)
	r.granted(holder)
	pids := r.children()
	r.press("\x03")
	r.ends(exitOK, pids)
}

// TestDevShowsWhatACutDoes cuts the holder off.
func TestDevShowsWhatACutDoes(t *testing.T) {
	t.Parallel()
	r := startDev(t)
	r.await(`dev-(\d) leads\.`)
	holder, token := r.granted(`\d`)
	r.press("c" + holder)
	r.await(`dev-` + holder + ` is cut off: it gets no byte from the others, and they get none from it\. It holds ` +
		`demo/report with token ` + fmt.Sprint(token) + `, for up to 2\.0 s more\.`)
	if next, higher := r.granted(but(holder)); higher <= token {
		t.Errorf("token %d of dev-%s after token %d of dev-%s", higher, next, token, holder)
	}
	r.press("c" + holder)
	r.await(`dev-` + holder + ` is connected again\.`)
	r.granted(holder)
	pids := r.children()
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	r.ends(exitOK, pids)
}

// TestDevEndsWithItsProcess checks that nothing is left, however the process ends, and even if an
// instance is paused.
func TestDevEndsWithItsProcess(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			r := startDev(t, "-work=false")
			r.await(`leads\.`)
			r.press("p1")
			r.await(`dev-1 is paused \(SIGSTOP\)`)
			pids := r.children()
			if len(pids) != 3 {
				t.Errorf("%d instances run, want 3", len(pids))
			}
			_ = r.cmd.Process.Signal(signal)
			if signal == syscall.SIGKILL {
				r.ends(-1, pids)
				return
			}
			r.ends(exitOK, pids)
		})
	}
}

// TestProgramsJoinDev checks what dev prints for others: the configuration of a program, the
// variables of other commands, and the requests of curl.
func TestProgramsJoinDev(t *testing.T) {
	t.Parallel()
	r := startDev(t, "-work=false", "-n", "1", "-o", "json")
	var at struct {
		Join, Founders []string
		Secret         string
		Voters         int
		SessionTTL     float64 `json:"session_ttl_seconds"`
	}
	if err := json.Unmarshal([]byte(`{`+r.await(`^{(.*)}$`)[1]+`}`), &at); err != nil {
		t.Fatal(err)
	}
	r.await(`"text":"dev-1 can get locks\."`)
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "mine", Bind: "127.0.0.1:0", Join: at.Join,
		Founders: at.Founders, Voters: at.Voters, Secret: at.Secret,
		SessionTTL: time.Duration(at.SessionTTL * float64(time.Second))})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	lock, err := node.Lock(t.Context(), devPrefix+"mine")
	if err != nil {
		t.Fatal(err)
	}
	r.await(`"text":"mine is granted demo/mine with token ` + fmt.Sprint(uint64(lock.Token())) + `\."`)
	if err := errors.Join(lock.Unlock(t.Context()), node.Leave(t.Context())); err != nil {
		t.Error(err)
	}
	pids := r.children()
	r.press("q")
	r.ends(exitOK, pids)
}

func TestCommandsThatDevPrints(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not there")
	}
	t.Parallel()
	dir := t.TempDir() // with the files of scripts/try
	for _, name := range []string{"index.html", "mortise.wasm"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startDev(t, "-work=false", "-try", dir)
	simulation := r.await(`^  (http://.*/try/)$`)[1]
	for name, want := range map[string]string{"": "text/html", "mortise.wasm": "application/wasm"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, simulation+name, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", "same-origin") // as browsers do for the files of a page
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%q of the simulation: %s, %s, want %s", name, answer.Status, got, want)
		}
	}
	lease := r.await(`^  (lease=.*)$`)[1]
	request := r.await(`^  (curl .*)$`)[1]
	variables := r.await(`^  (export .*)$`)[1]
	r.await(`leads\.`)
	run := func(script string) string {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Env = append(os.Environ(), asMortise+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	if out := run(lease + "\n" + request); !strings.Contains(out, `"token":"`) {
		t.Error(out)
	}
	r.await(`agent \(for dev\), curl, is granted demo/report with token \d+\.`)
	if out := run(variables + "\n" + os.Args[0] + " ls demo/"); !strings.Contains(out, "demo/report") {
		t.Error(out)
	}
	pids := r.children()
	r.press("q")
	r.ends(exitOK, pids)
}

// TestDevAtATerminal checks that keys work without Enter, that they are not shown, and that the
// terminal is as before at the end.
func TestDevAtATerminal(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	r := newDevRun(t, "-work=false", "-n", "1")
	r.cmd.Env = append(r.cmd.Env, "TERM=xterm", "NO_COLOR=")
	r.cmd.Stdin, r.cmd.Stdout, r.keys = program, program, person
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.start(person)
	r.await(`^keys:`)
	r.await("\x1b\\[32mdev-1 leads\\.\x1b\\[m")
	r.press("?")
	r.await(`^keys:`)
	r.press("1")
	r.await(`^[\d:.]+  ` + "\x1b" + `\[1mdev-1 is killed`)
	r.press("1")
	r.await(`dev-1 starts again`)
	pids := r.children()
	r.press("\x03")
	r.ends(exitOK, pids)
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is %+v, and was %+v, %v", after, before, err)
	}
	program.Close() // so that the reader of the other end ends
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.all, "?keys:") {
		t.Error("the keys are shown")
	}
}
