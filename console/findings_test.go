package console

import (
	"html"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// The voters of a group without a leader stand in the finding, above all figures, one in a line.
func TestTheVotersOfALostQuorumStandAboveTheFigures(t *testing.T) {
	s := scened()
	s.status.Leader, s.status.Attached, s.status.Instance = "", false, "1"
	s.status.Waiting = "group g has no leader"
	s.status.Voters = []mortise.Member{{Name: "s1", Instance: "1", Address: "s1:1", Votes: true},
		{Name: "s2", Instance: "2", Address: "s2:1", Votes: true, Seen: true},
		{Instance: "3", Address: "s3:1", Votes: true}, {Name: "s4", Instance: "4", Address: "s4:1"}}
	want := []string{"voter s1 at s1:1: this instance", "voter s2 at s2:1: seen from here",
		"voter s3:1: not seen from here"}
	if got := s.first(); got.ID != "no-leader" || !slices.Equal(got.Items, want) {
		t.Errorf("%s: %q, want %q", got.ID, got.Items, want)
	}
}

func TestALongReasonIsAList(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"one":                     "one",
		"one; two; three":         "one|two|three",
		"one (a; b (c; d)); two.": "one (a; b (c; d))|two.",
		"one) ; two":              "one) ; two",
	} {
		if got := strings.Join(clauses(text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAHolderThatIsGoneIsNotStopped(t *testing.T) {
	s := scened(contended("orders/1", "2", nil))
	s.all.keys[0].Queue[0].Expired = true
	if f := s.first(); f.ID != "held-long" || !strings.HasPrefix(f.Next, "Stop nothing: the holders are gone.") {
		t.Errorf("%s: %q", f.ID, f.Next)
	}
}

// The page speaks of the clock of a leader only if there is one.
func TestTheClockIsThatOfALeader(t *testing.T) {
	const clock, last = "Times are those of the leader's clock", "those of the clock of the last one"
	node := newPastNode(queue("orders/42: orders-2 | orders-1", time.Now()))
	wantPage(t, node, clock, last)
	node.status.Leader, node.status.Attached = "", false
	node.status.Waiting = "group g has no leader"
	wantPage(t, node, "", clock)
}

func wantPage(t *testing.T, node Node, want, not string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
	New(node, Options{}).ServeHTTP(w, r)
	text := html.UnescapeString(w.Body.String())
	if !strings.Contains(text, want) || strings.Contains(text, not) {
		t.Errorf("want %q and not %q in\n%s", want, not, text)
	}
}
