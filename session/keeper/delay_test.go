package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// expired opens a session that locks "k" with a delay and then expires. It returns the token of the
// lock.
func (b *bench) expired(delay time.Duration) lockfsm.Token {
	b.t.Helper()
	id := b.open(nodeidtest.ID(1))
	lock := acquireCmd(id, 1, 1, "k")
	lock.Delay = delay
	b.send(nodeidtest.ID(1), lock)
	b.step()
	b.want(nodeidtest.ID(1), "state 1 granted")
	token := b.replies[nodeidtest.ID(1)][0].Token
	for !b.machine.Sessions()[0].Gone {
		b.pass(tickEvery)
		b.step()
	}
	if len(b.machine.Entries()) != 1 {
		b.t.Fatal("the delay does not keep the lock")
	}
	return token
}

func TestASessionThatIsEndedByForceIsForgotten(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	token := b.expired(time.Minute)
	b.blob = lockfsm.Command{Kind: lockfsm.Evict, Key: "k", Token: token}.Append(nil)
	b.apply()
	if n := b.machine.Counts().Sessions; n != 0 {
		t.Fatalf("the state keeps %d sessions", n)
	}
	b.pass(time.Minute + tickEvery)
	b.step()
	if s := b.core.Status(); s.Sessions != 0 || s.Expiring != 0 {
		t.Fatalf("the keeper keeps %+v", s)
	}
}

func TestANewLeaderCountsADelayAnew(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	const delay = 20 * time.Second
	b.expired(delay)
	b.pass(delay / 2)
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.leads()
	b.pass(delay - 2*tickEvery)
	b.step()
	if b.machine.Counts().Entries != 1 {
		t.Fatal("the lock is free before the delay is over")
	}
	b.pass(4 * tickEvery)
	b.step()
	if c := b.machine.Counts(); c != (lockfsm.Counts{}) {
		t.Fatalf("after the delay there is %+v", c)
	}
}
