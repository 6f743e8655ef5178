package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func (b *bench) alive(id lockfsm.SessionID) bool {
	s := b.core.leases.sessions[id]
	return s != nil && !s.expiring
}

func TestRenewalWaitsForARoundBegunBehindIt(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.turn()
	first := b.round
	if first == 0 {
		t.Fatal("no round was asked for")
	}
	b.want(nodeidtest.ID(1), "")
	b.renew(nodeidtest.ID(1), id, 1, 2) // arrives after the round has begun, so this round does not confirm it
	b.turn()
	if b.round != 0 {
		t.Fatal("a second round while the first is not confirmed")
	}
	b.core.Confirmed(b.now, b.term, first)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 1")
	second := b.round
	b.core.Confirmed(b.now, b.term, second)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 2")
	if second <= first {
		t.Fatalf("round %d after %d", second, first)
	}
}

func TestRoundOfAnotherTermConfirmsNothing(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.turn()
	b.core.Confirmed(b.now, b.term-1, b.round)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	round := b.round
	b.core.Role(b.now, Role{Term: 6, Leader: nodeid.Endpoint{ID: nodeidtest.ID(2)}})
	b.core.Role(b.now, Role{Term: 7, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9)}})
	b.term = 7
	b.leads()
	b.turn()
	b.core.Confirmed(b.now, 7, round+100)
	b.turn()
	b.want(nodeidtest.ID(1), "")
}

func TestOneRoundForAllThatWait(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.renew(nodeidtest.ID(1), one, 1, 1)
	b.renew(nodeidtest.ID(1), one, 1, 2)
	b.renew(nodeidtest.ID(2), two, 1, 7)
	b.turn()
	b.core.Confirmed(b.now, b.term, b.round)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 2")
	b.want(nodeidtest.ID(2), "renewed 7")
	if b.core.Status().Renewals != 0 {
		t.Error("renewals are left")
	}
}

// TestSlowRoundIsAskedAgain checks that the late confirmation of a round still counts for the
// renewals of that round.
func TestSlowRoundIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.turn()
	first := b.round
	b.advance(roundAgain)
	b.renew(nodeidtest.ID(1), id, 1, 2)
	b.turn()
	if b.round <= first {
		t.Fatal("not asked again")
	}
	b.core.Confirmed(b.now, b.term, first)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 1")
}

// TestRenewalWithAttachIsAcknowledgedWithIt checks that the round of a renewal which was sent with
// an Attach begins when the Attach is proposed, and that the renewal is acknowledged in the frame
// of the answer to the Attach, and not before.
func TestRenewalWithAttachIsAcknowledgedWithIt(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.core.Confirmed(b.now, b.term, 99)
	b.attachAndRenew(id, 2, 1)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.core.Confirmed(b.now, b.term, b.round)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	if b.round != 0 {
		t.Error("a second round was asked for")
	}
	b.pass(2 * benchTTL)
	if !b.alive(id) {
		t.Fatal("a session has expired whose renewal is confirmed")
	}
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "attached 2 done, renewed 1")
	if left := b.core.leases.session(id).deadline.Sub(b.core.elapsed()); left != benchTTL {
		t.Errorf("the session has %v left", left)
	}
	b.attachAndRenew(id, 3, 2)
	b.turn()
	round := b.round
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "attached 3 done")
	b.core.Confirmed(b.now, b.term, round)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 2")
}

// TestRenewalNeedsARoundSinceItCame checks that the round of another renewal, which began before an
// Attach came, does not acknowledge the renewal that came with it.
func TestRenewalNeedsARoundSinceItCame(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.renew(nodeidtest.ID(2), two, 1, 1)
	b.turn()
	round := b.round
	b.attachAndRenew(one, 2, 1)
	b.turn()
	b.core.Confirmed(b.now, b.term, round)
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "attached 2 done")
	b.core.Confirmed(b.now, b.term, b.round)
	b.turn()
	b.want(nodeidtest.ID(1), "renewed 1")
}

// TestRefusedAttachIsNotRenewed checks that a confirmed renewal is not acknowledged if its Attach
// is refused when it is applied, here because the session has ended meanwhile.
func TestRefusedAttachIsNotRenewed(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.attachAndRenew(id, 2, 1)
	b.turn()
	b.core.Confirmed(b.now, b.term, b.round)
	b.blob = append(lockfsm.Command{Kind: lockfsm.Expire, Session: id, Term: b.term}.Append(nil), b.blob...)
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "ended 2 no session")
}

func TestOlderAttachmentIsNotRenewed(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.turn()
	round := b.round
	b.send(nodeidtest.ID(1), b.attachCmd(id, 2))
	b.core.Confirmed(b.now, b.term, round)
	b.step()
	b.want(nodeidtest.ID(1), "attached 2 done")
	b.renew(nodeidtest.ID(1), id, 1, 2)
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 unknown")
	b.renew(nodeidtest.ID(2), id, 2, 3) // the epoch is right, but the peer is wrong
	b.turn()
	b.want(nodeidtest.ID(2), "ended 2 unknown")
}

// TestASessionIsNotStolen checks an instance that knows ID and nonce of another's session, as every
// voter does.
func TestASessionIsNotStolen(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	holder, thief := nodeidtest.ID(1), nodeidtest.ID(666)
	id := b.open(holder)
	b.send(holder, acquireCmd(id, 1, 1, "x"))
	b.step()
	b.want(holder, "state 1 granted")
	attach := b.attachCmd(id, 9)
	b.send(thief, attach)
	b.send(thief, lockfsm.Command{Kind: lockfsm.Open, Nonce: attach.Nonce, TTL: benchTTL})
	b.send(thief, releaseCmd(id, 9, 1))
	b.renew(thief, id, 9, 1)
	b.step()
	b.want(thief, "attached 9 no session, ended 9 unknown, opened no session")
	b.renew(holder, id, 1, 1)
	b.turn()
	b.core.Confirmed(b.now, b.term, b.round)
	b.turn()
	b.want(holder, "renewed 1")
	if e := b.machine.Entries(); len(e) != 1 || e[0].Token == 0 || e[0].Session != id {
		t.Errorf("the lock is %+v", e)
	}
	b.sendUnder(holder, granted(t, "lock a"), b.attachCmd(id, 2)) // the same instance with another capability
	b.step()
	b.want(holder, "attached 2 no session")
}

func TestARecordIsCheckedAtOpen(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.core.Vouch = func(_ nodeid.ID, _ *capability.Capability, record []byte) bool { return string(record) == "true" }
	b.send(nodeidtest.ID(1), lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: benchTTL,
		Record: []byte("false")})
	b.send(nodeidtest.ID(2), lockfsm.Command{
		Kind: lockfsm.Open, Nonce: lockfsm.Nonce{2}, TTL: benchTTL, Record: []byte("true"),
		Opener: lockfsm.Opener{Instance: nodeidtest.ID(9)},
	})
	b.step()
	b.want(nodeidtest.ID(1), "")
	b.want(nodeidtest.ID(2), "opened done")
	want := lockfsm.Opener{Instance: nodeidtest.ID(2)}
	if s := b.machine.Sessions(); len(s) != 1 || s[0].Opener != want {
		t.Errorf("opened: %+v", s)
	}
}

func TestAnOldBuildOpensNoSession(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	old := session.Outdated{Group: 4, Build: 3}
	b.core.Outdated = func(record []byte) (why session.Outdated) {
		if string(record) == "old" {
			why = old
		}
		return why
	}
	open := func(nonce byte, record string) lockfsm.Command {
		return lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{nonce}, TTL: benchTTL, Record: []byte(record)}
	}
	b.send(nodeidtest.ID(1), open(1, "old"))
	b.step()
	if r := b.replies[nodeidtest.ID(1)]; len(r) != 1 || r[0].Code != lockfsm.Unsupported || r[0].Outdated != old ||
		r[0].Nonce != (lockfsm.Nonce{1}) {
		t.Errorf("the old build was told %+v", r)
	}
	b.send(nodeidtest.ID(2), open(2, "new"))
	b.sendUnder(nodeidtest.ID(3), granted(t, "lock a"), open(3, "old")) // it never has a replica
	b.step()
	b.want(nodeidtest.ID(2), "opened done")
	b.want(nodeidtest.ID(3), "opened done")
	if s := b.machine.Sessions(); len(s) != 2 {
		t.Errorf("opened: %+v", s)
	}
}

func TestNewLeaderGivesTheFullTTL(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.core.Down(b.now, nodeidtest.ID(1))
	b.pass(benchTTL - time.Second)
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.turn()
	b.pass(500 * time.Millisecond)
	b.leads()
	b.pass(benchTTL - time.Millisecond)
	if !b.alive(id) {
		t.Fatal("expired before its full TTL under the new leader")
	}
	b.pass(tickEvery)
	if b.alive(id) {
		t.Fatal("not expired")
	}
}

func TestRenewalMovesTheDeadline(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.pass(benchTTL - 10*time.Millisecond)
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.step()
	b.want(nodeidtest.ID(1), "renewed 1")
	b.pass(benchTTL - time.Millisecond)
	if !b.alive(id) {
		t.Fatal("expired within a TTL of its renewal")
	}
	b.pass(tickEvery)
	if b.alive(id) {
		t.Fatal("not expired")
	}
}

// TestWaitingRenewalHoldsExpiryOff checks that a session does not expire at its deadline while
// one of its renewals waits for confirmation.
func TestWaitingRenewalHoldsExpiryOff(t *testing.T) {
	t.Parallel()
	for _, behindAttach := range []bool{false, true} {
		b := leadingBench(t)
		id := b.open(nodeidtest.ID(1))
		b.pass(benchTTL - 10*time.Millisecond)
		if behindAttach {
			b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 2, Seq: 1,
				Heard: 0}.Append(nil), b.attachCmd(id, 2).Append(nil))
		} else {
			b.renew(nodeidtest.ID(1), id, 1, 1)
		}
		b.pass(time.Second) // the round is not confirmed
		if !b.alive(id) {
			t.Fatal("expired over a waiting renewal")
		}
		b.apply()
		b.turn()
		b.core.Confirmed(b.now, b.term, b.core.rounds.number)
		b.turn()
		b.pass(benchTTL - 100*time.Millisecond)
		if !b.alive(id) {
			t.Fatal("expired within a TTL of its renewal")
		}
	}
}

func TestExpiringSessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.refuse = true // the log refuses the Expire, which remains decided and is proposed again
	b.pass(benchTTL + tickEvery)
	if b.alive(id) || b.core.Status().Expiring != 1 {
		t.Fatal("not expiring")
	}
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.turn()
	b.core.Confirmed(b.now, b.term, b.core.rounds.number)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.refuse = false
	b.advance(retryAfter)
	b.turn()
	if len(b.kinds) != 2 || b.kinds[0] != "stamp" || b.kinds[1] != "expire" {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.renew(nodeidtest.ID(1), id, 1, 2)
	b.turn()
	b.core.Confirmed(b.now, b.term, b.core.rounds.number)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	if len(b.kinds) != 0 {
		t.Fatalf("proposed again: %v", b.kinds)
	}
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 no session")
	if s := b.core.Status(); s.Sessions+s.Attachments+s.Expiring != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestExpiryDiesWithItsTerm checks that an Expire is not proposed in a later term.
func TestExpiryDiesWithItsTerm(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.refuse = true
	b.pass(benchTTL + tickEvery)
	b.refuse = false
	b.core.Role(b.now, Role{Term: 7, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 7
	b.turn()
	b.leads()
	b.advance(retryAfter)
	b.turn()
	if len(b.kinds) != 0 || !b.alive(id) {
		t.Fatalf("proposed %v, alive %v", b.kinds, b.alive(id))
	}
	stale := lockfsm.Command{Kind: lockfsm.Expire, Session: id, Term: 5}.Append(nil)
	if r := applyOne(b.machine, 100, 7, stale); r.Code != lockfsm.Stale {
		t.Fatalf("an expiry of term 5 in term 7: %v", r.Code)
	}
}

func applyOne(m *lockfsm.Machine, index, term uint64, batch []byte) (last lockfsm.Result) {
	m.ApplyEntry(index, term, batch, func(r *lockfsm.Result) { last = *r })
	return last
}

// TestStallExtendsAllDeadlines checks a stall, in which the keeper reads no renewals.
func TestStallExtendsAllDeadlines(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.pass(benchTTL - time.Second)
	b.advance(time.Minute)
	b.turn()
	if !b.alive(id) {
		t.Fatal("expired by the first turn after a stall")
	}
	b.pass(time.Second - tickEvery)
	if !b.alive(id) {
		t.Fatal("the stall was counted")
	}
	b.pass(2 * tickEvery)
	if b.alive(id) {
		t.Fatal("not expired")
	}
}

func TestGraceIsCountedFromBornHere(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2*time.Second)
	b.core.AllBound(b.now) // the keeper does not lead yet; AllBound is valid for all terms
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.leads()
	b.core.AllBound(b.now)
	b.refuse = true
	b.turn()
	b.refuse = false
	b.advance(retryAfter)
	b.turn()
	if len(b.kinds) != 2 || b.kinds[1] != "born" {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.advance(time.Second)
	b.apply()
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed %v", b.kinds)
	}
	if next := b.core.Next().Sub(b.now); next != 2*time.Second {
		t.Errorf("next turn in %v", next)
	}
	b.advance(2*time.Second - 1)
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.advance(1)
	if b.turn(); len(b.kinds) != 2 || b.kinds[1] != "endgrace" {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.advance(time.Second)
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed again: %v", b.kinds)
	}
	b.apply()
	b.turn()
	if !b.core.Status().GraceOver {
		t.Error("the grace is not over")
	}
}

func TestHeapIsOrdered(t *testing.T) {
	t.Parallel()
	var h expiryHeap
	for i := range 1000 {
		h.push(expiry{at: 1 + 7919*7%31, session: lockfsm.SessionID(i * 7919 % 1000)})
	}
	last := expiry{}
	for len(h) > 0 {
		e := h.pop()
		if e.at < last.at || e.at == last.at && e.session < last.session {
			t.Fatalf("%+v after %+v", e, last)
		}
		last = e
	}
}

// TestLeftIsTheTimeToTheExpiry compares Left with the instant of the expiry, at a keeper that was
// stalled for different times.
func TestLeftIsTheTimeToTheExpiry(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{0, stallAfter - 1, stallAfter, stallAfter + 1, 2 * benchTTL} {
		b := leadingBench(t)
		id := b.open(nodeidtest.ID(1))
		b.renew(nodeidtest.ID(1), id, 1, 1)
		b.step()
		b.now = b.core.lookAt()
		b.step()
		b.now = b.now.Add(stall)
		b.step()
		left := b.core.Left(b.now, []lockfsm.SessionID{id, id + 1})
		if left[1] != 0 {
			t.Errorf("an unknown session has %v left", left[1])
		}
		for end := b.now.Add(left[0]); b.now < end-1; {
			b.now = min(b.now.Add(tickEvery), end-1)
			b.step()
			if !b.alive(id) {
				t.Fatalf("after a stall of %v, it expired %v before the time that Left has named", stall, end.Sub(b.now))
			}
		}
		b.now++
		b.step()
		if b.alive(id) {
			t.Errorf("after a stall of %v, it has not expired at the time that Left has named, %v", stall, left[0])
		}
	}
}
