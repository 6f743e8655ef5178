package keeper

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// stayBench returns a bench whose group can reserve tokens.
func stayBench(t *testing.T) *bench {
	b := leadingBench(t)
	b.blob = lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1_800_000_000_000}.Append(nil)
	b.apply()
	b.step()
	return b
}

func stayCmd(id lockfsm.SessionID, epoch lockfsm.Epoch, n lockfsm.Number, key string) lockfsm.Command {
	c := acquireCmd(id, epoch, n, key)
	c.Sticky = true
	return c
}

func tryCmd(id lockfsm.SessionID, epoch lockfsm.Epoch, n lockfsm.Number, key string) lockfsm.Command {
	c := acquireCmd(id, epoch, n, key)
	c.Try = true
	return c
}

// stayReplies formats the replies to a peer that are about stays.
func (b *bench) stayReplies(to nodeid.ID) string {
	var parts []string
	for _, r := range b.replies[to] {
		switch r.Kind {
		case session.ReplyState:
			s := fmt.Sprint("state ", r.Number, " ", r.Code)
			if r.Last != 0 {
				s += fmt.Sprint(" and ", r.Last-r.Token, " tokens")
			}
			parts = append(parts, s)
		case session.ReplyWanted:
			parts = append(parts, fmt.Sprint("wanted ", r.Number))
		case session.ReplyYield:
			parts = append(parts, fmt.Sprint("yield ", r.Number))
		case session.ReplyAsked:
			parts = append(parts, fmt.Sprint("asked ", r.Number, " ", r.Place > 0))
		case session.ReplyHeld:
			parts = append(parts, fmt.Sprint("held ", r.Number, " kept ", r.Kept))
		case session.ReplyBehind:
			parts = append(parts, fmt.Sprint("behind ", r.Number, " kept ", r.Kept))
		}
	}
	return strings.Join(parts, ", ")
}

func (b *bench) wantStay(to nodeid.ID, said string) {
	b.t.Helper()
	if got := b.stayReplies(to); got != said {
		b.t.Fatalf("peer %d was told %q, want %q", nodeidtest.Number(to), got, said)
	}
}

// TestStaysAreTold checks what the sessions of a stay and of two requests with Try are told: the
// tokens, the question, the question again after an Attach, and the answer.
func TestStaysAreTold(t *testing.T) {
	t.Parallel()
	b := stayBench(t)
	one, two := nodeidtest.ID(1), nodeidtest.ID(2)
	owner, other := b.open(one), b.open(two)
	b.send(one, stayCmd(owner, 1, 1, "x"))
	b.step()
	b.wantStay(one, "state 1 granted and 1024 tokens")
	first := b.replies[one][0].Token

	b.send(two, tryCmd(other, 1, 1, "x"))
	b.step()
	b.wantStay(two, "state 1 waiting, behind 1 kept true")
	b.wantStay(one, "state 1 granted and 1024 tokens, wanted 1, asked 1 true")

	b.send(two, tryCmd(other, 1, 2, "x"))
	b.step()
	b.wantStay(one, "state 1 granted and 1024 tokens, wanted 1, asked 1 true")

	c := b.attachCmd(owner, 2)
	c.Number, c.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
	b.send(one, c)
	b.step()
	b.wantStay(one, "state 1 granted and 1024 tokens, wanted 1, asked 1 true")
	var place lockfsm.Revision
	for _, r := range b.replies[one] {
		place = max(place, r.Place)
	}

	b.send(one, lockfsm.Command{Kind: lockfsm.InUse, Session: owner, Epoch: 2, Number: 1,
		Revision: place, Token: first + 7})
	b.step()
	b.wantStay(two, "held 1 kept true, held 2 kept true")
	for _, r := range b.replies[two] {
		if r.Kind == session.ReplyHeld && (r.Token != first+7 || r.Holder != owner) {
			t.Errorf("held with %d of session %d, want %d of %d", r.Token, r.Holder, first+7, owner)
		}
	}
	b.wantStay(one, "")

	b.send(two, tryCmd(other, 1, 3, "x"), tryCmd(other, 1, 4, "x"))
	b.step()
	b.send(one, releaseCmd(owner, 2, 1))
	b.step()
	b.wantStay(two, "state 3 granted, held 4 kept false")
}

// TestSharedStaysAreTold checks that each session with a shared stay is asked and told. The answer
// of one of them ends a request with Try that waits for both.
func TestSharedStaysAreTold(t *testing.T) {
	t.Parallel()
	b := stayBench(t)
	peers := []nodeid.ID{nodeidtest.ID(1), nodeidtest.ID(2), nodeidtest.ID(3)}
	one, two, other := b.open(peers[0]), b.open(peers[1]), b.open(peers[2])
	shared := func(id lockfsm.SessionID) lockfsm.Command {
		c := stayCmd(id, 1, 1, "x")
		c.Mode = lockfsm.ModeIS
		return c
	}
	b.send(peers[0], shared(one))
	b.send(peers[1], shared(two))
	b.step()
	first, second := b.replies[peers[0]][0], b.replies[peers[1]][0]
	b.wantStay(peers[0], "state 1 granted and 1024 tokens")
	b.wantStay(peers[1], "state 1 granted and 1024 tokens")
	if first.Last >= second.Token {
		t.Errorf("the stay %d has tokens up to %d, above the stay %d", first.Token, first.Last, second.Token)
	}

	b.send(peers[2], tryCmd(other, 1, 1, "x"))
	b.step()
	b.wantStay(peers[2], "state 1 waiting, behind 1 kept true")
	var place lockfsm.Revision
	for _, p := range peers[:2] {
		b.wantStay(p, "state 1 granted and 1024 tokens, wanted 1, asked 1 true")
		place = b.replies[p][2].Place
	}

	b.send(peers[0], releaseCmd(one, 1, 1))
	b.step()
	b.wantStay(peers[2], "") // it waits for the second stay
	b.send(peers[1], lockfsm.Command{Kind: lockfsm.InUse, Session: two, Epoch: 1, Number: 1,
		Revision: place, Token: second.Token + 5})
	b.step()
	b.wantStay(peers[2], "held 1 kept true")
	if r := b.replies[peers[2]][0]; r.Holder != two || r.Token != second.Token+5 {
		t.Errorf("held by session %d with %d", r.Holder, r.Token)
	}
	b.send(peers[2], acquireCmd(other, 1, 2, "x"))
	b.step()
	b.send(peers[1], releaseCmd(two, 1, 1))
	b.step()
	b.wantStay(peers[2], "state 2 granted")
}

// TestOnlyTheOwnerAnswers checks that the answer of another session, or on an earlier attachment,
// has no effect.
func TestOnlyTheOwnerAnswers(t *testing.T) {
	t.Parallel()
	b := stayBench(t)
	one, two := nodeidtest.ID(1), nodeidtest.ID(2)
	owner, other := b.open(one), b.open(two)
	b.send(one, stayCmd(owner, 1, 1, "x"))
	b.step()
	first := b.replies[one][0].Token
	b.send(two, tryCmd(other, 1, 1, "x"))
	b.step()
	answer := lockfsm.Command{Kind: lockfsm.InUse, Session: owner, Epoch: 1, Number: 1,
		Revision: 1 << 61, Token: first + 1}
	b.send(two, answer)
	b.step()
	b.wantStay(two, "")
	answer.Epoch = 7
	b.send(one, answer)
	b.step()
	b.wantStay(two, "")
	if n := b.machine.Counts().Waiters; n != 1 {
		t.Errorf("%d requests wait", n)
	}
}

// TestYield checks that only the session of the stay is asked to yield, and only while it is
// attached.
func TestYield(t *testing.T) {
	t.Parallel()
	b := stayBench(t)
	one, two := nodeidtest.ID(1), nodeidtest.ID(2)
	owner, other := b.open(one), b.open(two)
	b.send(one, stayCmd(owner, 1, 1, "x"))
	b.step()
	b.core.Yield(b.now, owner, 1)
	b.core.Yield(b.now, owner+other, 7)
	b.step()
	b.wantStay(one, "yield 1")
	b.wantStay(two, "")

	b.send(one, b.attachCmd(owner, 2)) // not applied yet
	b.core.Yield(b.now, owner, 1)
	b.step()
	b.wantStay(one, "")
}
