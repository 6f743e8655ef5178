package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/browser"
)

var chromium browser.Browser

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

// searches are words with the page that the search must show first.
var searches = map[string]string{
	"LockDelay":               "GUARANTEES.html",
	"jeopardy":                "GLOSSARY.html",
	"Redlock":                 "CHOOSING.html",
	"gocron":                  "PLUGS.html",
	"planted bugs":            "CORRECTNESS.html",
	"snapshotter":             "ARCHITECTURE.html",
	"systemd":                 "OPERATION.html",
	"hand-over":               "SPEED.html",
	"what an attacker can do": "ATTACKS.html",
	"how voters heal":         "ARCHITECTURE.html",
}

// open opens a page of the site and waits until its script has run.
func open(t *testing.T, address string) *browser.Page {
	t.Helper()
	page := chromium.Open(t)
	page.Screen(1280, 900, false)
	var failed struct{ ErrorText string }
	page.Call("Page.navigate", map[string]any{"url": address}, &failed)
	if failed.ErrorText != "" {
		t.Fatalf("%s: %s", address, failed.ErrorText)
	}
	page.Until("the script has run", `document.readyState === "complete" && window.site`)
	return page
}

// The site works from files, and from a server below a path.
func TestTheSiteInABrowser(t *testing.T) {
	dir := made(t)
	server := httptest.NewServer(http.StripPrefix("/docs/of/mortise/", http.FileServer(http.Dir(dir))))
	defer server.Close()
	for name, top := range map[string]string{
		"files":    (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(),
		"a server": server.URL + "/docs/of/mortise",
	} {
		t.Run(name, func(t *testing.T) {
			page := open(t, top+"/index.html")
			var title string
			page.Eval("document.querySelector('main h1').textContent", &title)
			if title != "mortise" {
				t.Errorf("the top leads to the page %q", title)
			}
			for words, wanted := range searches {
				var first string
				page.Eval("window.site.searchFor("+quoted(words)+").then(found => found.length ? found[0].p : '')", &first)
				if first != wanted {
					t.Errorf("the first page with %q is %q, want %s", words, first, wanted)
				}
			}
			page.Eval(`{
				const q = document.getElementById("query");
				q.focus();
				q.value = "redlock";
				q.dispatchEvent(new Event("input"));
			}`, nil)
			page.Until("the results are shown",
				`document.querySelector("#results li a") && !document.getElementById("results").hidden`)
			page.Picture(os.Getenv("SITE_PICTURES"), "search-"+strings.ReplaceAll(name, " ", "-"), 900, 1)
			page.Eval(`document.querySelector("#results li a").click()`, nil)
			page.Until("the first result is open", `location.pathname.endsWith("CHOOSING.html") && window.site && location.hash`)
			var wide bool
			page.Eval("document.documentElement.scrollWidth > innerWidth", &wide)
			if wide {
				t.Error("the page is wider than the window")
			}
			page.Silent()
		})
	}
}

// All pages render without a failed script, in a wide and in a narrow window, light and dark.
func TestEachPageInABrowser(t *testing.T) {
	dir := made(t)
	names, err := filepath.Glob(filepath.Join(dir, "next", "*.html"))
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		page := open(t, (&url.URL{Scheme: "file", Path: filepath.ToSlash(name)}).String())
		for _, screen := range []struct {
			name  string
			width int
			dark  bool
		}{{"wide", 1280, false}, {"narrow", 400, true}} {
			page.Screen(screen.width, 900, screen.dark)
			page.Until("the window has its size", "innerWidth === "+strconv.Itoa(screen.width))
			var state struct {
				Wide  bool
				Paper string
				Error string
			}
			page.Eval(`({wide: document.documentElement.scrollWidth > innerWidth,
				paper: getComputedStyle(document.body).backgroundColor,
				error: [...document.images].filter(i => !i.naturalWidth).map(i => i.src).join(" ")})`, &state)
			dark := state.Paper != "rgb(255, 255, 255)"
			if state.Wide || dark != screen.dark || state.Error != "" {
				t.Errorf("%s, %s: wider than the window %v, dark %v, pictures that are not shown: %q",
					filepath.Base(name), screen.name, state.Wide, dark, state.Error)
			}
			page.Picture(os.Getenv("SITE_PICTURES"), screen.name+"-"+filepath.Base(name), 2400, 1)
		}
		page.Silent()
	}
}

// The selector leads to the same page of another version, or to its first page.
func TestTheSelectorOfVersionsInABrowser(t *testing.T) {
	dir := t.TempDir()
	versions := []version{
		{name: "next", files: small(nil), revision: "main"},
		{name: "v1", files: os.DirFS(tree), revision: "v1"},
	}
	if err := write(dir, versions); err != nil {
		t.Fatal(err)
	}
	page := open(t, (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir) + "/v1/GUARANTEES.html"}).String())
	for _, to := range []struct{ version, page string }{
		{"next", "/next/index.html"}, {"v1", "/v1/index.html"}, {"next", "/next/index.html"},
	} {
		page.Eval(`{
			const s = document.querySelector("#versions select");
			s.value = `+quoted(to.version)+`;
			s.dispatchEvent(new Event("change"));
		}`, nil)
		page.Until("the other version is open", "location.pathname.endsWith("+quoted(to.page)+") && window.site")
	}
	page.Silent()
}

func quoted(text string) string { return "\"" + strings.ReplaceAll(text, "\"", "\\\"") + "\"" }
