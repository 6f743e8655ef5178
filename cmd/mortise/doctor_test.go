//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// quickly checks that a command takes at most five times as long as documented. On a busy machine
// one of three attempts is enough.
func (f *fleet) quickly(args ...string) (s said) {
	f.t.Helper()
	for range 3 {
		if s = f.mortise(args...); s.took <= 5*time.Second {
			return s
		}
	}
	f.t.Errorf("it took %v", s.took)
	return s
}

// The instances have directories, and two of three voters are lost. While the directories of the
// voters exist, doctor must advise to start the voters again. When the directories are lost, it
// must advise to give up the group.
func TestALostQuorum(t *testing.T) {
	t.Parallel()
	f := startFleet(t, true, "a", "b", "c")
	f.mortise("recover", "123456789abcdef").wants(t, exitFailed, "belongs to group 0123456789abcdef; nothing was done")
	group := f.group("a")
	f.mortise("recover", group).wants(t, exitFailed, "nothing is lost, and nothing was done")

	for _, a := range f.agents[1:] {
		a.kill()
	}
	want := []string{"the quorum is lost for ", "2 of 3 voters are missing", f.agents[1].Address +
		" refuses the connection", f.agents[2].Address + " refuses the connection",
		"bring back 1 of the missing voters", "mortise recover " + group}
	f.doctorSays(exitNo, want...)
	f.says([]string{"status"}, exitOK, "there is no leader", "a ", "refused")
	f.says([]string{"members"}, exitOK, "answered", "refused", "votes")
	f.mortise("ls", "-timeout", "300ms").wants(t, exitNotReady, "mortise doctor")
	f.mortise("unlock", "-timeout", "300ms", "--force", "k", "--token", "1", "--reason", "x").wants(t, exitNotReady)
	f.mortise("run", "-n", "k", "--", "echo", "never").wants(t, exitNotReady)

	f.start(f.agents[1]) // doctor advises this step first
	f.publish()          // f.ready would take half a minute, because c is missing
	f.doctorSays(exitNo, "leads group "+group, "Replicas says that 3 instances run, and 2 answer")
	f.mortise("run", "-w", patience.String(), "k", "--", "echo", "granted").wants(t, exitOK, "granted")

	f.agents[1].kill() // now the directories of b and c are lost
	for _, a := range f.agents[1:] {
		if err := os.RemoveAll(a.dir); err != nil {
			t.Fatal(err)
		}
		f.start(a)
	}
	f.publish()
	eventually(t, "the group can be given up", func() error {
		if s := f.mortise("recover", strings.TrimLeft(group, "0")); s.code != exitOK {
			return errors.New(s.errs) // a may still regard b as the leader
		}
		return nil
	})
	f.ready()
	f.doctorSays(exitOK, "well: ")
	if now := f.group("a"); now == group {
		t.Errorf("the group is still %s", now)
	}
}

// doctorSays repeats doctor until it prints all texts, because doctor notices an event after a
// moment.
func (f *fleet) doctorSays(code int, texts ...string) { f.says([]string{"doctor"}, code, texts...) }

// says repeats a command until it has the given exit code and prints all given texts.
func (f *fleet) says(args []string, code int, texts ...string) {
	f.t.Helper()
	eventually(f.t, strings.Join(args, " ")+" says "+strings.Join(texts, ", "), func() error {
		s := f.mortise(args...)
		for _, text := range texts {
			if !strings.Contains(s.out+s.errs, text) || s.code != code {
				return errors.New(s.out + s.errs)
			}
		}
		return nil
	})
}

type watched struct{ lines *json.Decoder }

func (f *fleet) watch(prefix string) *watched {
	f.t.Helper()
	cmd := f.command("watch", "-o", "json", prefix)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &watched{json.NewDecoder(out)}
}

func (w *watched) next(t *testing.T, want mortise.EventKind) (e happened) {
	t.Helper()
	for e.Kind == "" || e.Kind == mortise.EventCurrent {
		e = happened{}
		if err := w.lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
	}
	if e.Kind != want {
		t.Fatalf("watch says %+v; want %s", e, want)
	}
	return e
}

func (f *fleet) group(name string) string {
	f.t.Helper()
	var all struct{ Instances []seen }
	s := f.mortise("status", "-o", "json")
	if err := json.Unmarshal([]byte(s.out), &all); err != nil {
		f.t.Fatal(err)
	}
	for _, i := range all.Instances {
		if i.Status != nil && i.Status.Name == name {
			return i.Status.Group
		}
	}
	f.t.Fatalf("%s does not answer", name)
	return ""
}

// One instance has ended and another is suspended. doctor must name both, with the reasons.
func TestADeadVoter(t *testing.T) {
	t.Parallel()
	f := startFleet(t, true, "a", "b", "c") // with directories, a missing voter is replaced after a minute
	f.agents[2].kill()
	f.doctorSays(exitNo, "the voter c has been silent for", "its process does not run", "stop no instance now")
	if err := f.agents[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.doctorSays(exitNo, "its machine or its network is down, or its process is suspended: "+f.agents[1].Address,
		"its process does not run: "+f.agents[2].Address)
}

func TestLooking(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	defer f.begin("exec sleep 1000", "orders/1", "-value", "one thing").end()
	defer f.begin("exec sleep 1000", "--mode", "shared", "orders/2").end()
	defer f.begin("exec sleep 1000", "users/1").end()
	ls := f.quickly("ls").wants(t, exitOK, "orders/1", "orders/2", "users/1", "tester", "one thing")
	if strings.Contains(f.mortise("ls", "orders/").wants(t, exitOK, "orders/1").out, "users") {
		t.Error("ls shows what does not begin with its prefix")
	}
	f.mortise("ls", "-o", "json", "orders/1").wants(t, exitOK, `"key":"orders/1"`, `"token":"`)
	f.quickly("get", "orders/1").wants(t, exitOK, "holds",
		regexp.MustCompile(`[0-9]{19}`).FindString(ls.out))
	f.mortise("get", "-o", "json", "nobody").wants(t, exitOK, `{"key":"nobody","queue":[]`)
	f.says([]string{"members"}, exitOK, "leads", "votes", f.agents[0].Address, "guest", "root")
	first := f.mortise("members", "-n", "2").wants(t, exitOK, "2 of about 6; the next: mortise members -after ")
	behind := regexp.MustCompile(`-after ([0-9]+)`).FindStringSubmatch(first.out)[1]
	rest := f.mortise("members", "-after", behind, "-o", "json").wants(t, exitOK, `"tier":"guest"`)
	if n := strings.Count(rest.out, "\n"); n != 4 {
		t.Errorf("%d members behind the second of 6:\n%s", n, rest.out)
	}
	f.mortise("members", "-after", "x").wants(t, exitUsage)
	f.says([]string{"status"}, exitOK, "next safe step", "safe")
	f.doctorSays(exitOK, "well: ")
	f.quickly("members")
	f.quickly("status")
	f.quickly("doctor")
	if s := f.mortise("top", "-count", "2", "-every", "100ms").wants(t, exitOK,
		"3 keys, 3 holds, 0 waiting"); strings.Contains(s.out, "\x1b") {
		t.Error("top writes for a terminal where none is")
	}
	f.mortise("top", "-count", "1", "-o", "json", "users/").wants(t, exitOK, `"keys":1`)

	w := f.watch("orders/")
	var last happened
	next := func(want mortise.EventKind, key string) {
		t.Helper()
		if last = w.next(t, want); last.Key != key {
			t.Fatalf("watch says %+v; want %s of %q", last, want, key)
		}
	}
	next(mortise.EventReset, "")
	next(mortise.EventHeld, "orders/1")
	next(mortise.EventHeld, "orders/2")
	r := f.begin("exec sleep 1000", "orders/3")
	next(mortise.EventHeld, "orders/3")
	f.mortise("unlock", "--force", "orders/3", "--token", tokenText(last.Token), "--reason", "a look").wants(t, exitOK)
	after := fmt.Sprint(last.Position)
	next(mortise.EventFreed, "orders/3")
	if last.Cause != mortise.OutcomeForced || last.Reason != "a look" ||
		!strings.HasPrefix(last.By, "mortise unlock by ") {
		t.Errorf("watch says %+v", last)
	}
	r.code(t)
	f.mortise("audit").wants(t, exitOK, "freed", "orders/3", "a look")
	w2 := f.command("watch", "-after", after, "orders/")
	out, err := w2.StdoutPipe()
	if err == nil {
		err = w2.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w2.Process.Kill(); _ = w2.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "freed  orders/3") ||
		!strings.Contains(line, "a look") {
		t.Errorf("watch goes on with %q, %v", line, err)
	}

	one := f.in(t)
	one.common = append(one.common, "JOIN="+f.agents[0].Address+",127.0.0.1:1")
	one.quickly("ls").wants(t, exitOK, "orders/1")
	one.quickly("run", "-n", "orders/4", "--", "echo", "granted").wants(t, exitOK, "granted")
	stranger := f.in(t)
	stranger.common = append(stranger.common,
		"SECRET=msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0")
	stranger.says([]string{"ls", "-timeout", "2s"}, exitNotReady, "has another secret")
	stranger.mortise("doctor").wants(t, exitNo, "no instance answers", "give this command the secret")
	stranger.mortise("unlock", "-timeout", "300ms", "--force", "orders/1", "--token", "1", "--reason", "x").wants(t,
		exitNotReady)
	plain := f.in(t)
	plain.common = append(plain.common, "SECRET=")
	plain.mortise("ls", "-timeout", "300ms").wants(t, exitNotReady)
	elsewhere := f.in(t)
	elsewhere.common = append(elsewhere.common, "CLUSTER=elsewhere")
	elsewhere.says([]string{"status", "-timeout", "2s"}, exitNotReady, "MORTISE_CLUSTER")
}

// Mistakes on the command line must be reported before an instance is queried.
func TestWhatCannotBeAsked(t *testing.T) {
	f := &fleet{t: t, common: []string{"JOIN=127.0.0.1:1"}}
	f.mortise("ls", "a", "b").wants(t, exitUsage, "too many words")
	f.mortise("get").wants(t, exitUsage, "which key")
	f.mortise("recover").wants(t, exitUsage, "which group")
	f.mortise("ls", "-join", "nonsense").wants(t, exitUsage, "MORTISE_JOIN")
	f.mortise("top", "-by", "colour").wants(t, exitUsage)
	f.mortise("agent", "-listen", "0.0.0.0:7948").wants(t, exitUsage, "neither a loopback address")
	f.mortise("ls", "-o", "yaml").wants(t, exitUsage, "want table or json")
	f.mortise("help").wants(t, exitOK, "doctor", "unlock")
	f.mortise("run", "-h").wants(t, exitOK, "kill-after")
	f.common = []string{"JOINN=127.0.0.1:1"}
	f.mortise("ls").wants(t, exitUsage, "MORTISE_JOINN")
	f.common = nil
	f.mortise("ls").wants(t, exitUsage, "or set MORTISE_JOIN")
}
