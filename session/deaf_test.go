package session

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// deafLimit is how soon after its client went deaf a session has to be over: a TTL in which what it has heard is still recent, a TTL of
// lease, and the keeper's looking round.
const deafLimit = 2*benchTTL + 2*tickEvery

// A waiter that is heard and hears nothing is granted the lock, and must not keep it: neither by renewing on one attachment nor by
// attaching again and again, which is what a client does that hears nothing.
func TestDeafWaiterLosesItsTurn(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		b := leadingBench(t)
		holder, deaf, next := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2)), b.open(nodeidtest.ID(3))
		b.send(nodeidtest.ID(1), acquireCmd(holder, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(2), acquireCmd(deaf, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(3), acquireCmd(next, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(1), releaseCmd(holder, 1, 1))
		b.step()
		b.want(nodeidtest.ID(2), "state 1 granted")
		since, seq, epoch := b.now, uint64(0), lockfsm.Epoch(1)
		for served := false; !served; {
			b.advance(tickEvery)
			if seq++; seq%10 == 0 {
				b.renew(nodeidtest.ID(1), holder, 1, seq)
				b.renew(nodeidtest.ID(3), next, 1, seq)
				if again {
					epoch++
					attach := b.attachCmd(deaf, epoch)
					attach.Number, attach.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
					b.core.Receive(b.now, nodeidtest.ID(2), renewal{deaf, epoch, seq, 0}.append(nil), attach.Append(nil))
				} else {
					b.core.Receive(b.now, nodeidtest.ID(2), renewal{deaf, 1, seq, 0}.append(nil), nil)
				}
			}
			b.step()
			for _, r := range b.replies[nodeidtest.ID(3)] {
				served = served || r.kind == replyState && r.code == lockfsm.Granted
			}
			if b.now.Sub(since) > deafLimit {
				t.Fatalf("attaching again %v: the next waiter is not granted the lock after %v", again, b.now.Sub(since))
			}
		}
		if b.now.Sub(since) < benchTTL {
			t.Errorf("attaching again %v: the waiter has lost its turn after %v, sooner than a TTL", again, b.now.Sub(since))
		}
		if !b.alive(holder) || !b.alive(next) {
			t.Error("one that hears has lost its session")
		}
	}
}

// What a client has heard of late counts, over any number of attachments, and Attached is heard as well as Renewed.
func TestHearingIsRemembered(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]struct {
		seq  uint64
		want string
	}{
		"nothing, ever":       {0, ""},
		"a Renewed, long ago": {1, ""},
		"the last Renewed":    {2, "renewed 9"},
		"the last Attached":   {3, "renewed 9"},
		"what was not said":   {7, ""},
	} {
		b := leadingBench(t)
		id := b.open(nodeidtest.ID(1))
		b.renew(nodeidtest.ID(1), id, 1, 1)
		b.step()
		b.want(nodeidtest.ID(1), "renewed 1")
		b.pass(benchTTL - tickEvery)
		b.core.Receive(b.now, nodeidtest.ID(1), renewal{id, 1, 2, 0}.append(nil), nil)
		b.step()
		b.want(nodeidtest.ID(1), "renewed 2")
		b.pass(tickEvery)
		b.core.Receive(b.now, nodeidtest.ID(1), renewal{id, 2, 3, 0}.append(nil), b.attachCmd(id, 2).Append(nil))
		b.step()
		b.want(nodeidtest.ID(1), "attached 2 done")
		b.core.Receive(b.now, nodeidtest.ID(1), renewal{id, 2, 9, heard.seq}.append(nil), nil)
		b.step()
		if got := b.said(nodeidtest.ID(1)); got != heard.want {
			t.Errorf("%s: told %q, want %q", name, got, heard.want)
		}
	}
}

// A leader that was held up did not hear anybody say what he has heard: that time does not count, as for the deadlines.
func TestStallIsNoDeafness(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.step()
	b.advance(time.Minute)
	b.core.Receive(b.now, nodeidtest.ID(1), renewal{id, 1, 2, 1}.append(nil), nil)
	b.step()
	b.want(nodeidtest.ID(1), "renewed 2")
}

// What a keeper remembers of a client that never says what it has heard is bounded.
func TestToldIsBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	for seq := range uint64(100) {
		b.core.Receive(b.now, nodeidtest.ID(1), renewal{id, 1, seq + 1, 0}.append(nil), nil)
		b.step()
	}
	if got := len(b.core.sessions[id].told.waiting); got != renewalsKept {
		t.Errorf("%d are remembered", got)
	}
}

// The client names what it has heard: the Attached of its Attach, then each acknowledgement, and the last one when it attaches again.
func TestRenewalsNameWhatWasHeard(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.turn()
	b.reply(b.to.Peer, b.opened(b.core.nonce[0], 100))
	b.turn()
	wantHeard := func(heard uint64) {
		t.Helper()
		if len(b.renewals) != 1 || b.renewals[0].heard != heard {
			t.Fatalf("renewals are %+v, want one that has heard %d", b.renewals, heard)
		}
	}
	wantHeard(0)
	b.reply(b.to.Peer, b.attached(lockfsm.Done)) // before the acknowledgement
	b.core.renewDue = true
	b.turn()
	wantHeard(1)
	b.reply(b.to.Peer, b.renewed())
	b.core.move(b.now, b.core.target)
	b.turn()
	wantHeard(2)
}

// Who was away for about a lease and attaches in time must not lose its session for what it had not heard: the renewal that goes with its
// Attach may not count any more, so the next one follows at once.
func TestWhoWasAwayRenewsAtOnce(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.core.Down(b.now, b.to.Peer)
	b.advance(benchTTL - benchTTL/10)
	b.turn()
	attach := b.renewals
	if len(attach) != 1 || len(b.commands) != 1 || b.commands[0].Kind != lockfsm.Attach {
		t.Fatalf("it does not attach: %v, %v", attach, b.commands)
	}
	b.reply(b.to.Peer, b.attached(lockfsm.Done))
	b.turn()
	if len(b.renewals) != 1 || b.renewals[0].heard != attach[0].seq {
		t.Errorf("renewals are %+v, want one that names the answer to %+v", b.renewals, attach)
	}
}

// TestSimulationOfDeafness cuts one direction for good, from the leader to a member that goes on calling, in a group without other
// faults. Within two leases nothing is its any more, and it costs the others neither a session nor a lock.
func TestSimulationOfDeafness(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		config := simConfig{voters: 3, plain: 3, callers: 3, keys: 2, ttl: 2 * time.Second, drift: 0.009, long: 0.1}
		s := newSim(t, seed, config)
		s.start()
		s.runUntil(3 * time.Second)
		deaf, leader := s.nodes[3+seed%3], s.nodes[s.leader]
		session := deaf.client.Status(deaf.clock()).Session
		s.silence(leader, deaf, time.Hour)
		// Its holds end by themselves; then the sessions, with what was granted meanwhile.
		s.runUntil(s.now + time.Duration(2.1*float64(config.ttl)) + 2*tickEvery)
		for _, info := range leader.machine.Sessions() {
			if info.ID == session {
				s.fail("the session of node %d lives, which hears nothing: %+v", deaf.id, leader.machine.Counts())
			}
		}
		lost, granted := s.stats.lost, s.stats.granted
		s.runUntil(s.now + 10*config.ttl)
		if s.stats.lost != lost || s.stats.granted < granted+20 {
			s.fail("%d locks were lost, %d granted, by the members that hear", s.stats.lost-lost, s.stats.granted-granted)
		}
		if k := leader.keeper.Status(); k.Sessions > len(s.nodes)+peerSessions {
			s.fail("left with %+v", k)
		}
	}
}
