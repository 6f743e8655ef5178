package session

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/clock"
)

func TestSentNamesTheSendingTimes(t *testing.T) {
	t.Parallel()
	var r Sent
	const first, second, third = 1, 2, 3
	r.Note(first, 10)
	r.Note(second, 20)
	r.Note(third, 30)
	if sent, ok := r.Acknowledged(second); !ok || sent != 20 {
		t.Fatalf("second renewal was sent at %d, %v", sent, ok)
	}
	if _, ok := r.Acknowledged(first); ok {
		t.Error("an older renewal still counts after a newer one")
	}
	if oldest, _ := r.Oldest(); oldest != 30 {
		t.Errorf("oldest is %d", oldest)
	}
	if _, ok := r.Acknowledged(third); !ok {
		t.Error("the newest was forgotten")
	}
	if _, ok := r.Acknowledged(99); ok {
		t.Error("a renewal that was never sent is acknowledged")
	}
	for i := range 100 {
		r.Note(uint64(4+i), clock.Time(i))
	}
	if r.Count() > sentKept {
		t.Errorf("%d renewals are kept", r.Count())
	}
}
