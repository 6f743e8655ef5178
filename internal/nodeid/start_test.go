package nodeid

import "testing"

// TestStarts checks that later starts have higher numbers, at whatever site, and that the number
// tells the count and whether the site is the same.
func TestStarts(t *testing.T) {
	sites := []string{"", "a", "b"}
	last := uint64(0)
	for _, count := range []uint64{1, 2, 3, 1<<31 - 1} {
		highest := uint64(0)
		for _, a := range sites {
			n := Start(count, a)
			if n <= last || n >= 1<<63 || Count(n) != count {
				t.Errorf("start %d at %q has the number %x after %x", count, a, n, last)
			}
			for _, b := range sites {
				if SameSite(n, Start(7, b)) != (a == b) {
					t.Errorf("sites %q and %q", a, b)
				}
			}
			highest = max(highest, n)
		}
		last = highest
	}
	if Start(0, "a") != 0 {
		t.Error("no start has a number")
	}
}
