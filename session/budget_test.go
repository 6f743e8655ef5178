package session

import (
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestBudgetTravels checks that a reply contains a budget if and only if its code is about a
// budget.
func TestBudgetTravels(t *testing.T) {
	t.Parallel()
	for _, kind := range []ReplyKind{ReplyState, ReplyFreed} {
		with := Reply{Kind: kind, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.OverGroupBudget, Budget: 1 << 50}
		got, rest, err := NextReply(with.Append(nil))
		if err != nil || len(rest) > 0 || got.Budget != with.Budget || got.Code != with.Code {
			t.Errorf("kind %d: got %+v, %d bytes left, %v", kind, got, len(rest), err)
		}
		without := Reply{Kind: kind, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Granted}
		none := without
		none.Budget = 1 << 50
		if string(without.Append(nil)) != string(none.Append(nil)) {
			t.Errorf("kind %d: a granted request carries a budget", kind)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[uint64]string{0: "0 bytes", 1000: "1000 bytes", 1024: "1 KiB", 64 << 20: "64 MiB",
		3 << 29: "1536 MiB", 1 << 50: "1024 TiB"} {
		if got := FormatBytes(bytes); got != want {
			t.Errorf("%d bytes are written %q, want %q", bytes, got, want)
		}
	}
}
