package console

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// In a cluster of three, the page must have each of these facts in one place. In a larger cluster
// the summary must have them, because the table has many rows.
func TestASmallClusterSeesEachFactOnce(t *testing.T) {
	facts := map[string]string{
		"the leader": "led by orders-1", "the address": "<dt>Address</dt>", "the role": "<dt>Role</dt><dd>voter",
		"the sessions": `id="leases"`,
		"the voters":   "3 voters", "the keys that are held longest": `id="tops"`,
	}
	small := newPastNode(mortise.KeyInfo{Key: "a", Held: 1,
		Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: "orders-1", Token: 1}}}})
	large := newPastNode()
	large.status.Votes = true
	large.fleet, large.many = 9, 9
	smallPage, largePage := mustPage(t, New(small, Options{}), "/"), mustPage(t, New(large, Options{}), "/")
	for fact, text := range facts {
		if strings.Contains(smallPage, text) {
			t.Errorf("the page of a small cluster repeats %s", fact)
		}
		if !strings.Contains(largePage, text) {
			t.Errorf("the page of a large cluster leaves out %s", fact)
		}
	}
	for text, want := range map[string]int{">orders-1</bdi>": 1, "10.0.0.10:7947": 1, ">leader<": 1, "9.0 s of 10 s": 1} {
		if n := strings.Count(smallPage, text); n != want {
			t.Errorf("%q stands %d times in the page of a small cluster", text, n)
		}
	}
}

// What the table of the members does not have must stand where it is in a larger cluster.
func TestNothingIsLeftOutThatStandsNowhereElse(t *testing.T) {
	node := newPastNode()
	node.status.Leader = "orders-9" // not in the table
	node.status.Address = "10.9.9.9:1"
	node.sessions[1].Instance = "" // opened by the program
	page := mustPage(t, New(node, Options{}), "/")
	wantText(t, page, `id="leases"`, "<dt>Address</dt>")
	if v := status(t, New(node, Options{}), ""); v.Members.Shown != 3 {
		t.Errorf("%+v", v.Members)
	}
	node.status.Instance = "another" // not in the table
	wantText(t, mustPage(t, New(node, Options{}), "/"), "led by orders-9")
}

// The page shows what runs, for how long, and in which cluster.
func TestTheInstanceIsDescribed(t *testing.T) {
	node := newPastNode()
	node.members[2].Version = "v0.0.9"
	page := mustPage(t, New(node, Options{}), "/")
	wantText(t, page, "<title>orders-0 · orders</title>", "cluster <b>orders</b>", "mortise v0.1.0", "26 h 00 min",
		"mortise v0.0.9")
	if n := strings.Count(page, "mortise v0.1.0"); n != 1 {
		t.Errorf("the version of this instance stands %d times in the page", n)
	}
	node.status.Cluster, node.status.Err = "", mortise.ErrClosed
	wantText(t, mustPage(t, New(node, Options{}), "/"), "<title>! orders-0 · mortise</title>")
	build := &debug.BuildInfo{Main: debug.Module{Path: "example.com/orders", Version: "v1.2.3"}}
	if got := programOf(build); got != "example.com/orders v1.2.3" {
		t.Error(got)
	}
	if build.Main.Version = "(devel)"; programOf(build) != "" {
		t.Error("a build without a version has one")
	}
}

// Other instances have links to their consoles, unless a link would not lead to a page.
func TestLinksToOtherConsoles(t *testing.T) {
	node := newPastNode()
	links := map[string]string{
		"orders-0": "http://itself/", "orders-1": "https://orders-1:9000/console/?a=1&b=\"><script>",
		"orders-2": "javascript:alert(1)",
	}
	h := New(node, Options{Console: func(m mortise.Member) string { return links[m.Name] }})
	page := mustPage(t, h, "/")
	wantText(t, page, `<a href="https://orders-1:9000/console/?a=1&amp;b=%22%3e%3cscript%3e" title=`)
	if strings.Contains(page, "http://itself/") || strings.Contains(page, "javascript:") ||
		strings.Count(page, "<script") != 1 {
		t.Error("the page links to itself, or to a script")
	}
	for text, want := range map[string]string{
		"../orders-1/": "../orders-1/", "/a b": "/a%20b", "HTTP://h/": "http://h/", "data:text/html,x": "",
		"http:x": "", "ftp://h/": "", "%zz": "", "": "", "//h/x": "//h/x",
	} {
		if got := safeLink(text); got != want {
			t.Errorf("safeLink(%q) = %q, want %q", text, got, want)
		}
	}
}
