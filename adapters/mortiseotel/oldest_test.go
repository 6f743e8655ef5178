package mortiseotel

import (
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestOldestHold(t *testing.T) {
	var r running
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	want := func(now int, ages map[string]float64) {
		t.Helper()
		if got := r.oldest(at(now)); !reflect.DeepEqual(got, ages) {
			t.Errorf("after %d s: %v, want %v", now, got, ages)
		}
	}
	want(0, map[string]float64{})
	r.begin(1, "orders", at(0))
	r.begin(2, "orders", at(5))
	r.begin(3, "stock", at(6))
	want(10, map[string]float64{"orders": 10, "stock": 4})
	r.end(1)
	r.end(3)
	r.end(3)
	want(20, map[string]float64{"orders": 15, "stock": 0})
	for token := mortise.Token(10); token < 10+2*maxHolds; token++ {
		r.begin(token, "stock", at(20))
	}
	if n := len(r.holds); n > maxHolds {
		t.Errorf("%d holds are remembered", n)
	}
}
