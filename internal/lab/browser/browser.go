// Package browser opens pages in a headless Chromium, for tests of pages. All tests of a binary
// share one browser, and each page has storage of its own. They control it over a pair of pipes
// with the DevTools protocol, whose messages are JSON texts that end with a zero byte.
//
// A test binary calls Browser.Run in TestMain. A test is skipped if Chromium is not installed. A
// Page may be used by several goroutines of its test.
package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

// Browser is the browser that all tests of a binary share. The first test that needs it starts it.
// The zero value is ready.
type Browser struct {
	starting sync.Once
	err      error // of its start

	cmd     *exec.Cmd
	home    string
	to      *os.File
	reading sync.WaitGroup

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	faults  map[string][]string // by session: failed scripts and violations of the Content-Security-Policy
}

// Page is one page of the browser.
type Page struct {
	*Browser
	t       *testing.T
	session string // the DevTools session of the page
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

var errNoBrowser = errors.New(
	"chromium is not installed: apt-get install -y --no-install-recommends chromium")

func (b *Browser) start() error {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return errNoBrowser
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "mortise-browser")
	if err != nil {
		return err
	}
	// The pages of several tests are open, and none may be slow because another one has the focus.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars", "--disable-background-timer-throttling",
		"--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
		"--force-color-profile=srgb", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b.cmd, b.home, b.to, b.waiting, b.faults = cmd, home, to, map[int]chan message{}, map[string][]string{}
	b.reading.Go(func() {
		b.read(from)
		_ = from.Close()
	})
	return nil
}

// Run runs the tests, ends the browser, and returns the exit code.
func (b *Browser) Run(m *testing.M) int { return leftover.Run(browsed{m, b}) }

// browsed ends the browser after the tests.
type browsed struct {
	*testing.M
	b *Browser
}

func (b browsed) Run() int {
	code := b.M.Run()
	if b.b.cmd != nil && !b.b.end() {
		fmt.Fprintln(os.Stderr, "--- FAIL: the ended browser still writes into its directory")
		code = 1
	}
	return code
}

func (b *Browser) end() bool {
	_ = b.cmd.Process.Kill()
	_, _ = b.cmd.Wait(), b.to.Close()
	b.reading.Wait()
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if os.RemoveAll(b.home) == nil {
			return true
		}
	}
	return false
}

// Open opens an empty page. It skips the test if the browser is not installed.
func (b *Browser) Open(t *testing.T) *Page {
	t.Helper()
	b.starting.Do(func() { b.err = b.start() })
	if errors.Is(b.err, errNoBrowser) {
		t.Skip(b.err)
	} else if b.err != nil {
		t.Fatal(b.err)
	}
	c := &Page{Browser: b, t: t}
	var storage struct{ BrowserContextID string }
	c.Call("Target.createBrowserContext", nil, &storage)
	t.Cleanup(func() {
		_ = b.try("", "Target.disposeBrowserContext", map[string]any{"browserContextId": storage.BrowserContextID}, nil)
	})
	var target struct{ TargetID string }
	c.Call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": storage.BrowserContextID,
		"newWindow": true}, &target)
	var attached struct{ SessionID string }
	c.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.Call(domain+".enable", nil, nil)
	}
	c.Call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	return c
}

// read receives messages from the browser until the browser exits.
func (b *Browser) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		var m message
		if err != nil || json.Unmarshal(text[:len(text)-1], &m) != nil {
			b.mu.Lock()
			for id, answer := range b.waiting {
				close(answer)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		b.mu.Lock()
		if answer := b.waiting[m.ID]; answer != nil {
			delete(b.waiting, m.ID)
			answer <- m
		}
		if m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" && strings.Contains(string(m.Params),
			`"error"`) {
			b.faults[m.SessionID] = append(b.faults[m.SessionID], string(m.Params))
		}
		b.mu.Unlock()
	}
}

// Call sends a command of the DevTools protocol and waits for its result. It fails the test if the
// command fails.
func (c *Page) Call(method string, params, result any) {
	c.t.Helper()
	if err := c.try(c.session, method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (b *Browser) try(session, method string, params, result any) error {
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, Method: method, SessionID: session}
	b.waiting[m.ID] = answer
	b.mu.Unlock()
	if params != nil {
		m.Params, _ = json.Marshal(params)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case got, ok := <-answer:
		if !ok {
			return errors.New("the browser has ended")
		}
		if got.Error != nil {
			return errors.New(got.Error.Message)
		}
		if result != nil {
			return json.Unmarshal(got.Result, result)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.New("no answer for a minute")
	}
}

// Visit loads a page, and waits until it is there.
func (c *Page) Visit(url string) {
	c.t.Helper()
	var nav struct{ ErrorText string }
	c.Call("Page.navigate", map[string]any{"url": url}, &nav)
	if nav.ErrorText != "" {
		c.t.Fatalf("%s: %s", url, nav.ErrorText)
	}
	c.Until("the page is there", `document.readyState === "complete" && location.href.startsWith("http")`)
}

// Eval runs an expression in the page. If into is not nil, Eval stores the value of the
// expression there.
func (c *Page) Eval(expression string, into any) {
	c.t.Helper()
	if err := c.Evaluate(expression, into); err != nil {
		c.t.Fatalf("%s: %v", expression, err)
	}
}

// Evaluate is like Eval, and returns the error of the expression.
func (c *Page) Evaluate(expression string, into any) error {
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	err := c.try(c.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}, &result)
	switch {
	case err != nil:
		return err
	case result.ExceptionDetails != nil:
		return errors.New(string(result.ExceptionDetails))
	case into == nil:
		return nil
	}
	return json.Unmarshal(result.Result.Value, into)
}

// Until waits until a JavaScript expression is true in the page. An expression that throws an error
// counts as false, because the page may be about to change.
func (c *Page) Until(what, expression string) {
	c.t.Helper()
	is := false
	for end := time.Now().Add(time.Minute); c.Evaluate("!!("+expression+")", &is) != nil || !is; {
		if time.Now().After(end) {
			c.t.Fatalf("after a minute it is still not so that %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Screen sets the size of the window in pixels, and the colour scheme.
func (c *Page) Screen(width, height int, dark bool) {
	c.t.Helper()
	c.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": width < 500}, nil)
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	c.Call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Picture takes a screenshot of the upper part of the page, at most so many pixels high, for a
// document, and writes it into a directory. Without a directory it does nothing.
func (c *Page) Picture(dir, name string, most int, scale float64) {
	c.t.Helper()
	if dir == "" {
		return
	}
	var height int
	c.Eval("Math.ceil(document.documentElement.getBoundingClientRect().height)", &height)
	var width int
	c.Eval("innerWidth", &width)
	var picture struct{ Data string }
	c.Call("Page.captureScreenshot", map[string]any{
		"captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": width,
			"height": min(height, most), "scale": scale},
	}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	if data, err = fewColours(data); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// fewColours returns a copy of a PNG with only its 200 most frequent colours.
func fewColours(data []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	counts := map[color.RGBA]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var colours color.Palette
	for _, c := range all[:min(len(all), 200)] {
		colours = append(colours, c)
	}
	to := image.NewPaletted(from.Bounds(), colours)
	imagedraw.Draw(to, to.Bounds(), from, image.Point{}, imagedraw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// Silent fails the test if a script of the page has failed, or was forbidden.
func (c *Page) Silent() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults[c.session] {
		c.t.Errorf("the page reports errors: %s", f)
	}
}
