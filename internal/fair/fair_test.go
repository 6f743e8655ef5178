package fair

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func instance(n int) nodeid.ID { return nodeid.ID{byte(n), byte(n >> 8), 1} }

// fill takes places one by one for instances from `from` on, at most each of one instance, until a
// limit is reached, and returns what was taken.
func fill(t *testing.T, p *Places, from int, secret string) (taken []Identity, why string) {
	t.Helper()
	for n := from; n < from+10_000; n++ {
		who := Identity{instance(n), secret}
		for {
			err := p.Take(who, 1)
			full := (*FullError)(nil)
			if errors.As(err, &full) && full.Limit == "the limit of one instance" {
				break
			}
			if err != nil {
				return taken, err.Error()
			}
			taken = append(taken, who)
		}
	}
	t.Fatal("there is no limit")
	return nil, ""
}

func TestEachLimitIsReachedAndGivenBack(t *testing.T) {
	p := New(Limits{Each: 3, Secret: 8, Derived: 12, All: 16})
	for range 3 {
		for range 3 {
			if err := p.Take(Identity{instance(1), "s"}, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Take(Identity{instance(1), "s"}, 1); err == nil || err.Error() != "the limit of one instance: at most 3" {
			t.Errorf("a fourth place of one instance: %v", err)
		}
		p.Give(Identity{instance(1), "s"}, 3)
		first, why := fill(t, p, 1, "s")
		if len(first) != 8 || why != "the limit of all instances with one derived secret: at most 8" {
			t.Errorf("one secret took %d: %s", len(first), why)
		}
		second, why := fill(t, p, 100, "other")
		if len(second) != 4 || why != "the limit of all derived secrets: at most 12" {
			t.Errorf("another secret took %d: %s", len(second), why)
		}
		root, why := fill(t, p, 200, "")
		if len(root) != 4 || why != "the limit of all instances: at most 16" {
			t.Errorf("the root secret took %d: %s", len(root), why)
		}
		for _, who := range append(append(first, second...), root...) {
			p.Give(who, 1)
		}
		if n, m := p.Users(); n != 0 || m != 0 || p.Total() != 0 {
			t.Fatalf("left behind: %d instances, %d secrets, %d places", n, m, p.Total())
		}
	}
}

func TestWhatIsRefusedTakesNothing(t *testing.T) {
	p := New(Share(4, 16))
	if err := p.Take(Identity{instance(1), "s"}, 5); err == nil {
		t.Error("more than a limit was taken")
	}
	if n, m := p.Users(); n != 0 || m != 0 || p.Total() != 0 {
		t.Errorf("left behind: %d instances, %d secrets, %d places", n, m, p.Total())
	}
}

func TestARateHasABurstAndRecovers(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRates(Rate{Every: 10 * time.Millisecond, Burst: 5})
	if !r.Spend("a", now, 5) || r.Spend("a", now, 1) {
		t.Error("the burst is not 5")
	}
	if !r.Spend("b", now, 5) {
		t.Error("another user pays for it")
	}
	if now = now.Add(10 * time.Millisecond); !r.Spend("a", now, 1) || r.Spend("a", now, 1) {
		t.Error("after 10 ms there is not exactly one event")
	}
	if r.Refund("a", 2); !r.Spend("a", now, 2) || r.Spend("a", now, 1) {
		t.Error("a refund of 2 does not allow exactly 2")
	}
	r.Refund("a", 1000)
	if !r.Spend("a", now, 5) || r.Spend("a", now, 1) {
		t.Error("refunds raise the burst")
	}
}

func TestRatesForgetUsers(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRates(Rate{Every: time.Millisecond, Burst: 10})
	for n := range 100_000 {
		now = now.Add(time.Millisecond)
		r.Spend(fmt.Sprint(n), now, 1)
	}
	if len(r.of) > 200 {
		t.Errorf("%d users are remembered", len(r.of))
	}
	for range 10 {
		r.Spend("busy", now, 1)
	}
	for n := range 10_000 { // less than the time in which "busy" recovers
		r.Spend(fmt.Sprint("x", n), now, 1)
	}
	if r.Spend("busy", now, 1) {
		t.Error("a user that has spent its burst was forgotten")
	}
}

func TestReservedEventsComeAtTheRate(t *testing.T) {
	const every, most = 10 * time.Millisecond, 50 * time.Millisecond
	now := time.Unix(1000, 0)
	r := NewRates(Rate{Every: every, Burst: 5})
	for n := range 10 {
		wait, ok := r.Reserve("a", now, 1, most)
		if want := max(0, time.Duration(n-4)*every); !ok || wait != want {
			t.Errorf("event %d waits %v, %v, and should wait %v", n, wait, ok, want)
		}
	}
	for range 3 { // what is refused is not counted
		if _, ok := r.Reserve("a", now, 1, most); ok {
			t.Error("an event waits longer than the limit")
		}
	}
	if wait, ok := r.Reserve("a", now.Add(every), 1, most); !ok || wait != most {
		t.Errorf("after one interval the next event waits %v, %v", wait, ok)
	}
	if wait, ok := r.Reserve("b", now, 1, most); !ok || wait != 0 {
		t.Errorf("another user waits %v, %v", wait, ok)
	}
}

func TestAChargeIsForgottenInTime(t *testing.T) {
	const every, most = 10 * time.Millisecond, 50 * time.Millisecond
	now := time.Unix(1000, 0)
	r := NewRates(Rate{Every: every, Burst: 5})
	r.Charge("a", now, 4, most)
	if wait, ok := r.Reserve("a", now, 2, most); !ok || wait != every {
		t.Errorf("after a charge of 4, the second event waits %v, %v", wait, ok)
	}
	r.Charge("a", now, 1_000_000, most)
	if _, ok := r.Reserve("a", now, 1, most); ok {
		t.Error("a charge delays nothing")
	}
	if wait, ok := r.Reserve("a", now.Add(every), 1, most); !ok || wait != most {
		t.Errorf("after the largest charge and one interval, the next event waits %v, %v", wait, ok)
	}
}
