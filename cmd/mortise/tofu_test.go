//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/tofu"
)

// tofuRun speaks the locking part of the documented protocol of the http backend, as one run of
// OpenTofu does: it sends its lock info with each request, and sends a request again after a 5xx.
type tofuRun struct {
	t                  *testing.T
	lock, unlock       string // methods
	username, password string
	info               tofu.Info
}

func newRun(t *testing.T, id string) tofuRun {
	return tofuRun{t: t, lock: "LOCK", unlock: "UNLOCK", info: tofu.Info{
		ID: id, Operation: "OperationTypeApply", Who: "ann by night@build-7", Version: "1.10.6", Path: "",
		Info: "", Created: time.Date(2027, 3, 4, 5, 6, 7, 891011121, time.UTC),
	}}
}

func (run tofuRun) send(client *http.Client, method, address string, info any) (code int, holder tofu.Info,
	text string) {
	run.t.Helper()
	body, err := json.Marshal(info)
	if info == nil {
		body, err = nil, nil
	}
	if err != nil {
		run.t.Fatal(err)
	}
	for try := range 5 {
		ctx, cancel := context.WithTimeout(run.t.Context(), patience)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
		if err != nil {
			run.t.Fatal(err)
		}
		if run.username != "" {
			q.SetBasicAuth(run.username, run.password)
		}
		if len(body) > 0 {
			sum := md5.Sum(body)
			q.Header.Set("Content-Type", "application/json")
			q.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		}
		answer, err := client.Do(q)
		if err != nil {
			run.t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			run.t.Fatal(err)
		}
		code, text = answer.StatusCode, string(said)
		if code < 500 || try == 4 {
			break
		}
		time.Sleep(time.Second)
	}
	if code == http.StatusLocked || code == http.StatusConflict {
		if err := json.Unmarshal([]byte(text), &holder); err != nil {
			run.t.Fatalf("the client cannot read the holder's lock info: %v\n%s", err, text)
		}
	}
	return code, holder, text
}

func (run tofuRun) locks(client *http.Client, address string, want int) tofu.Info {
	run.t.Helper()
	code, holder, text := run.send(client, run.lock, address, run.info)
	if code != want {
		run.t.Errorf("%s %s for %s: %d, want %d: %s", run.lock, address, run.info.ID, code, want, text)
	}
	return holder
}

func (run tofuRun) unlocks(client *http.Client, address string, want int) tofu.Info {
	run.t.Helper()
	code, holder, text := run.send(client, run.unlock, address, run.info)
	if code != want {
		run.t.Errorf("%s %s for %s: %d, want %d: %s", run.unlock, address, run.info.ID, code, want, text)
	}
	return holder
}

func (i *inn) stateLock(key string) string {
	return i.server.URL + "/v1/tofu?key=" + url.QueryEscape(key)
}

// The lock outlives its request. A run that asks again has it, another run gets the lock info of
// the holder, and an UNLOCK ends only the hold of its own run.
func TestTofu(t *testing.T) {
	i := openInn(t, nil, standard)
	at, client := i.stateLock("network/prod"), i.server.Client()
	one, two := newRun(t, "11111111-aaaa"), newRun(t, "22222222-bbbb")
	two.lock, two.unlock = http.MethodPost, http.MethodDelete
	one.locks(client, at, http.StatusOK)
	before, err := i.node.Peek(t.Context(), "network/prod")
	if err != nil {
		t.Fatal(err)
	}
	one.locks(client, at, http.StatusOK)
	if holder := two.locks(client, at, http.StatusLocked); holder != one.info {
		t.Errorf("the holder is\n%+v, want\n%+v", holder, one.info)
	}
	k, err := i.node.Peek(t.Context(), "network/prod")
	if err != nil || len(k.Queue) != 1 || k.Queue[0].Value != "OperationTypeApply by ann by night@build-7" ||
		k.Queue[0].Labels[tofu.LabelID] != one.info.ID || k.Queue[0].Token != before.Queue[0].Token {
		t.Errorf("the leader shows %+v, %v", k, err)
	}
	for _, address := range []string{at, at + "&any=true"} {
		if holder := two.unlocks(client, address, http.StatusLocked); holder != one.info {
			t.Errorf("%s: the holder is\n%+v, want\n%+v", address, holder, one.info)
		}
	}
	one.unlocks(client, at, http.StatusOK)
	one.unlocks(client, at, http.StatusOK)
	two.locks(client, at, http.StatusOK)
	one.locks(client, at, http.StatusLocked)
	forced := newRun(t, two.info.ID) // the command force-unlock sends the ID alone
	forced.info = tofu.Info{ID: two.info.ID}
	forced.unlocks(client, at, http.StatusOK)
	one.locks(client, at, http.StatusOK)
	if code, _, text := one.send(client, "UNLOCK", at, nil); code != http.StatusBadRequest ||
		!strings.Contains(text, "any=true") {
		t.Errorf("an UNLOCK without a lock info: %d %s", code, text)
	}
	if code, _, text := one.send(client, "UNLOCK", at+"&any=true", nil); code != http.StatusOK {
		t.Errorf("an UNLOCK without a lock info: %d %s", code, text)
	}
	i.leases.mu.Lock()
	defer i.leases.mu.Unlock()
	if kept := len(i.leases.all); kept > 1 { // the one whose lock was ended by force
		t.Errorf("%d leases are left", kept)
	}
}

// A lock of another program excludes a run, and no run can end it.
func TestTofuAndOtherLocks(t *testing.T) {
	i := openInn(t, nil, standard)
	at, client, run := i.stateLock("k"), i.server.Client(), newRun(t, "1")
	lock, err := i.node.Acquire(t.Context(), mortise.Request{Key: "k", Value: "paints"})
	if err != nil {
		t.Fatal(err)
	}
	holder := run.locks(client, at, http.StatusLocked)
	if holder.ID != "" || holder.Who != "agent" || !strings.Contains(holder.Info, "paints") || holder.Created.IsZero() {
		t.Errorf("the holder is %+v", holder)
	}
	run.unlocks(client, at, http.StatusLocked)
	if code, _, text := run.send(client, "UNLOCK", at+"&any=true", nil); code != http.StatusLocked {
		t.Errorf("%d %s", code, text)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	run.locks(client, at, http.StatusOK)
}

func TestTofuRefuses(t *testing.T) {
	i := openInn(t, nil, standard)
	at, run := i.server.URL+"/v1/tofu", newRun(t, "1")
	for _, c := range []struct {
		method, query string
		info          any
		code          int
		text          string
	}{
		{"LOCK", "", run.info, 400, "no key"},
		{"LOCK", "?key=k&lock_delay=5", run.info, 400, "lock_delay=5"},
		{"LOCK", "?key=k&lock_delay_seconds=5s", run.info, 400, "number of seconds"},
		{"LOCK", "?key=k&lock_delay_seconds=NaN", run.info, 400, "number of seconds"},
		{"LOCK", "?key=k&lock_delay_seconds=1e7", run.info, 400, "lock_delay_seconds"},
		{"LOCK", "?key=k&max_hold_seconds=-1", run.info, 400, "max_hold_seconds"},
		{"LOCK", "?key=k&any=maybe", run.info, 400, "any=maybe"},
		{"LOCK", "?key=k", nil, 400, "no ID"},
		{"LOCK", "?key=k", "text", 400, "no lock info"},
		{"LOCK", "?key=k", tofu.Info{ID: strings.Repeat("x", 129)}, 400, "more than 128 bytes"},
		{"LOCK", "?key=k", tofu.Info{ID: "a\n"}, 400, "the ID"},
		{"LOCK", "?key=%01", run.info, 400, "key"},
		{"GET", "?key=k", nil, 400, "no states"},
	} {
		code, _, text := run.send(i.server.Client(), c.method, at+c.query, c.info)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s %s: %d %s, want %d with %s", c.method, c.query, code, text, c.code, c.text)
		}
	}
	i.leases.mu.Lock()
	defer i.leases.mu.Unlock()
	if len(i.leases.all) > 0 {
		t.Errorf("%d leases are left", len(i.leases.all))
	}
}

// A run shows a token of the agent, or a derived secret, as the password. With a derived secret it
// has the rights of the secret.
func TestTofuShowsASecret(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	allowed, err := (&call{}).readTokens("", token)
	if err != nil {
		t.Fatal(err)
	}
	i := openInn(t, allowed, standard)
	client := i.server.Client()
	team := secretFor(t, "team", "lock team/*")
	for _, c := range []struct {
		key, password string
		want          int
	}{
		{"team/a", "", 401},
		{"team/a", token[1:], 401},
		{"team/a", token, 200},
		{"team/b", team, 200},
		{"others/a", team, 403},
	} {
		run := newRun(t, c.key)
		run.username, run.password = "tofu", c.password
		run.locks(client, i.stateLock(c.key), c.want)
	}
	k, err := i.node.Peek(t.Context(), "team/b")
	if err != nil || len(k.Queue) != 1 || k.Queue[0].Holder != "agent (for team)" {
		t.Errorf("the leader shows %+v, %v", k, err)
	}
	run := newRun(t, "team/b") // has the right ID and no right
	run.username, run.password = "tofu", secretFor(t, "others", "lock others/*")
	run.locks(client, i.stateLock("team/b"), 403)
	run.unlocks(client, i.stateLock("team/b"), 403)
	run = newRun(t, "team/a") // of another program on this agent: the ID is not enough
	run.username, run.password = "tofu", team
	run.unlocks(client, i.stateLock("team/a"), 403)
	run.password = token
	run.unlocks(client, i.stateLock("team/a"), 200)
	run = newRun(t, "team/b")
	run.username, run.password = "tofu", token
	run.unlocks(client, i.stateLock("team/b"), 200)
}

// Programs with one derived secret are one program, on every agent: a LOCK and an UNLOCK of a run
// that are repeated at another agent succeed. A program with another secret needs force to end the
// hold of a run.
func TestTofuOfOneSecretAtOtherAgents(t *testing.T) {
	one := openInn(t, nil, standard)
	two, three := one.another(), one.another()
	run := newRun(t, "run-1")
	run.username, run.password = "tofu", secretFor(t, "team", "lock team/*")
	const key = "team/a"
	token := func() (now mortise.Token) {
		t.Helper()
		k, err := one.node.Peek(t.Context(), key)
		if err != nil || len(k.Queue) > 1 {
			t.Fatalf("%+v, %v", k, err)
		}
		for _, s := range k.Queue {
			now = s.Token
		}
		return now
	}
	run.locks(one.server.Client(), one.stateLock(key), http.StatusOK)
	first := token()
	run.locks(two.server.Client(), two.stateLock(key), http.StatusOK)
	if second := token(); second <= first {
		t.Errorf("the token was %d before and is %d", first, second)
	}
	run.unlocks(three.server.Client(), three.stateLock(key), http.StatusOK)
	if left := token(); left != 0 {
		t.Errorf("the hold with token %d is left", left)
	}
	run.unlocks(three.server.Client(), three.stateLock(key), http.StatusOK)
	run.locks(one.server.Client(), one.stateLock(key), http.StatusOK)
	held := token()
	forced := run // the command force-unlock sends the ID alone
	forced.info = tofu.Info{ID: run.info.ID}
	forced.password = secretFor(t, "others", "lock team/*")
	forced.unlocks(two.server.Client(), two.stateLock(key), http.StatusForbidden)
	if now := token(); now != held {
		t.Errorf("the token was %d before and is %d", held, now)
	}
	forced.password = secretFor(t, "admins", "lock team/*", "read team/*", "force team/*")
	forced.unlocks(two.server.Client(), two.stateLock(key), http.StatusOK)
	if left := token(); left != 0 {
		t.Errorf("the hold with token %d is left", left)
	}
}

// The UNLOCK of a run whose lock was lost must report the loss, and end the lease.
func TestTofuLosesALock(t *testing.T) {
	i := openInn(t, nil, standard)
	client, run := i.server.Client(), newRun(t, "1")
	at := i.stateLock("k") + "&lock_delay_seconds=0"
	run.locks(client, at, http.StatusOK)
	k, err := i.node.Peek(t.Context(), "k")
	if err != nil || len(k.Queue) == 0 {
		t.Fatal(k, err)
	}
	if ended, err := i.node.ForceUnlock(t.Context(), "k", k.Queue[0].Token, "a test"); err != nil || !ended {
		t.Fatal(ended, err)
	}
	eventually(t, "the agent hears of the end", func() error {
		if i.leases.holds(`tofu "k" "1"`) {
			return fmt.Errorf("it has the lock")
		}
		return nil
	})
	if code, _, text := run.send(client, "UNLOCK", at, run.info); code != http.StatusGone ||
		!strings.Contains(text, "a test") {
		t.Errorf("%d %s", code, text)
	}
	i.leases.mu.Lock()
	defer i.leases.mu.Unlock()
	if len(i.leases.all) > 0 {
		t.Errorf("%d leases are left", len(i.leases.all))
	}
}

type lostLock struct{ wantedLock }

func (lostLock) Err() error        { return mortise.ErrLost }
func (lostLock) UnlockSoon() error { return mortise.ErrLost }

// The lease of a lost lock ends when its place is needed. No keepalive changes the time of a
// lasting lease.
func TestLastingLeasesMakeRoom(t *testing.T) {
	ls, token := newLeases(nil), mortise.Token(0)
	open := func(id string, lock holding) {
		t.Helper()
		done, err := ls.lasting("x", id, "run", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		token++
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.all[id].locks[token] = lock
	}
	open("lost", lostLock{})
	open("held", wantedLock{})
	for range maxLeases/2 - 2 {
		if _, err := ls.open("x", "other", 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ls.open("x", "other", 0); !errors.Is(err, errTooMuch) {
		t.Fatal(err)
	}
	open("new", wantedLock{})
	if _, err := ls.lasting("x", "another", "run", 0); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	if _, _, err := ls.keep(nil, "held"); !errors.Is(err, errNoLease) {
		t.Errorf("a keepalive of a lasting lease: %v", err)
	}
	if !ls.holds("held") || !ls.holds("new") || ls.drop("lost", "") {
		t.Error("the wrong lease has ended")
	}
}

// A lease that ends while its timer fires takes none with it that the same run has opened since.
func TestLeasesThatEndWhenTheirTimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := newLeases(nil)
		open := func() {
			if _, err := ls.lasting("x", "run", "run", time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		open()
		first := ls.all["run"]
		ls.mu.Lock()
		time.Sleep(time.Minute) // the timer has fired, and its function waits for the mutex
		ls.remove(first, "")
		ls.mu.Unlock()
		open()
		synctest.Wait()
		if ls.all["run"] == nil || ls.all["run"] == first {
			t.Error("the timer has ended another lease")
		}
		ls.close()
	})
}

// A lock stays taken when its agent dies, for its lock delay. The same run and force-unlock reach
// it through another agent.
func TestTofuAgentsDie(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	a, b, c := f.agents[0], f.agents[1], f.agents[2]
	at := func(key, terms string) string { return "http://localhost/v1/tofu?key=" + key + terms }
	one, two := newRun(t, "run-1"), newRun(t, "run-2")
	one.locks(a.client(), at("kept", ""), http.StatusOK)
	one.locks(a.client(), at("free", "&lock_delay_seconds=0"), http.StatusOK)
	one.locks(a.client(), at("old", "&max_hold_seconds=1&lock_delay_seconds=0"), http.StatusOK)
	one.locks(c.client(), at("stopped", ""), http.StatusOK)
	f.mortise("get", "kept").wants(t, exitOK, "OperationTypeApply by ann by night@build-7")
	f.mortise("get", "-o", "json", "kept").wants(t, exitOK, `"tofu.id":"run-1"`)
	two.locks(b.client(), at("kept", ""), http.StatusLocked)
	eventually(t, "the longest time ends", func() error {
		if code, _, text := two.send(b.client(), "LOCK", at("old", ""), two.info); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	f.mortise("audit").wants(t, exitOK,
		`client "ann by night@build-7" of the agent held its lock for its longest time, 1s`)
	a.kill()
	eventually(t, "the session of the killed agent ends", func() error {
		if code, _, text := two.send(b.client(), "LOCK", at("free", ""), two.info); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	if holder := two.locks(b.client(), at("kept", ""), http.StatusLocked); holder != one.info {
		t.Errorf("the holder is\n%+v, want\n%+v", holder, one.info)
	}
	one.locks(b.client(), at("kept", ""), http.StatusOK) // takes it over
	two.locks(c.client(), at("kept", ""), http.StatusLocked)
	one.unlocks(c.client(), at("kept", ""), http.StatusOK) // force-unlock elsewhere
	two.locks(c.client(), at("kept", ""), http.StatusOK)
	two.unlocks(c.client(), at("kept", ""), http.StatusOK)

	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	two.locks(b.client(), at("stopped", ""), http.StatusLocked)
	one.unlocks(b.client(), at("stopped", ""), http.StatusOK)
	two.locks(b.client(), at("stopped", ""), http.StatusOK)
}
