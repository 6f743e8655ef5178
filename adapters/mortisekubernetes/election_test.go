package mortisekubernetes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

// Three electors of client-go elect one leader, which renews its record for a minute.
func TestElectorsOfThreeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t, usual, true, Options{})
		first := e.awaitLeader(-1)
		time.Sleep(time.Minute)
		if n := e.count(); n != 1 || e.leader() != e.locks[first].Identity() {
			t.Fatalf("%d leaders in a minute without a fault", n)
		}
		for i, c := range e.candidates {
			if got := c.GetLeader(); got != e.locks[first].Identity() {
				t.Errorf("candidate %d observes the leader %q, not %q", i, got, e.locks[first].Identity())
			}
		}
		record, _, err := e.locks[(first+1)%3].Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The record has whole seconds.
		if age := time.Since(record.RenewTime.Time); age > usual.retry+2*time.Second {
			t.Errorf("the record was renewed %v ago", age)
		}
		if e.locks[first].Held().Err() != nil || e.locks[(first+1)%3].Held() != nil {
			t.Error("Held is wrong")
		}
	})
}

// Whatever ends a leadership, another candidate leads with a higher token, and never before the
// former leader has stopped.
func TestTheNextLeader(t *testing.T) {
	const ttl = 2 * time.Second                                   // of mortisetest
	expiry := ttl + usual.lease + time.Second                     // a session that is gone, and the LockDelay
	atMost := usual.longestTry() + time.Second                    // one try of a candidate, and its messages
	failover := 5 * time.Second                                   // of the leader of the group, if it is gone
	kill := func(e *election, i int) { e.Kill(i) }                // as kill -9
	isolate := func(e *election, i int) { e.Isolate(i) }          // all its connections are silent
	lose := func(e *election, i int) { e.Lose(i) }                // its lease expires, and it knows it
	stop := func(e *election, i int) { e.candidates[i].cancel() } // an end in good order
	for name, c := range map[string]struct {
		end             func(e *election, leader int)
		release         bool
		atLeast, atMost time.Duration
	}{
		"released":       {stop, true, 0, atMost},
		"not released":   {stop, false, usual.lease, expiry + atMost},
		"killed":         {kill, true, usual.lease, expiry + failover + atMost},
		"cut off":        {isolate, true, usual.lease, expiry + failover + atMost},
		"lost its lease": {lose, true, usual.lease, expiry + atMost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElection(t, usual, c.release, Options{})
				first := e.awaitLeader(-1)
				time.Sleep(10 * time.Second)
				begin, token := time.Now(), e.locks[first].Held().Token()
				c.end(e, first)
				next := e.awaitLeader(first)
				if after := time.Since(begin); after < c.atLeast || after > c.atMost {
					t.Errorf("the next leader leads after %v, not after %v to %v", after, c.atLeast, c.atMost)
				}
				if now := e.locks[next].Held().Token(); now <= token {
					t.Errorf("the token is %d after %d", now, token)
				}
				if e.locks[first].Held().Err() == nil {
					t.Error("the former leader still holds the lock")
				}
				select {
				case <-e.candidates[first].done:
				default:
					t.Error("the former elector still runs")
				}
			})
		})
	}
}

// An elector whose lock is lost does not take it again, although it is free, because its callbacks
// would not notice that the leadership has ended. When it is started again, it leads again.
func TestALostLockIsNotTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, l := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), &leaders{t: t}
		lock := New(cluster.Node(0), key, "pod-0", Options{LockDelay: -1})
		c := l.run(lock, usual, true)
		cluster.Until("the candidate leads", func() bool { return l.leader() != "" })
		held := lock.Held()
		cluster.Lose(0)
		limit := usual.retry + usual.renew + time.Second
		select {
		case <-c.done:
		case <-time.After(limit):
			t.Fatalf("the elector has not stopped after %v", limit)
		}
		if lock.Held() != held || held.Err() == nil {
			t.Error("the elector has taken the lock again")
		}
		l.run(lock, usual, true)
		cluster.Until("the candidate leads again", func() bool { return l.count() == 2 })
		if token := lock.Held().Token(); token <= held.Token() {
			t.Errorf("the token is %d after %d", token, held.Token())
		}
	})
}
