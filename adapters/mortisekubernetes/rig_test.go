package mortisekubernetes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise/mortisetest"
)

const key = "leader/orders"

// usual are the durations that client-go and controller-runtime have by default.
var usual = durations{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}

type durations struct{ lease, renew, retry time.Duration }

// longestTry is the longest time between two tries of a candidate, with the jitter of client-go.
func (d durations) longestTry() time.Duration {
	return time.Duration(float64(d.retry) * (1 + leaderelection.JitterFactor))
}

// leaders records who leads, and fails the test if two candidates lead at a time.
type leaders struct {
	t   *testing.T
	mu  sync.Mutex
	now []string // the candidates that lead at this moment
	all []string // all leaders, in order
}

func (l *leaders) begin(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.all = append(l.now, identity), append(l.all, identity)
	if len(l.now) > 1 {
		l.t.Errorf("%v lead at a time", l.now)
	}
}

func (l *leaders) end(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, leader := range l.now {
		if leader == identity {
			l.now = append(l.now[:i:i], l.now[i+1:]...)
			return
		}
	}
}

// leader returns the present leader, or "".
func (l *leaders) leader() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.now) == 0 {
		return ""
	}
	return l.now[0]
}

func (l *leaders) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// candidate is an elector of client-go that runs.
type candidate struct {
	*leaderelection.LeaderElector
	cancel context.CancelFunc // ends the elector, as the end of its process in good order would
	done   chan struct{}      // closed when Run has returned
}

// run starts an elector. It ends before the test does.
func (l *leaders) run(lock resourcelock.Interface, d durations, release bool) *candidate {
	l.t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: d.lease, RenewDeadline: d.renew, RetryPeriod: d.retry, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				identity := lock.Identity() // it changes at the end of the leadership
				l.begin(identity)
				<-ctx.Done()
				l.end(identity)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &candidate{LeaderElector: elector, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		elector.Run(ctx)
	}()
	l.t.Cleanup(c.stop)
	return c
}

func (c *candidate) stop() {
	c.cancel()
	<-c.done
}

// election is three nodes with an elector on each.
type election struct {
	*mortisetest.Cluster
	*leaders
	locks      []*Lock
	candidates []*candidate
}

func newElection(t *testing.T, d durations, release bool, o Options) *election {
	t.Helper()
	e := &election{Cluster: mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), leaders: &leaders{t: t}}
	for i := range 3 {
		lock := New(e.Node(i), key, fmt.Sprint("pod-", i), o)
		e.locks, e.candidates = append(e.locks, lock), append(e.candidates, e.run(lock, d, release))
	}
	return e
}

// awaitLeader waits until a candidate other than the given one leads, and returns its number.
func (e *election) awaitLeader(except int) (leads int) {
	e.t.Helper()
	e.Until("a candidate leads", func() bool {
		for i, lock := range e.locks {
			if i != except && e.leader() == lock.Identity() {
				leads = i
				return true
			}
		}
		return false
	})
	return leads
}
