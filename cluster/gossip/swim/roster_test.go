package swim

import (
	"testing"
	"time"
)

// TestRosterGivesPlacesBack checks that a slot of the roster becomes free when memberlist has
// forgotten the member, and that late messages about the member change nothing.
func TestRosterGivesPlacesBack(t *testing.T) {
	now := time.Now()
	r := newRoster(3)
	for _, name := range []string{"a", "b", "c"} {
		if !r.admit(name, now) {
			t.Fatal(name)
		}
		r.joined(name)
	}
	if r.admit("d", now.Add(time.Hour)) {
		t.Error("a fourth of three")
	}
	r.left("b", now)
	for after, want := range map[time.Duration]bool{time.Second: false, 32 * time.Second: false} {
		if !r.admit("b", now.Add(after)) || r.admit("d", now.Add(after)) != want {
			t.Errorf("after %v", after)
		}
	}
	if !r.admit("d", now.Add(33*time.Second)) || r.admit("b", now.Add(33*time.Second)) {
		t.Error("the place is not free")
	}
	if !r.admit("e", now.Add(2*time.Hour)) {
		t.Error("a slot whose member never came is kept forever")
	}
	if len(r.known) != 3 {
		t.Errorf("%d are known", len(r.known))
	}
}
