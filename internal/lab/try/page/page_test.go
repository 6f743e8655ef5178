package page

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/browser"
	"github.com/mortise-lock/mortise/internal/lab/try"
)

var chromium browser.Browser // shared by the tests

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

// maxPage is the largest size of the page, compressed.
const maxPage = 6_000_000

// TestThePageReplaysARun replays shared runs in a real browser. Each ends with the line that the
// command line prints. Then it does what people do: it begins a run, causes faults by the buttons,
// and shares it.
func TestThePageReplaysARun(t *testing.T) {
	c := chromium.Open(t)
	dir := t.TempDir()
	if err := Build(t.Context(), "../../../..", dir); err != nil {
		t.Fatal(err)
	}
	if size := compressed(t, dir); size > maxPage {
		t.Errorf("the page has %d bytes, compressed", size)
	} else {
		t.Logf("the page has %d bytes, compressed", size)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	c.Screen(1150, 950, false)
	var last string
	for i, address := range []string{"seed=3&end=5000",
		"seed=7&do=3000p2,24000k1,25000s1,31000c0,32500d1,40000c0&end=45000"} {
		c.Visit(fmt.Sprintf("%s/index.html?%d#%s", server.URL, i, address)) // a new part after # loads no page
		c.Until("the run has begun", `$("clock").textContent !== "0.0 s"`)
		c.Eval(`$("end").click()`, nil)
		c.Eval(`$("verdict").textContent`, &last)
		a, err := try.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if _, want := try.Replay(a); last != want {
			t.Errorf("the page ends with\n%s\nand the command line with\n%s", last, want)
		}
	}
	c.Eval(`$("again").click(); $("speed").value = "20"; 0`, nil)
	c.Until("a program holds the lock", `$("scene").textContent.includes("holds, token")`)
	c.Eval(`$("k" + run.state.machines.findIndex(m => m.call === "holds" || m.role === "leader")).click()`, nil)
	c.Until("a machine is down", `$("scene").textContent.includes("down")`)
	c.Until("the lock is taken again", `[...$("lines").children].findIndex(l => l.className === "act") > 2`)
	c.Picture(os.Getenv("SHOTS"), "try", 950, 0.75)
	c.Eval(`$("end").click()`, nil)
	var hash string
	c.Eval(`$("verdict").textContent`, &last)
	c.Eval(`location.hash`, &hash)
	a, err := try.Parse(hash)
	if err != nil {
		t.Fatal(err)
	}
	if _, want := try.Replay(a); last != want || len(a.Acts) != 1 {
		t.Errorf("%s: the page ends with\n%s\nand the command line with\n%s", hash, last, want)
	}
	c.Silent()
}

func compressed(t *testing.T, dir string) (size int) {
	t.Helper()
	for _, name := range []string{"index.html", "mortise.wasm", "wasm_exec.js"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := z.Write(text); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		size += b.Len()
	}
	return size
}
