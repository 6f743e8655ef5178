package console

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestKeptLocksAreMarked checks that the tables, the drawing, and the finding about long holds say
// whether the holder of a key keeps the lock.
func TestKeptLocksAreMarked(t *testing.T) {
	for _, kept := range []bool{true, false} {
		k := contended("orders/1", "2", nil)
		k.Queue[0].Kept = kept
		s := scened(k)
		s.one = s.all
		v := s.view()
		if v.Key.Queue[0].Kept != kept || v.Key.Queue[1].Kept {
			t.Errorf("kept is %v: %+v", kept, v.Key.Queue)
		}
		if text := v.Findings[0].About[0].Text; strings.HasPrefix(text, "has been kept by s2 for") != kept {
			t.Errorf("kept is %v: %s", kept, text)
		}
		if text := draw(v.forest[0]).Sentences[0]; strings.HasPrefix(text, "orders/1: kept by s2, ") != kept {
			t.Errorf("kept is %v: %s", kept, text)
		}
		k.Queue[0].Since = time.Now().Add(-time.Minute)
		h := New(keyed{&fakeNode{keys: []mortise.KeyInfo{k}, many: maxTop}}, Options{}) // so that the page has both lists
		for want, path := range map[string]string{`<bdi>s2</bdi> <small>keeps it</small>`: "/",
			`<span>kept by s2`: "/", `<b>keeps</b>`: "/?key=orders/1"} {
			if page := mustPage(t, h, path); strings.Contains(page, want) != kept {
				t.Errorf("kept is %v, and %q is in page %s: %v", kept, want, path, !kept)
			}
		}
	}
}

func TestUnsearchedRequestsAreMarked(t *testing.T) {
	for _, unsearched := range []bool{true, false} {
		k := contended("orders/1", "2", nil)
		k.Queue[1].Unsearched = unsearched
		s := scened(k)
		s.one = s.all
		if v := s.view(); v.Key.Queue[0].Unsearched || v.Key.Queue[1].Unsearched != unsearched {
			t.Errorf("unsearched is %v: %+v", unsearched, v.Key.Queue)
		}
		h := New(keyed{&fakeNode{keys: []mortise.KeyInfo{k}, many: maxTop}}, Options{})
		page := mustPage(t, h, "/?key=orders/1")
		if strings.Contains(page, "the search for a deadlock goes on") != unsearched {
			t.Errorf("unsearched is %v, and the page says something else: %s", unsearched, page)
		}
	}
}
