package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// endingNet answers each question with values that would be good ones, also beside an error.
type endingNet struct {
	Net
	ends func(ctx context.Context) error // returns when the call ends
}

func (n endingNet) Ask(ctx context.Context, _ string, to nodeid.ID, _ []byte) ([]byte, nodeid.ID, error) {
	return prepareAnswer(4, 0), to, n.ends(ctx)
}

func (n endingNet) QueryStatus(ctx context.Context, _ string, to nodeid.ID, _ StatusQuery) (StatusReply, error) {
	return StatusReply{VoterStatus: &VoterStatus{MayStop: true, Leader: to}}, n.ends(ctx)
}

func (n endingNet) Probe(ctx context.Context, _ string, _ nodeid.ID) error { return n.ends(ctx) }

// asker is a Cluster with the core of a voter, whose questions the test carries out.
type asker struct {
	*Cluster
	sight *sight
}

func newAsker(t *testing.T, ends func(ctx context.Context) error) asker {
	s := &sight{leader: nodeidtest.ID(2)}
	c := &Cluster{cfg: Config{Net: endingNet{ends: ends}, Clock: clock.Monotonic(),
		Logger: slog.New(slog.DiscardHandler)}, in: newInbox()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.own.core, _ = member(t, s)
	c.own.asking = map[string]bool{}
	return asker{c, s}
}

// work carries out what the questions have posted, and returns how much that was.
func (a asker) work() int {
	items := a.in.take()
	for _, i := range items {
		i.do()
	}
	return len(items)
}

// outcomes are the ways in which a call of Net ends, and how long it may take.
var outcomes = map[string]struct {
	ends   func(ctx context.Context) error
	within time.Duration
}{
	"answered":   {func(context.Context) error { return nil }, 0},
	"refused":    {func(context.Context) error { return ErrRefused }, 0},
	"a stranger": {func(context.Context) error { return ErrForeign }, 0},
	"failed":     {func(context.Context) error { return errors.New("failed") }, 0},
	"never answered": {func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, askWithin},
}

// Each kind of question ends within its time, whatever the other instance does, and is then
// reported to the core once.
func TestEachQuestionIsGivenUp(t *testing.T) {
	kinds := map[string]func(a asker){
		"founding": func(a asker) { a.put(founding.Question{Addr: addrOf(1), To: nodeidtest.ID(2), Body: []byte("q")}) },
		"probe":    func(a asker) { a.task(Task{To: nodeidtest.ID(2), Addr: addrOf(1)}) },
		"message":  func(a asker) { a.task(Task{To: nodeidtest.ID(2), Addr: addrOf(1), Body: []byte("m")}) },
		"status": func(a asker) {
			a.task(Task{To: nodeidtest.ID(2), Addr: addrOf(1), Query: &StatusQuery{}, inquiry: &Inquiry{}})
		},
	}
	for kind, ask := range kinds {
		for name, c := range outcomes {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, c.ends)
				defer a.cancel()
				ask(a)
				time.Sleep(c.within + time.Nanosecond)
				synctest.Wait()
				if n := a.work(); n != 1 {
					t.Errorf("a question of the kind %s, %s, is reported %d times after %v", kind, name, n, c.within)
				}
				if time.Sleep(time.Minute); a.work() != 0 {
					t.Errorf("a question of the kind %s, %s, is reported late", kind, name)
				}
			})
		}
	}
}

// What comes beside an error is no answer: only an answered status query is told, and all others
// are asked again.
func TestAFailedStatusQueryIsNoAnswer(t *testing.T) {
	for name, c := range outcomes {
		synctest.Test(t, func(t *testing.T) {
			a := newAsker(t, c.ends)
			defer a.cancel()
			core, now := a.own.core, 2*time.Minute
			core.Inquire(&Inquiry{Raft: 3})
			told := 0
			for range 5 {
				_, acts := turn(core, now)
				told += len(acts.Told)
				for _, e := range acts.Tasks {
					a.task(e)
					time.Sleep(c.within + time.Nanosecond)
					synctest.Wait()
					a.work()
				}
				now += 2 * queryEvery
			}
			if want := name == "answered"; (told == 1) != want || (len(core.inquiries.list) == 0) != want {
				t.Errorf("%s: told %d times, %d inquiries are left", name, told, len(core.inquiries.list))
			}
		})
	}
}

// The places of questions are given back, however a question ends, and so is the one place of its
// address.
func TestQuestionPlacesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcome, last := "", 0
		var a asker
		a = newAsker(t, func(ctx context.Context) error {
			ends := outcomes[outcome].ends
			time.Sleep(time.Millisecond)
			return ends(ctx)
		})
		defer a.cancel()
		ways := map[string]func() (func(), error){}
		for name := range outcomes {
			ways[name] = func() (func(), error) {
				outcome = name
				last++
				if a.put(founding.Question{Addr: fmt.Sprint("host", last), Body: []byte("q")}); len(a.own.backlog) > 0 {
					a.own.backlog = nil
					return nil, errors.New("it waits")
				}
				synctest.Wait() // the call has chosen its outcome
				return func() {
					time.Sleep(2 * askWithin)
					synctest.Wait()
					a.work()
				}, nil
			}
		}
		limits.GivenBack(t, limits.Places{Limit: maxAsks, Endings: ways, Used: func() int {
			if len(a.own.asking) != a.own.busy {
				t.Errorf("%d addresses are asked, %d questions are under way", len(a.own.asking), a.own.busy)
			}
			return a.own.busy
		}})
	})
}
