package console

import (
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func keyNames(l *locks) (names []string) {
	for _, k := range l.Keys {
		names = append(names, k.Name)
	}
	return names
}

// The list must have the keys that the filter selects, and only those.
func TestKeysAreFiltered(t *testing.T) {
	s := scened()
	young, old := s.now.Add(-5*time.Second), s.now.Add(-10*time.Minute)
	hold := func(name, holder string, since time.Time) mortise.KeyInfo {
		return mortise.KeyInfo{Key: name, Held: 1, Waiting: 1, Queue: []mortise.Standing{
			{Hold: mortise.Hold{Holder: holder, Token: 1, Since: since}}, {Hold: mortise.Hold{Holder: "Waits-1"}}}}
	}
	free := mortise.KeyInfo{Key: "free", Waiting: 1, Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: "s2"}}}}
	s.all.keys = []mortise.KeyInfo{hold("a", "orders-1", young), hold("b", "Orders-10", old),
		hold("c", "billing-0", old), free}
	for query, want := range map[string]string{
		"holder=orders-1":         "a b",
		"holder=ORDERS-10":        "b",
		"holder=waits":            "", // a waiter holds nothing
		"age=1m":                  "b c",
		"age=300":                 "b c",
		"age=5s":                  "a b c",
		"age=11m":                 "",
		"holder=orders&age=1m":    "b",
		"holder=orders&age=-1m":   "a b", // a wrong age is ignored, and the page says so
		"holder=orders&age=often": "a b",
		"holder=" + strings.Repeat("x", maxHolder+1): "a b c free",
	} {
		q, _ := neturl.ParseQuery(query)
		s.filter, s.found = filterOf(q), s.all
		v := s.view()
		if got := strings.Join(keyNames(v.Search), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if all := strings.Join(keyNames(&v.Locks), " "); all != "a b c free" {
			t.Errorf("%s changes the list of all keys: %s", query, all)
		}
	}
}

// A wrong age must be reported, and a right one must not.
func TestAWrongAgeIsReported(t *testing.T) {
	for text, wrong := range map[string]bool{"": false, "90": false, "90s": false, "1h30m": false, "0": false, "-1m": true,
		"-5": true, "often": true, "1 m": true, "99999999999": true} {
		if f := filterOf(neturl.Values{"age": {text}}); (f.Wrong != "") != wrong || wrong && f.age != 0 {
			t.Errorf("%q: %v, %q", text, f.age, f.Wrong)
		}
	}
}

// A filter selects among more keys of a prefix than the page shows, and the link can be shared.
func TestAFilterLooksFar(t *testing.T) {
	f := &fakeNode{many: 5000}
	for i := range 900 {
		k := mortise.KeyInfo{Key: "many/near", Held: 1,
			Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: "near", Token: 1, Since: time.Now()}}}}
		if i == 890 {
			k.Key, k.Queue[0].Holder = "many/far", "far <b>"
		}
		f.keys = append(f.keys, k)
	}
	h := New(f, Options{})
	page := mustPage(t, h, "/?prefix=many/&holder=far")
	wantText(t, page, "1 key shown; 999 more looked at; there are others", "Keys that begin with “many/”, held by “far”",
		`name="holder" value="far"`, ">many/far<")
	if !slices.Equal(searchOf(t, h, "?prefix=many/&holder=far"), []string{"many/far"}) {
		t.Error("the JSON does not have the filtered keys")
	}
	page = mustPage(t, h, "/?age=%3Cscript%3E&holder=%3Cscript%3E")
	wantText(t, page, "is ignored: write, for example, 30s, 5m or 2h.", "No such key is held or waited for.")
	if strings.Count(page, "<script") != 1 {
		t.Error("a filter became markup")
	}
	if told := f.told.Load(); told > 4*(keysRead+1) {
		t.Errorf("the leader was asked for %d keys", told)
	}
}

func searchOf(t *testing.T, h http.Handler, query string) (names []string) {
	for _, k := range status(t, h, query).Search.Keys {
		names = append(names, k.Key)
	}
	return names
}

// A search is described by each of its conditions, and by no other one.
func TestASearchInWords(t *testing.T) {
	for want, f := range map[string]filter{
		"":                             {},
		"that begin with “a”":          {prefix: "a"},
		"held by “s1”":                 {holder: "s1"},
		"held for at least 1 min 30 s": {age: 90 * time.Second},
		"that begin with “a”, held by “s1”, held for at least 5.0 s": {prefix: "a", holder: "s1", age: 5 * time.Second},
	} {
		if got := f.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
