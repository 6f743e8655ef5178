package keeper

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const benchGroup = 0xb0

// memory is an instance without a directory: its ID is that of its key.
type memory struct {
	key      nodeid.Key
	sessions []lockfsm.SessionID
	epoch    lockfsm.Epoch
}

// begins opens sessions for an instance with the key of this number, attached with epoch 1.
func (b *bench) begins(number uint64, sessions int) *memory {
	b.t.Helper()
	m := &memory{key: nodeidtest.Key(number), epoch: 1}
	for range sessions {
		m.sessions = append(m.sessions, b.open(m.key.ID()))
	}
	return m
}

// follows sends an Attach of the instance's first session with a claim.
func (b *bench) follows(m *memory, claim []byte) {
	m.epoch++
	c := b.attachCmd(m.sessions[0], m.epoch)
	c.Former = claim
	b.send(m.key.ID(), c)
}

// TestAnInstanceEndsTheSessionsOfItsFormer checks that a claim ends all sessions of the instance
// that has signed it, and none of others. Any other claim ends none.
func TestAnInstanceEndsTheSessionsOfItsFormer(t *testing.T) {
	t.Parallel()
	former, successor, other := nodeidtest.Key(1), nodeidtest.Key(2), nodeidtest.Key(3)
	right := session.ClaimFormer(former, benchGroup, successor.ID())
	wrongKey := slices.Concat(former.Public(), session.ClaimFormer(other, benchGroup, successor.ID())[32:])
	foreign := slices.Concat(other.Public(), right[32:])
	claims := map[string][]byte{
		"none": nil, "signed by another key": wrongKey, "of another key": foreign,
		"for another instance": session.ClaimFormer(former, benchGroup, other.ID()),
		"for another group":    session.ClaimFormer(former, benchGroup+1, successor.ID()),
		"of itself":            session.ClaimFormer(successor, benchGroup, successor.ID()),
		"of an unknown one":    session.ClaimFormer(nodeidtest.Key(7), benchGroup, successor.ID()),
		"cut off":              right[:95], "a key alone": right[:32],
		"right": right,
	}
	for at := range right {
		flipped := slices.Clone(right)
		flipped[at] ^= 1
		claims[fmt.Sprint("bit of byte ", at)] = flipped
	}
	for name, claim := range claims {
		b := leadingBench(t)
		first, second, third := b.begins(1, 3), b.begins(2, 2), b.begins(3, 1)
		b.follows(second, claim)
		b.step()
		want := 3
		if name == "right" {
			want = 0
		}
		if got := b.left(first.sessions); len(got) != want || len(b.left(second.sessions)) != 2 ||
			len(b.left(third.sessions)) != 1 {
			t.Errorf("%s: of the former, the successor and another are left: %v, %v, %v", name, got,
				b.left(second.sessions), b.left(third.sessions))
		}
	}
}

// TestAClaimOfAFormerIsOfNoOther checks that no other instance can use a claim that it has seen,
// and that a late Attach of an instance that has ended does not end its successor, which has
// another ID.
func TestAClaimOfAFormerIsOfNoOther(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	first, second, third := b.begins(1, 1), b.begins(2, 1), b.begins(3, 1)
	seen := session.ClaimFormer(first.key, benchGroup, second.key.ID())
	b.follows(third, seen)
	b.step()
	if len(b.left(first.sessions)) != 1 {
		t.Error("another instance has used the claim")
	}
	b.follows(second, seen)
	b.step()
	b.follows(third, session.ClaimFormer(second.key, benchGroup, third.key.ID()))
	b.step()
	if len(b.left(first.sessions))+len(b.left(second.sessions)) != 0 {
		t.Error("the former ones are left")
	}
	// The instance that has ended begins again to send, with all that it knows.
	b.follows(second, seen)
	b.step()
	again := b.begins(2, 1)
	b.follows(again, seen)
	b.step()
	if len(b.left(third.sessions)) != 1 {
		t.Error("an instance has ended its successor")
	}
}

// TestAClaimOfAFormerIsRepeatedToTheNextLeader loses the Expire with its leader.
func TestAClaimOfAFormerIsRepeatedToTheNextLeader(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	first, second := b.begins(1, 3), b.begins(2, 1)
	claim := session.ClaimFormer(first.key, benchGroup, second.key.ID())
	b.follows(second, claim)
	b.turn()
	b.apply() // the Attach; the Expire is proposed in the next turn
	b.turn()
	b.blob = nil
	b.next(1)
	b.follows(second, claim)
	for range 10 {
		b.step()
	}
	if got := b.left(first.sessions); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
