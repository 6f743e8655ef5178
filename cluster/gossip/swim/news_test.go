package swim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
)

func TestNewsAreGathered(t *testing.T) {
	var u unread
	now := time.Now()
	looks := 0
	for i := range 10_000 {
		wait, first := u.add(fmt.Sprint(i%100), gossip.Meta{At: uint64(i)}, true, now)
		if first {
			if looks++; wait != 0 {
				t.Errorf("the first look waits %v", wait)
			}
		}
	}
	all := u.drain(now)
	if looks != 1 || len(all) != 100 || all[7] != (gossip.News{Name: "7", Meta: gossip.Meta{At: 9907}, Here: true}) {
		t.Errorf("%d looks, %d names, %+v", looks, len(all), all[7])
	}
	if wait, first := u.add("x", gossip.Meta{}, true, now.Add(newsEvery/2)); !first || wait != newsEvery/2 {
		t.Error(wait, first)
	}
	u.add("x", gossip.Meta{}, false, now)
	u.add("x", gossip.Meta{At: 5}, true, now)
	u.add("x", gossip.Meta{At: 6}, true, now)
	want := []gossip.News{{Name: "x", Meta: gossip.Meta{At: 6}}, {Name: "x", Meta: gossip.Meta{At: 6}, Here: true}}
	if all := u.drain(now); !slices.Equal(all, want) {
		t.Errorf("%+v, want %+v", all, want)
	}
}
