package tofu

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
)

// A lock info of any length fits, keeps its ID, and is not cut inside a character.
func TestALongLockInfoFits(t *testing.T) {
	long := strings.Repeat("\"<ü", 2000)
	infos := []Info{
		{ID: "1"},
		{ID: "1", Info: "-var a=1", Path: long},
		{ID: "1", Operation: long, Who: long, Info: long, Version: long, Path: long, Created: time.Now()},
		{ID: strings.Repeat("<", maxID), Who: long},
	}
	for shift := range 4 {
		text := strings.Repeat("-", shift) + strings.Repeat("😀", 1000)
		infos = append(infos, Info{ID: "1", Who: text, Path: text})
	}
	for _, i := range infos {
		value, labels := i.Shown()
		if n := len(shown.Encode(value, labels, nil)); n > lockfsm.MaxValueBytes || labels[LabelID] != i.ID {
			t.Errorf("%d bytes, the ID is %q", n, labels[LabelID])
		}
		for name, text := range labels {
			if !utf8.ValidString(text) {
				t.Errorf("the label %s is not UTF-8: %q", name, text)
			}
		}
		if !utf8.ValidString(value) {
			t.Errorf("the value is not UTF-8: %q", value)
		}
		back := HolderInfo(&mortise.HeldError{Hold: mortise.Hold{Value: value, Labels: labels}})
		if back.ID != i.ID || len(i.Info) < 20 && back.Info != i.Info || !back.Created.Equal(i.Created) {
			t.Errorf("%.200v came back as %v", i, back)
		}
		if len(i.Who) > 0 && len(back.Who) < 20 {
			t.Errorf("little is left of the name: %q", back.Who)
		}
	}
}
