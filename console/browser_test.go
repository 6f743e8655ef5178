package console

import (
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/browser"
)

var chromium browser.Browser // shared by the tests

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

// shots is a directory. If it is set, the tests write screenshots to it: go test ./console -run
// Browser -shots /tmp
var shots = flag.String("shots", "", "directory for pictures of the page")

// mounted serves the console below a path, and returns the URL.
func mounted(t *testing.T, node Node, options Options) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/ops/mortise/", http.StripPrefix("/ops/mortise", New(node, options)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/ops/mortise/"
}

func busy(t *testing.T, nodes []*mortise.Node) {
	t.Helper()
	value := []string{"charging card", "nightly export, part 3 of 7", "reindex", ""}
	for i, key := range []string{"orders/42", "orders/1007", "invoices/2026-11", "exports/nightly",
		"tenants/acme/import", "tenants/globex/import", "users/7/profile", "cache/start"} {
		lock(t, nodes[i%len(nodes)], mortise.Request{Key: key, Value: value[i%len(value)]})
	}
	forced := lock(t, nodes[1], mortise.Request{Key: "exports/weekly"})
	if _, err := nodes[0].ForceUnlock(t.Context(), "exports/weekly", forced.Token(),
		"hung since noon, stopped by hand"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		lock(t, nodes[2], mortise.Request{Key: "reports/readers", Mode: mortise.Shared})
	}
	wait(t, nodes[0], "orders/1007", 1)
	wait(t, nodes[2], "orders/42", 2)
	wait(t, nodes[1], "orders/42", 5)
	wait(t, nodes[0], "exports/nightly", 1)
	wait(t, nodes[2], "tenants/acme/import", 1)
}

// A lock that is taken while the page is open must appear without a reload, and without a violation
// of the Content-Security-Policy.
func TestBrowserShowsAndFollows(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	nodes := startFleet(t, "orders-0", "orders-1", "orders-2")
	busy(t, nodes)
	url := mounted(t, nodes[0], Options{Long: time.Second})
	c.Screen(1200, 900, false)
	c.Visit(url)
	c.Until("the keys are there", `document.querySelectorAll("table.keys tbody tr").length === 9`)
	c.Until("the script runs", `document.getElementById("pulse").textContent === "live"`)
	c.Eval(`window.same = document.querySelector("table.keys"), window.mark = 1`, nil)
	lock(t, nodes[1], mortise.Request{Key: "orders/new"})
	c.Until("the new lock is shown",
		`[...document.querySelectorAll("table.keys td.key")].some(td => td.textContent === "orders/new")`)
	lock(t, nodes[2], mortise.Request{Key: "orders/newer"})
	c.Until("the next one too",
		`[...document.querySelectorAll("table.keys td.key")].some(td => td.textContent === "orders/newer")`)
	c.Until("the page was not loaded again",
		`window.mark === 1 && window.same === document.querySelector("table.keys")`)
	c.Until("the stuck holder is told",
		`document.querySelector("#findings .watch li").textContent.includes("orders/42 has been held by orders-0")`)
	c.Picture(*shots, "desktop", 1600, 1)
	c.Screen(1200, 900, true)
	c.Picture(*shots, "dark", 1600, 1)
	c.Screen(360, 740, false)
	c.Picture(*shots, "phone", 1600, 1)
	c.Silent()
}

// At a width of 360 pixels neither the main page nor the page of one key may overflow horizontally,
// even if keys are long.
func TestBrowserOnAPhone(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	node := solo(t)
	long := strings.Repeat("a/very-long-key-without-end/", 18)
	lock(t, node, mortise.Request{Key: long, Value: strings.Repeat("x", 1000)})
	wait(t, node, long, 1)
	lock(t, node, mortise.Request{Key: "orders/42", Value: "charging card"})
	wait(t, node, "orders/42", 6)
	url := mounted(t, node, Options{Long: time.Millisecond, MayForce: func(*http.Request) bool { return true }})
	c.Screen(360, 740, false)
	for name, path := range map[string]string{"phone": "", "phone-key": "?key=orders/42", "phone-long": "?key=" +
		neturl.QueryEscape(long), "phone-search": "?prefix=a/"} {
		c.Visit(url + path)
		var width, inside int
		c.Eval("document.documentElement.scrollWidth", &width)
		c.Eval("innerWidth", &inside)
		if width > 360 || inside != 360 {
			t.Errorf("%q is %d wide in a window of %d", path, width, inside)
		}
		c.Picture(*shots, name, 1600, 1)
	}
	c.Silent()
}

// Typing in the search field filters the keys without a reload. The field must keep the focus when
// the page refreshes.
func TestBrowserSearches(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	node := solo(t)
	for _, key := range []string{"orders/1", "orders/2", "users/1"} {
		lock(t, node, mortise.Request{Key: key})
	}
	url := mounted(t, node, Options{})
	c.Visit(url)
	c.Eval(`document.getElementById("prefix").focus()`, nil)
	c.Call("Input.insertText", map[string]string{"text": "orders/"}, nil)
	c.Until("two keys are left", `document.querySelectorAll("table.keys tbody tr").length === 2`)
	lock(t, node, mortise.Request{Key: "orders/3"})
	c.Until("the page follows what is searched", `document.querySelectorAll("table.keys tbody tr").length === 3`)
	c.Until("the field has kept focus and text",
		`document.activeElement.id === "prefix" && document.activeElement.value === "orders/"`)
	c.Until("the address says so", `location.search === "?prefix=orders%2F" && location.pathname === "/ops/mortise/"`)
	c.Call("Page.reload", nil, nil)
	c.Until("a reload shows the same",
		`document.readyState === "complete" && document.querySelectorAll("table.keys tbody tr").length === 3 && `+
			`document.getElementById("prefix").value === "orders/"`)
	c.Silent()
}

func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	node := solo(t)
	lock(t, node, mortise.Request{Key: "orders/1"})
	lock(t, node, mortise.Request{Key: "users/1"})
	wait(t, node, "users/1", 1)
	c.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	c.Visit(mounted(t, node, Options{}))
	c.Until("all is there",
		`document.querySelectorAll("table.keys tbody tr").length === 2 && document.querySelector("svg .box")`)
	c.Until("no script runs", `document.getElementById("pulse").textContent === ""`)
	c.Until("one can look again", `document.querySelector("noscript a").getClientRects().length === 1`)
	c.Call("Runtime.evaluate", map[string]any{"expression": `document.getElementById("prefix").focus()`}, nil)
	c.Call("Input.insertText", map[string]string{"text": "orders/"}, nil)
	for _, kind := range []string{"keyDown", "keyUp"} { // submits the form with the Enter key
		c.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter",
			"windowsVirtualKeyCode": 13, "text": "\r"}, nil)
	}
	c.Until("the form has searched",
		`location.search.startsWith("?prefix=orders%2F&") && document.querySelectorAll("table.keys tbody tr").length === 1`)
	c.Silent()
}

// When the page refreshes, the text that the viewer has typed in the form must remain.
func TestBrowserEndsAHoldByForce(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	node := solo(t)
	held := lock(t, node, mortise.Request{Key: "orders/42", Value: "charging card"})
	wait(t, node, "orders/42", 2)
	c.Screen(1200, 900, false)
	c.Visit(mounted(t, node, Options{Long: time.Millisecond, MayForce: func(*http.Request) bool { return true }}) +
		"?key=orders/42")
	c.Eval(`document.querySelector("input[name=reason]").focus()`, nil)
	c.Call("Input.insertText", map[string]string{"text": "hangs since noon, restarted"}, nil)
	var before string
	c.Eval(`document.getElementById("at").textContent`, &before)
	c.Until("the page was refreshed", `document.getElementById("at").textContent !== "`+before+`"`)
	c.Until("the text is still there",
		`document.querySelector("input[name=reason]").value === "hangs since noon, restarted"`)
	c.Picture(*shots, "force", 1600, 1)
	c.Eval(`document.querySelector("form.force button").click()`, nil)
	c.Until("it is said",
		`document.getElementById("outcome") && document.getElementById("outcome").textContent.includes("has ended")`)
	c.Picture(*shots, "forced", 1600, 1)
	c.Eval(`window.then = document.getElementById("at").textContent`, nil)
	c.Until("the page was refreshed", `document.getElementById("at").textContent !== window.then`)
	c.Until("it is still said", `document.getElementById("outcome")`)
	var forced *mortise.ForcedError
	eventually(t, "the holder is told", func() bool { return errors.As(held.Err(), &forced) })
	if forced.Reason != "hangs since noon, restarted" {
		t.Errorf("the holder is told %q", forced.Reason)
	}
	c.Silent()
}

func TestBrowserShowsALostQuorum(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	nodes := startFleet(t, "orders-0", "orders-1", "orders-2")
	busy(t, nodes)
	c.Screen(1200, 900, false)
	c.Visit(mounted(t, nodes[0], Options{}))
	c.Until("the keys are there", `document.querySelectorAll("table.keys tbody tr").length === 9`)
	c.Screen(360, 740, true)
	c.Picture(*shots, "phone-dark", 1600, 1)
	c.Screen(1200, 900, false)
	for _, node := range nodes[1:] {
		_ = node.Close()
	}
	c.Until("the loss is told", `document.querySelector("#findings .broken") && `+
		`document.querySelector("#findings").textContent.match(/Not seen from here: .*orders-1 at /) && `+
		`document.querySelector("#findings").textContent.includes("orders-2 at ")`)
	c.Until("a screen reader hears it", `document.getElementById("announce").textContent.includes("No leader")`)
	c.Until("what was seen is marked as old",
		`document.querySelector(".stale") && document.querySelectorAll("table.keys tbody tr").length === 9`)
	c.Picture(*shots, "lost-quorum", 1600, 1)
	c.Silent()
}
