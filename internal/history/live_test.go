package history

import (
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestLiveFindsWhatEndsTogether(t *testing.T) {
	l := newLive()
	for n := range lockfsm.Number(3) {
		l.set(request{7, 3 - n}, holding{token: lockfsm.Token(30 - n)})
	}
	l.set(request{7, 9}, holding{upgrades: 30})
	if got := l.of(7); !slices.Equal(got, []lockfsm.Number{1, 2, 3, 9}) || len(l.of(8)) != 0 {
		t.Errorf("the session has %v", got)
	}
	l.remove(request{7, 1})
	l.set(request{8, 1}, holding{token: 30}) // the hold has moved to another session
	if q, h, known := l.upgradeOf(30); !known || q != (request{7, 9}) || h.upgrades != 30 {
		t.Errorf("the upgrade is %v, %v", q, known)
	}
	if _, _, known := l.upgradeOf(29); known {
		t.Error("another hold has an upgrade")
	}
	for _, q := range []request{{7, 2}, {7, 3}, {7, 9}, {8, 1}, {8, 1}} {
		l.remove(q)
	}
	if len(l.sessions) != 0 || len(l.raised) != 0 {
		t.Errorf("%d sessions and %d upgrades are left", len(l.sessions), len(l.raised))
	}
}
