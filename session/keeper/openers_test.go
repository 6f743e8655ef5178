package keeper

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// starts opens a session for each of the given starts of an instance, attached with epoch 1.
func (b *bench) starts(instance uint64, lives ...uint64) (ids []lockfsm.SessionID) {
	b.t.Helper()
	for _, life := range lives {
		by := Sender{ID: nodeidtest.ID(instance), Life: nodeid.Start(life, "site")}
		c := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{byte(instance), byte(life), 1}, TTL: benchTTL}
		b.core.ReceiveFrom(b.now, by, nil, c.Append(nil))
		b.step()
		ids = append(ids, b.replies[by.ID][0].Session)
		b.claim(instance, life, ids[len(ids)-1], 1, 0)
		b.step()
	}
	return ids
}

// claim sends an Attach of a session, on the connection of a start of an instance.
func (b *bench) claim(instance, life uint64, id lockfsm.SessionID, epoch lockfsm.Epoch, since uint64) {
	c := b.attachCmd(id, epoch)
	c.Since = nodeid.Start(since, "site")
	b.core.ReceiveFrom(b.now, Sender{ID: nodeidtest.ID(instance), Life: nodeid.Start(life, "site")}, nil, c.Append(nil))
}

// left returns which of the sessions are left in the state.
func (b *bench) left(ids []lockfsm.SessionID) (left []int) {
	for i, id := range ids {
		if s, ok := b.machine.Session(id); ok && !s.Gone {
			left = append(left, i+1)
		}
	}
	return left
}

// TestAStartEndsTheSessionsOfEarlierStarts lets each of four starts claim that the starts from each
// number on have ended. Each claim ends the sessions of exactly those before it, whether their
// attachments live or not, and never one of its own start, of a later one or of another instance.
// A late or repeated Attach of a start that has ended is one of these cases.
func TestAStartEndsTheSessionsOfEarlierStarts(t *testing.T) {
	t.Parallel()
	for mine := uint64(1); mine <= 4; mine++ {
		for since := uint64(0); since <= 5; since++ {
			b := leadingBench(t)
			ids, others := b.starts(1, 1, 2, 3, 4), b.starts(2, 1, 2)
			b.claim(1, mine, ids[mine-1], 2, since)
			b.step()
			var want []int
			for life := uint64(1); life <= 4; life++ {
				if since == 0 || life < since || life >= mine {
					want = append(want, int(life))
				}
			}
			if got := b.left(ids); !slices.Equal(got, want) || len(b.left(others)) != 2 {
				t.Errorf("start %d claims since %d: of the sessions %v and %v are left, want %v and both", mine, since, got,
					b.left(others), want)
			}
			if n := b.core.Status(); n.Expiring != 0 || n.Sessions != len(want)+2 {
				t.Errorf("the keeper has %+v", n)
			}
		}
	}
}

// TestACopyOfADirectoryClaimsNothing lets a start with a copy of the directory claim the starts at
// its own site. The start with the original, whose number lies in between, keeps its session.
func TestACopyOfADirectoryClaimsNothing(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	by := nodeidtest.ID(1)
	open := func(life uint64, site string) lockfsm.SessionID {
		c := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{byte(life), site[0], 1}, TTL: benchTTL}
		b.core.ReceiveFrom(b.now, Sender{ID: by, Life: nodeid.Start(life, site)}, nil, c.Append(nil))
		b.step()
		return b.replies[by][0].Session
	}
	ids := []lockfsm.SessionID{open(2, "original"), open(2, "copy"), open(3, "original"), open(4, "copy")}
	c := b.attachCmd(ids[3], 1)
	c.Since = nodeid.Start(2, "copy")
	b.core.ReceiveFrom(b.now, Sender{ID: by, Life: nodeid.Start(4, "copy")}, nil, c.Append(nil))
	b.step()
	b.step()
	if got := b.left(ids); !slices.Equal(got, []int{1, 3, 4}) {
		t.Errorf("left: %v", got)
	}
}

// A claim ends nothing if its Attach is refused: by another instance, or with an old epoch.
func TestARefusedAttachClaimsNothing(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	ids := b.starts(1, 1, 2)
	b.claim(2, 2, ids[1], 2, 1)
	b.claim(1, 2, ids[1], 1, 1)
	b.step()
	if got := b.left(ids); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
}

// TestAClaimIsRepeatedToTheNextLeader loses the Expire with its leader. The client attaches again
// with the same claim, while the next leader has not entered all sessions.
func TestAClaimIsRepeatedToTheNextLeader(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	ids := b.starts(1, 1, 2, 3, 4, 5)
	b.claim(1, 5, ids[4], 2, 1)
	b.turn()
	b.apply() // the Attach; the Expire is proposed in the next turn
	b.turn()
	b.blob = nil
	b.next(1)
	b.claim(1, 5, ids[4], 3, 1)
	for range 10 {
		b.step()
	}
	if got := b.left(ids); !slices.Equal(got, []int{5}) {
		t.Errorf("left: %v", got)
	}
}

// TestNoRenewalOfAnEndedStart checks that a renewal that waits for its round is not acknowledged
// after the claim, although its session would not expire for long.
func TestNoRenewalOfAnEndedStart(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	ids := b.starts(1, 1, 2)
	b.core.ReceiveFrom(b.now, Sender{ID: nodeidtest.ID(1), Life: nodeid.Start(1, "site")},
		session.Renewal{Session: ids[0], Epoch: 1, Seq: 7}.Append(nil), nil)
	b.turn()
	round := b.round
	b.claim(1, 2, ids[1], 2, 1)
	b.turn()
	b.apply()
	b.turn()
	b.core.Confirmed(b.now, b.term, round)
	b.turn()
	for _, r := range b.replies[nodeidtest.ID(1)] {
		if r.Kind == session.ReplyRenewed {
			t.Errorf("session %d is renewed", r.Session)
		}
	}
}

// TestAClaimDoesNotCutADelay checks that the hold of a session that has expired keeps its whole
// delay, although a later start shows that the session's start has ended.
func TestAClaimDoesNotCutADelay(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	const delay = time.Minute
	id := b.starts(1, 1)[0]
	lock := acquireCmd(id, 1, 1, "k")
	lock.Delay = delay
	b.core.ReceiveFrom(b.now, Sender{ID: nodeidtest.ID(1), Life: nodeid.Start(1, "site")}, nil, lock.Append(nil))
	b.step()
	second := b.starts(1, 2)[0]
	b.claim(1, 2, second, 2, 1)
	b.step()
	if got := b.left([]lockfsm.SessionID{id}); len(got) != 0 || len(b.machine.Entries()) != 1 {
		t.Fatalf("left: %v, with %d entries", got, len(b.machine.Entries()))
	}
	b.next(1) // it counts the delay anew, and knows the session from the state
	began := b.now
	b.claim(1, 2, second, 3, 1)
	for range 5 {
		b.turn()
		if slices.Contains(b.kinds, "expire") {
			t.Error("an Expire of a session that is gone")
		}
		b.apply()
	}
	for epoch := lockfsm.Epoch(4); len(b.machine.Entries()) > 0; epoch++ {
		b.claim(1, 2, second, epoch, 1)
		b.pass(time.Second)
		b.step()
	}
	if took := b.now.Sub(began); took < delay {
		t.Errorf("the delay of %v has ended after %v", delay, took)
	}
}
