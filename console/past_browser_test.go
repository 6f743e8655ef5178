package console

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/browser"
)

type keyedPast struct{ *pastNode }

func (k keyedPast) Peek(context.Context, string) (mortise.KeyInfo, error) { return k.keys[0], nil }

// One browser is enough for these checks, because its start takes a second.
func TestBrowserShowsThePast(t *testing.T) {
	t.Parallel()
	c := chromium.Open(t)
	showsThePast(t, c)
	copiesACommand(t, c)
	filters(t, c)
	c.Silent()
}

// The page must fit a desk and a phone in both colour schemes, with an hour behind it, without one,
// in trouble, and with many keys. It must lead to the other consoles.
func showsThePast(t *testing.T, c *browser.Page) {
	t.Helper()
	since := time.Now().Add(-5 * time.Minute)
	node := newPastNode(mortise.KeyInfo{Key: "orders/it's", Held: 1, Waiting: 2, Queue: []mortise.Standing{
		{Hold: mortise.Hold{Holder: "orders-2", Session: "3", Token: 71, Since: since}},
		{Hold: mortise.Hold{Holder: "orders-1", Session: "2"}}}})
	options := Options{Long: time.Hour, History: anHour(), Console: func(m mortise.Member) string {
		return "http://" + m.Name + ".internal:9000/console/"
	}}
	trouble := newPastNode(node.keys...)
	trouble.status.Leader, trouble.status.Attached, trouble.status.Lease = "", false, mortise.LeaseLost
	trouble.status.Waiting = "group g has no leader"
	many := newPastNode()
	many.many, many.fleet = 40, 40
	url := map[string]string{
		"past": mounted(t, node, options), "past-key": mounted(t, keyedPast{node}, options) + "?key=orders/it%27s",
		"past-trouble": mounted(t, trouble, options),
		"past-empty":   mounted(t, newPastNode(), Options{History: NewHistory()}),
		"past-many":    mounted(t, many, options), "past-search": mounted(t, many, options) + "?prefix=many/&holder=h",
	}
	for name, at := range url {
		c.Visit(at)
		for _, width := range []int{1280, 390} {
			for _, dark := range []bool{false, true} {
				c.Screen(width, 900, dark)
				var inside int
				if c.Eval("document.documentElement.scrollWidth", &inside); inside > width {
					t.Errorf("%s is %d wide in a window of %d", name, inside, width)
				}
				c.Picture(*shots, fmt.Sprintf("%s-%d-%v", name, width, dark), 1600, 1)
			}
		}
	}
	c.Visit(url["past"])
	c.Until("each figure has a line and says it in words", `[...document.querySelectorAll("#past svg")].filter(s =>
		s.getBoundingClientRect().width > 100 && s.querySelector(".line").getTotalLength() > 100 &&
		/lowest .+, highest .+, last .+\.$/.test(s.getAttribute("aria-label"))).length === 6`)
	c.Until("the others have links", `document.querySelectorAll("#members a[href*=internal]").length === 2`)
	c.Until("the title names the cluster", `document.title === "orders-0 · orders"`)
}

// A command is copied with the keyboard. Where the browser allows no access to the clipboard, it is
// selected instead.
func copiesACommand(t *testing.T, c *browser.Page) {
	t.Helper()
	node := newPastNode(mortise.KeyInfo{Key: "orders/it's", Held: 1})
	c.Visit(mounted(t, keyedPast{node}, Options{}) + "?key=orders/it%27s")
	const want = `mortise get 'orders/it'\''s' -cluster orders`
	for _, denied := range []bool{false, true} {
		c.Eval(fmt.Sprintf(`(() => {
			window.copied = "";
			Object.defineProperty(navigator, "clipboard", {configurable: true, value: %v ? undefined :
				{writeText: async text => { window.copied = text; }}});
			document.execCommand = () => false;
			document.querySelector(".command button").focus();
		})()`, denied), nil)
		for _, kind := range []string{"keyDown", "keyUp"} {
			c.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter",
				"windowsVirtualKeyCode": 13, "text": "\r"}, nil)
		}
		if !denied {
			c.Until("the command is copied", fmt.Sprintf("window.copied === %q", want))
			c.Until("a screen reader hears it", `document.getElementById("announce").textContent === "Copied."`)
			continue
		}
		c.Until("the command is selected", fmt.Sprintf("getSelection().toString() === %q", want))
		c.Until("a screen reader hears what to do",
			`document.getElementById("announce").textContent.includes("Copy it with the keyboard")`)
	}
}

// What is typed into any of the fields filters without a reload, and the address can be shared.
func filters(t *testing.T, c *browser.Page) {
	t.Helper()
	hold := func(key, holder string, age time.Duration) mortise.KeyInfo {
		return mortise.KeyInfo{Key: key, Held: 1,
			Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: holder, Token: 1, Since: time.Now().Add(-age)}}}}
	}
	node := newPastNode(hold("a", "orders-1", time.Second), hold("b", "orders-1", time.Hour),
		hold("c", "orders-2", time.Hour))
	c.Visit(mounted(t, node, Options{}))
	for _, field := range [][2]string{{"holder", "orders-1"}, {"age", "30m"}} {
		c.Eval(`document.getElementById("`+field[0]+`").focus()`, nil)
		c.Call("Input.insertText", map[string]string{"text": field[1]}, nil)
	}
	const one = `document.querySelector("table.keys tbody").textContent.trim().startsWith("b") && ` +
		`document.querySelectorAll("table.keys tbody tr").length === 1`
	c.Until("one key is left", one)
	c.Until("the address says so", `location.search === "?holder=orders-1&age=30m"`)
	c.Call("Page.reload", nil, nil)
	c.Until("the link shows the same", `document.readyState === "complete" && `+one+
		` && document.getElementById("age").value === "30m"`)
}
