package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// This function makes the Result of an attempt whose entry leads to the given lines.
func at(a Attempt, lines ...foundLine) Result {
	return Result{entry: a.entry, asked: a.asked, found: found{lines: lines}}
}

func one(t *testing.T, j *Join, now time.Duration) Attempt {
	t.Helper()
	due, _ := j.Due(now, false, func() uint64 { return 0 })
	if len(due) != 1 {
		t.Fatalf("%d attempts are due at %v, want one", len(due), now)
	}
	return due[0]
}

func TestNamesAreLookedUpForeverWithJitter(t *testing.T) {
	for _, led := range []bool{false, true} {
		every := map[bool]time.Duration{false: resolveEvery, true: resolveEverySlow}[led]
		const many = 4
		pauses, last := map[time.Duration]int{}, map[time.Duration]int{}
		for i := range many {
			j := New(Config{Entries: []string{"all.example:1"}})
			random := rand.New(rand.NewPCG(uint64(i), 0))
			now, before := time.Duration(0), time.Duration(-1)
			for range 600 {
				due, next := j.Due(now, led, random.Uint64)
				if len(due) == 1 {
					if pause := now - before; before >= 0 {
						if pause < every || pause > every*5/4 {
							t.Fatalf("a pause of %v", pause)
						}
						pauses[pause.Round(every/100)]++
					}
					before = now
					j.Take(now, at(due[0], foundLine{host: "all.example", port: "1"}))
					_, next = j.Due(now, led, random.Uint64)
				}
				if next <= now || next > now+every*5/4 {
					t.Fatalf("at %v the next look is at %v", now, next)
				}
				now = next
			}
			last[now]++
		}
		if len(pauses) < 20 || len(last) < many {
			t.Errorf("%d different pauses, and %d different last moments of %d: no jitter", len(pauses), len(last),
				many)
		}
	}
}

func TestWithoutALeaderLookupsAreFastAtOnce(t *testing.T) {
	j := New(Config{Entries: []string{"a.example:1", "10.0.0.1:1"}})
	zero := func() uint64 { return 0 }
	due, _ := j.Due(0, true, zero)
	if len(due) != 1 {
		t.Fatalf("%d attempts, want one: an IP address is not looked up", len(due))
	}
	if again, next := j.Due(time.Minute, false, zero); len(again) != 0 || next < 2*time.Minute {
		t.Errorf("%d attempts begin beside the one under way, and the next look is at %v", len(again), next)
	}
	j.Take(0, at(due[0]))
	if early, next := j.Due(time.Second, true, zero); len(early) != 0 || next != resolveEverySlow {
		t.Errorf("%d attempts after a second, the next look at %v", len(early), next)
	}
	if early, next := j.Due(time.Second, false, zero); len(early) != 0 || next != time.Second+resolveEvery*5/4 {
		t.Errorf("%d attempts after a second, the next look at %v", len(early), next)
	}
	one(t, j, time.Second+resolveEvery*5/4)
}

func TestAFailureKeepsWhatWasKnown(t *testing.T) {
	j := New(Config{Entries: []string{"srv:///peers.example"}, Self: "10.0.0.1:1"})
	a, b := foundLine{host: "a", port: "1", addrs: []string{"10.0.0.1"}},
		foundLine{host: "b", port: "2", addrs: []string{"::ffff:10.0.0.2", "10.0.0.2"}}
	gone := &net.DNSError{Err: "no such host", IsNotFound: true}
	down := errors.New("the resolver\nis down")
	now := time.Duration(0)
	for _, c := range []struct {
		what     string
		got      found
		addrs    string
		failed   string
		appeared string
		resolved bool
	}{
		{"both", found{lines: []foundLine{a, b}}, "[10.0.0.1:1 10.0.0.2:2]", "", "[10.0.0.2:2]", true},
		{"one host fails", found{lines: []foundLine{a, {host: "b", port: "2", err: down}}}, "[10.0.0.1:1 10.0.0.2:2]",
			"b: the resolver is down", "[]", false},
		{"the list fails", found{err: down}, "[10.0.0.1:1 10.0.0.2:2]", "the resolver is down", "[]", false},
		{"one host has gone", found{lines: []foundLine{a, {host: "b", port: "2", err: gone}}}, "[10.0.0.1:1]", "",
			"[]", true},
		{"it is back", found{lines: []foundLine{a, b}}, "[10.0.0.1:1 10.0.0.2:2]", "", "[10.0.0.2:2]", true},
		{"the name has gone", found{err: gone}, "[]", "", "[]", true},
		{"too many", found{lines: []foundLine{{host: "c", port: "3", addrs: hosts(maxListAddrs + 1)}}}, "[]",
			"1025 addresses are more than 1024", "[]", false},
	} {
		now += time.Minute
		attempt := one(t, j, now)
		before := j.Entries()[0].Resolved
		appeared := j.Take(now, Result{entry: attempt.entry, asked: attempt.asked, found: c.got})
		e := j.Entries()[0]
		if fmt.Sprint(e.Addrs) != c.addrs || e.Failed != c.failed || fmt.Sprint(appeared) != c.appeared {
			t.Errorf("%s: %v, %q, new are %v; want %s, %q, %s", c.what, e.Addrs, e.Failed, appeared, c.addrs,
				c.failed, c.appeared)
		}
		if want := map[bool]time.Duration{true: now, false: before}[c.resolved]; e.Resolved != want {
			t.Errorf("%s: it counts as resolved at %v, want %v", c.what, e.Resolved, want)
		}
	}
}

func hosts(n int) (ips []string) {
	for i := range n {
		ips = append(ips, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
	}
	return ips
}

func TestTroubleIsToldWithTheWayOut(t *testing.T) {
	path := "file://" + t.TempDir() + "/peers"
	for name, c := range map[string]struct {
		entries []string
		lines   []foundLine // result lines of the last entry
		err     error
		waiting string
		bare    bool // outside of Kubernetes
		want    string
	}{
		"no addresses, elsewhere": {entries: []string{"a.example:1"}, waiting: "x", bare: true,
			want: "; a.example:1 has no addresses yet; correct the name in Join, or create its records"},
		"this instance, elsewhere": {entries: []string{"a.example:1"}, bare: true,
			lines: []foundLine{{host: "a.example", port: "1", addrs: []string{"10.0.0.1"}}}, waiting: "x",
			want: "; Join leads to no instance but this one; let it lead to the others, too"},
		"nothing is awaited": {entries: []string{"a.example:1"}, waiting: "", want: ""},
		"no addresses": {entries: []string{"a.example:1"}, waiting: "x",
			want: "; a.example:1 has no addresses yet" + headless},
		"this instance": {entries: []string{"a.example:1"},
			lines: []foundLine{{host: "a.example", port: "1", addrs: []string{"10.0.0.1"}}}, waiting: "x",
			want: "; Join leads to no instance but this one" + headless},
		"only itself, by IP": {entries: []string{"10.0.0.1:1"}, waiting: "x",
			want: "; Join leads to no instance but this one"},
		"another": {entries: []string{"10.0.0.2:1"}, waiting: "x", want: ""},
		"a host of a list": {entries: []string{"srv:///s.example"}, lines: []foundLine{{host: "h", port: "2"}},
			waiting: "x", want: "; srv:///s.example lists h:2, which has no address yet" + headless},
		"an empty file": {entries: []string{path}, waiting: "x", want: "; " + path + " lists no instance"},
		"a failure": {entries: []string{"a.example:1"}, err: errors.New("down"), waiting: "x",
			want: "; a.example:1 cannot be resolved: down"},
		"a failure, told": {entries: []string{"a.example:1"}, err: errors.New("down"),
			waiting: "a.example:1 is bad", want: ""},
	} {
		j := New(Config{Entries: c.entries, Self: "10.0.0.1:1", Kubernetes: !c.bare})
		if due, _ := j.Due(0, false, func() uint64 { return 0 }); len(due) > 0 {
			j.Take(0, Result{entry: due[0].entry, found: found{lines: c.lines, err: c.err}})
		}
		if got := j.Trouble(c.waiting); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	j := New(Config{Entries: []string{"a:1", "b:1", "c:1", "d:1", "e:1"}})
	due, _ := j.Due(0, false, func() uint64 { return 0 })
	for _, a := range due {
		j.Take(0, at(a))
	}
	if got := j.Trouble("x"); !strings.Contains(got, "c:1 has no addresses yet; and 2 more entries of Join; ") {
		t.Errorf("%q", got)
	}
}

// A group that works names the entries of Join that lead nowhere: a misspelt one at once, and one
// that had addresses later, because its instance may be restarting.
func TestAnEntryThatLeadsNowhereIsNamed(t *testing.T) {
	const min = time.Minute
	there := func(j *Join, now time.Duration, entry int, addrs ...string) {
		host, port, _ := net.SplitHostPort(j.entries[entry].entry.Name)
		lines := []foundLine{{host: host, port: port, addrs: addrs}}
		j.Take(now, Result{entry: entry, asked: now, found: found{lines: lines}})
	}
	j := New(Config{Entries: []string{"a.example:1", "b.exmaple:1", "10.0.0.3:1"}})
	if text := j.Unresolved(0); text != "" {
		t.Errorf("before the first lookup: %q", text)
	}
	there(j, 0, 0, "10.0.0.1")
	there(j, 0, 1)
	const want = "b.exmaple:1 has no addresses yet; correct the name in Join, or create its records"
	if text := j.Unresolved(0); text != want {
		t.Errorf("%q, want %q", text, want)
	}
	there(j, min, 1, "10.0.0.2")
	there(j, min, 0)
	if text := j.Unresolved(5*min + time.Second); !strings.HasPrefix(text, "a.example:1 ") ||
		strings.Contains(text, "b.exmaple") {
		t.Errorf("after 5 minutes: %q", text)
	}
	there(j, 2*min, 0, "10.0.0.1")
	there(j, 3*min, 1)
	if text := j.Unresolved(5 * min); text != "" {
		t.Errorf("names that were there a few minutes ago: %q", text)
	}
	f := New(Config{Func: func(context.Context) ([]string, error) { return nil, nil }})
	f.Take(0, Result{found: found{err: errors.New("no route")}})
	for _, text := range []string{f.Unresolved(0), f.Trouble("x")} {
		if strings.Contains(text, "which Join names") ||
			!strings.Contains(text, "Config.JoinFunc fails: no route: correct it") {
			t.Errorf("%q", text)
		}
	}
}

// TestAFunctionMayDoWhatItLikes checks that a failure of the user's function is reported, that the
// function is not called concurrently, and that Run returns.
func TestAFunctionMayDoWhatItLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		var mode atomic.Value
		release := make(chan struct{})
		j := New(Config{Logger: slog.New(slog.NewTextHandler(&logs, nil)), Func: func(ctx context.Context) ([]string,
			error) {
			switch mode.Load() {
			case "panic":
				panic("boom\nboom")
			case "exit":
				runtime.Goexit()
			case "error":
				return []string{"10.0.0.1:1"}, errors.New("the API is down")
			case "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			case "deaf":
				<-release
			case "garbage":
				return []string{"10.0.0.1:1", "x"}, nil
			case "none":
				return nil, nil
			}
			return []string{"10.0.0.1:1"}, nil
		}})
		now := time.Duration(0)
		results := make(chan Result, 2)
		run := func(which string) (time.Duration, Result) {
			mode.Store(which)
			now += time.Minute
			began := time.Now()
			one(t, j, now).Run(t.Context(), func(r Result) { results <- r })
			took := time.Since(began)
			r := <-results
			j.Take(now, r)
			return took, r
		}
		for _, c := range []struct {
			mode, want string
			took       time.Duration
		}{
			{"panic", "it panicked: boom boom", 0}, {"panic", "it panicked: boom boom", 0},
			{"exit", "it has ended its goroutine", 0},
			{"error", "the API is down", 0}, {"garbage", "address 2", 0}, {"slow", "deadline exceeded", resolveWithin},
			{"none", "Config.JoinFunc returns no instance", 0}, {"deaf", "it has not returned", resolveWithin +
				resolveOverrun},
		} {
			if took, _ := run(c.mode); took != c.took || !strings.Contains(j.Trouble("x"), c.want) {
				t.Errorf("%s: after %v it says %q, want %q after %v", c.mode, took, j.Trouble("x"), c.want, c.took)
			}
		}
		if n := strings.Count(logs.String(), "Config.JoinFunc panicked; it is called again"); n != 2 ||
			!strings.Contains(logs.String(), "join_test.go") {
			t.Errorf("%d lines about two panics, a minute apart, or none with its stack:\n%s", n, logs.String())
		}
		if due, _ := j.Due(now+time.Hour, false, func() uint64 { return 0 }); len(due) > 0 {
			t.Error("it is called anew though it has not returned")
		}
		mode.Store("well")
		close(release)
		if j.Take(now, <-results); j.Entries()[0].Failed != "" {
			t.Errorf("it has returned after all, and %q stays", j.Entries()[0].Failed)
		}
		ctx, cancel := context.WithCancel(t.Context())
		mode.Store("slow")
		time.AfterFunc(time.Second/2, cancel)
		began := time.Now()
		one(t, j, now+time.Minute).Run(ctx, func(Result) {})
		if d := time.Since(began); d != time.Second/2 {
			t.Errorf("Run took %v though its context ended after half a second", d)
		}
	})
}

// TestHostsOfAListAreLookedUpAFewAtATime checks that at most resolveAtATime hosts of a list are
// looked up at a time, and that all results are used.
func TestHostsOfAListAreLookedUpAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards both counters below
		var under, most int
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			under += n
			most = max(most, under)
		}
		var lines []string
		for i := range 5 * resolveAtATime {
			lines = append(lines, fmt.Sprintf("h%d:1", i))
		}
		j := New(Config{
			Entries:  []string{"srv:///s.example"},
			Services: func(context.Context, string) ([]string, error) { return lines, nil },
			Resolve: func(context.Context, string) ([]string, error) {
				count(1)
				defer count(-1)
				time.Sleep(time.Millisecond)
				return []string{"10.0.0.2"}, nil
			},
		})
		var appeared []string
		one(t, j, 0).Run(t.Context(), func(r Result) { appeared = j.Take(0, r) })
		if !slices.Equal(appeared, []string{"10.0.0.2:1"}) || most != resolveAtATime {
			t.Errorf("found %v, up to %d lookups at a time, want %d", appeared, most, resolveAtATime)
		}
	})
}
