package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

type heard struct {
	mu    sync.Mutex
	lines []string
	locks []mortise.LockEvent
	nodes []mortise.NodeEvent
}

func (h *heard) lock(hook string) func(mortise.LockEvent) {
	return func(e mortise.LockEvent) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, hook+" "+string(e.Outcome))
		h.locks = append(h.locks, e)
	}
}

// subjects has the first word of the line for each state.
var subjects = map[mortise.State]string{
	mortise.RenewalAcknowledged: "renewed", mortise.RenewalUnanswered: "renewed",
	mortise.SessionOpened: "session", mortise.SessionClosed: "session", mortise.SessionExpired: "session",
	mortise.SessionRestarted: "session", mortise.SessionStopped: "session",
	mortise.LeaseSafe: "lease", mortise.LeaseJeopardy: "lease", mortise.LeaseLost: "lease",
	mortise.LeaderNew: "leader", mortise.LeaderNone: "leader", mortise.LeaderAgain: "leader",
	mortise.NodeAvailable: "available", mortise.NodeUnavailable: "available",
}

func (h *heard) node(e mortise.NodeEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, strings.TrimSpace(subjects[e.State]+" "+string(e.State)+" "+e.Leader))
	h.nodes = append(h.nodes, e)
}

func (h *heard) synced(_ time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprint("synced ", err))
}

func (h *heard) hooks() *mortise.Hooks {
	acquired, unlocked := h.lock("acquired"), h.lock("unlocked")
	return &mortise.Hooks{
		Acquired: func(_ context.Context, e mortise.LockEvent) any { acquired(e); return fmt.Sprint("tag of ", e.Key) },
		Unlocked: func(_ context.Context, e mortise.LockEvent) { unlocked(e) },
		Lost:     h.lock("lost"), Node: h.node, Synced: h.synced,
	}
}

func (h *heard) last(t *testing.T) mortise.LockEvent {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.locks) == 0 {
		t.Fatal("nothing was told")
	}
	return h.locks[len(h.locks)-1]
}

// A call of h.of returns the lines of h that begin with one of the words, and empties h.
func (h *heard) of(words ...string) (lines []string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		if first, _, _ := strings.Cut(line, " "); slices.Contains(words, first) {
			lines = append(lines, line)
		}
	}
	h.lines, h.locks, h.nodes = nil, nil, nil
	return lines
}

func hookedFleet(t *testing.T, n int, change ...func(*mortise.Config)) (*fleet, []*heard) {
	var ears []*heard
	f := startFleet(t, n, append(change, func(c *mortise.Config) {
		ear := new(heard)
		ears = append(ears, ear)
		c.Hooks = ear.hooks()
	})...)
	return f, ears
}

func TestHooksTellHowAcquireEnds(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		at := (f.leader() + 1) % 3
		n, ear := f.nodes[at], ears[at]
		in := func(d time.Duration) func() context.Context {
			return func() context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				t.Cleanup(cancel)
				return ctx
			}
		}
		canceled := func() context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}
		held := f.acquire(at, mortise.Request{Key: "k", Value: "busy"})
		if e := ear.last(t); e.Outcome != mortise.OutcomeGranted || e.Err != nil || e.Part != (mortise.Part{Key: "k"}) ||
			e.Also != nil || e.Token != held.Token() || e.Behind != nil || e.Waiting != 0 {
			t.Errorf("granted: %+v", e)
		}
		for _, c := range []struct {
			ctx     func() context.Context
			request mortise.Request
			want    mortise.Outcome
			behind  bool
			waiting int
		}{
			{in(time.Minute), mortise.Request{Key: "k", Try: true}, mortise.OutcomeHeld, true,
				0},
			{in(time.Second), mortise.Request{Key: "k", Mode: mortise.Shared}, mortise.OutcomeTimeout, true, 0},
			{canceled, mortise.Request{Key: "k"}, mortise.OutcomeCanceled, false, -1},
			{in(time.Minute), mortise.Request{Key: "k", Mode: mortise.Permits(1, 2)}, mortise.OutcomeTimeout,
				true, 0},
			{in(time.Minute), mortise.Request{Key: "z", Also: []mortise.Part{{Key: "k"}}}, mortise.OutcomeTimeout, true, 0},
			{in(time.Minute), mortise.Request{Key: "k", Mode: mortise.Permits(3, 2)}, mortise.OutcomeBadRequest,
				false, -1},
			{in(time.Minute), mortise.Request{Key: ""}, mortise.OutcomeBadRequest, false, -1},
			{func() context.Context { return held.Context(t.Context()) },
				mortise.Request{Key: "k", Mode: mortise.Permits(1, 2)}, mortise.OutcomeDeadlock, false, -1},
			{func() context.Context { return held.Context(t.Context()) }, mortise.Request{Key: "k"},
				mortise.OutcomeEntered, false, 0},
		} {
			began := time.Now()
			l, err := n.Acquire(c.ctx(), c.request)
			e := ear.last(t)
			if e.Outcome != c.want || e.Part != partOf(&c.request) || !slices.Equal(e.Also, c.request.Also) ||
				!errors.Is(err, e.Err) || (e.Behind != nil) != c.behind || e.Waiting != c.waiting {
				t.Errorf("%+v: %+v, want %s, %d waiting", c.request, e, c.want, c.waiting)
			}
			if e.Took != time.Since(began) {
				t.Errorf("%s took %v, want %v", c.want, e.Took, time.Since(began))
			}
			if c.behind && e.Behind != nil && (e.Behind.Token != held.Token() || e.Behind.Holder != n.config.Name ||
				e.Behind.Value != "busy") {
				t.Errorf("%s is behind %+v", c.want, e.Behind)
			}
			if c.want == mortise.OutcomeEntered {
				if e.Token != held.Token() || e.Tag != "tag of k" {
					t.Errorf("%+v", e)
				}
				unlock(t, l)
				if e := ear.last(t); e.Outcome != mortise.OutcomeLeft || e.Held != 0 || e.Tag != "tag of k" {
					t.Errorf("the second handle: %+v", e)
				}
			}
		}
		waiter := f.later(at, mortise.Request{Key: "k"})
		time.Sleep(10 * time.Second)
		if _, err := n.Acquire(t.Context(), mortise.Request{Key: "k", MaxWaiting: 1}); !errors.Is(err,
			mortise.ErrQueueFull) || ear.last(t).Outcome != mortise.OutcomeQueueFull {
			t.Errorf("%v, %+v", err, ear.last(t))
		}
		unlock(t, held)
		if e := ear.last(t); e.Outcome != mortise.OutcomeGranted && e.Outcome != mortise.OutcomeConfirmed {
			t.Errorf("%+v", e)
		}
		next := comes(t, "the next", waiter)
		time.Sleep(time.Second)
		ear.mu.Lock()
		i := slices.IndexFunc(ear.locks, func(e mortise.LockEvent) bool {
			return e.Token == next.Token() &&
				e.Outcome == mortise.OutcomeGranted
		})
		e := ear.locks[i]
		ear.mu.Unlock()
		if e.Took < 10*time.Second || e.Took > 11*time.Second || e.Behind == nil || e.Behind.Token != held.Token() {
			t.Errorf("who waited: %+v", e)
		}
		unlock(t, next)
		f.isolate(at)
		time.Sleep(10 * time.Second)
		if _, err := n.TryLock(t.Context(), "k"); !errors.Is(err, mortise.ErrNotReady) ||
			ear.last(t).Outcome != mortise.OutcomeNotReady {
			t.Errorf("%v, %+v", err, ear.last(t))
		}
		f.close(at)
		if _, err := n.Lock(t.Context(), "k"); !errors.Is(err, mortise.ErrClosed) ||
			ear.last(t).Outcome != mortise.OutcomeClosed {
			t.Errorf("%v, %+v", err, ear.last(t))
		}
	})
}

func TestHooksTellHowUnlockEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		at := (f.leader() + 1) % 3
		ear := ears[at]
		l := f.lock(at, "k")
		time.Sleep(3 * time.Second)
		for range 2 { // the second unlock causes no event
			unlock(t, l)
		}
		if e := ear.last(t); e.Outcome != mortise.OutcomeConfirmed || e.Held != 3*time.Second ||
			e.Took >= time.Second || e.Token != l.Token() || e.Tag != "tag of k" {
			t.Errorf("%+v", e)
		}
		l = f.lock(at, "k")
		if err := l.UnlockSoon(); err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
		if got := ear.of("unlocked"); !slices.Equal(got, []string{"unlocked confirmed", "unlocked soon"}) {
			t.Errorf("%q", got)
		}
		l = f.acquire(at, mortise.Request{Key: "k", MaxHold: time.Second})
		time.Sleep(2 * time.Second)
		if e := ear.last(t); e.Outcome != mortise.OutcomeOverdue || e.Held < time.Second || e.Held > 2*time.Second ||
			!errors.Is(e.Err, mortise.ErrLost) || e.Tag != "tag of k" {
			t.Errorf("%+v", e)
		}
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		l = f.lock(at, "k")
		f.isolate(at)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wantIs(t, l.Unlock(ended), context.Canceled)
		if got := ear.of("unlocked", "lost"); !slices.Equal(got, []string{"lost overdue", "unlocked lost",
			"unlocked unconfirmed"}) {
			t.Errorf("%q", got)
		}
		f.rejoin(at)
		f.nothingLeft()
	})
}

func TestHooksTellWhyALockWasLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		leader := f.leader()
		a, b := (leader+1)%3, (leader+2)%3
		forced := f.lock(a, "forced")
		if ended, err := f.nodes[b].ForceUnlock(t.Context(), "forced", forced.Token(), "test"); !ended || err != nil {
			t.Fatal(ended, err)
		}
		time.Sleep(time.Second)
		if got := ears[a].of("lost"); !slices.Equal(got, []string{"lost forced"}) {
			t.Errorf("%q", got)
		}
		f.lock(a, "of one that is cut off")
		f.isolate(a)
		time.Sleep(10 * time.Second)
		ears[a].mu.Lock()
		if !slices.Contains(ears[a].lines, "renewed unanswered") {
			t.Errorf("no renewal stayed without an answer: %q", ears[a].lines)
		}
		ears[a].mu.Unlock()
		if got := ears[a].of("lost", "lease", "available"); !slices.Equal(got,
			[]string{"available unavailable", "lease jeopardy", "lost lease", "lease lost"}) {
			t.Errorf("%q", got)
		}
		f.rejoin(a)
		f.ready()
		if got := ears[a].of("lost", "lease", "available", "session"); !slices.Equal(got,
			[]string{"session expired", "session opened", "lease safe", "available available"}) &&
			!slices.Equal(got, []string{"session expired", "lease lost", "session opened", "lease safe",
				"available available"}) {
			t.Errorf("%q", got)
		}
		f.lock(a, "of one that is closed")
		f.close(a)
		if got := ears[a].of("lost", "session"); !slices.Equal(got, []string{"lost stopped", "session stopped"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestHooksTellWhatBecomesOfTheNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		leader := f.leader()
		at := (leader + 1) % 3
		ear := ears[at]
		start := ear.of("session", "available", "leader", "lease")
		for _, want := range []string{"session opened", "lease safe", "available available", "leader new " +
			f.nodes[leader].config.Name} {
			if !slices.Contains(start, want) {
				t.Errorf("%q is not among %q", want, start)
			}
		}
		time.Sleep(20 * time.Second)
		ear.mu.Lock()
		acknowledged := 0
		for _, e := range ear.nodes {
			if e.State == mortise.RenewalAcknowledged && e.Took >= 0 && e.Took < time.Second {
				acknowledged++
			}
		}
		ear.mu.Unlock()
		if got := ear.of("session", "available", "leader", "lease"); len(got) > 0 || acknowledged < 20 {
			t.Errorf("in 20 s of nothing with a TTL of 2 s: %d renewals and %q", acknowledged, got)
		}
		f.crash(leader)
		f.leader()
		f.ready()
		time.Sleep(20 * time.Second)
		got := ear.of("leader", "available", "session")
		next := "leader new " + f.nodes[f.leader()].config.Name
		for _, want := range []string{"leader none", next, "available unavailable",
			"available available"} {
			if !slices.Contains(got, want) {
				t.Errorf("%q is not among %q", want, got)
			}
		}
		if slices.Contains(got, "session expired") {
			t.Errorf("a failover ended a session: %q", got)
		}
		s := f.nodes[at].Status()
		if s.Available <= 30*time.Second || s.Available >= s.Age || s.Age > 5*time.Minute {
			t.Errorf("available for %v of %v", s.Available, s.Age)
		}
	})
}

func TestHooksTellHowLongTheDiskTakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 1, inDir(t.TempDir()))
		before := len(ears[0].of("synced"))
		unlock(t, f.lock(0, "k"))
		if got := ears[0].of("synced"); before == 0 || len(got) < 2 || got[0] != "synced <nil>" {
			t.Errorf("%d before, then %q", before, got)
		}
		for i := range 2 {
			if i == 1 {
				f, ears = hookedFleet(t, 1)
			}
			if s := f.nodes[0].Status(); s.HooksDropped != 0 {
				t.Errorf("%d dropped", s.HooksDropped)
			}
		}
		if got := ears[0].of("synced"); len(got) > 0 {
			t.Errorf("in memory: %q", got)
		}
	})
}

func partOf(r *mortise.Request) mortise.Part {
	return mortise.Part{Key: r.Key, Mode: r.Mode, Tree: r.Tree}
}
