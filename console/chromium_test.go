package console

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

// browser is a headless browser, which all tests share. They control it over a pair of pipes with
// the DevTools protocol, whose messages are JSON texts that end with a zero byte.
type browser struct {
	cmd     *exec.Cmd
	home    string
	to      *os.File
	reading sync.WaitGroup

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	faults  map[string][]string // by session: failed scripts and violations of the Content-Security-Policy
}

// chromium is one page of the browser, with storage of its own.
type chromium struct {
	*browser
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

// running is set once the browser runs. TestMain ends it.
var running *browser

// theBrowser starts the browser for the first test that needs it.
var theBrowser = sync.OnceValues(func() (*browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, errNoBrowser
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "mortise-console")
	if err != nil {
		return nil, err
	}
	// The pages of several tests are open, and none may be slow because another one has the focus.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars", "--disable-background-timer-throttling",
		"--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
		"--force-color-profile=srgb", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &browser{cmd: cmd, home: home, to: to, waiting: map[int]chan message{}, faults: map[string][]string{}}
	b.reading.Go(func() {
		b.read(from)
		_ = from.Close()
	})
	running = b
	return b, nil
})

func TestMain(m *testing.M) { os.Exit(leftover.Run(browsed{m})) }

// browsed ends the browser after the tests.
type browsed struct{ *testing.M }

func (b browsed) Run() int {
	code := b.M.Run()
	if running != nil && !running.end() {
		fmt.Fprintln(os.Stderr, "--- FAIL: the ended browser still writes into its directory")
		code = 1
	}
	return code
}

func (b *browser) end() bool {
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

// startChromium opens a page. It skips the test if the browser is not installed.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	b, err := theBrowser()
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	c := &chromium{browser: b, t: t}
	var storage struct{ BrowserContextID string }
	c.call("Target.createBrowserContext", nil, &storage)
	t.Cleanup(func() {
		_ = b.try("", "Target.disposeBrowserContext", map[string]any{"browserContextId": storage.BrowserContextID}, nil)
	})
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": storage.BrowserContextID,
		"newWindow": true}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(domain+".enable", nil, nil)
	}
	c.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	return c
}

// read receives messages from the browser until the browser exits.
func (b *browser) read(from *os.File) {
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

// call sends a command and waits for its result. It fails the test if the command fails.
func (c *chromium) call(method string, params, result any) {
	c.t.Helper()
	if err := c.try(c.session, method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (b *browser) try(session, method string, params, result any) error {
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

func (c *chromium) open(url string) {
	c.t.Helper()
	var nav struct{ ErrorText string }
	c.call("Page.navigate", map[string]any{"url": url}, &nav)
	if nav.ErrorText != "" {
		c.t.Fatalf("%s: %s", url, nav.ErrorText)
	}
	c.until("the page is there", `document.readyState === "complete" && location.href.startsWith("http")`)
}

// eval runs an expression in the page. If into is not nil, eval stores the value of the
// expression there.
func (c *chromium) eval(expression string, into any) {
	c.t.Helper()
	if err := c.evaluate(expression, into); err != nil {
		c.t.Fatalf("%s: %v", expression, err)
	}
}

func (c *chromium) evaluate(expression string, into any) error {
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

// until waits until a JavaScript expression is true in the page. An expression that throws an error
// counts as false, because the page may be about to change.
func (c *chromium) until(what, expression string) {
	c.t.Helper()
	eventually(c.t, what, func() (is bool) { return c.evaluate("!!("+expression+")", &is) == nil && is })
}

func (c *chromium) screen(width, height int, dark bool) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": width < 500}, nil)
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	c.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (c *chromium) shot(name string) { c.picture(name, 1600, 1) }

// picture takes a screenshot of the upper part of the page for a document.
func (c *chromium) picture(name string, most int, scale float64) {
	c.t.Helper()
	if *shots == "" {
		return
	}
	var height int
	c.eval("Math.ceil(document.documentElement.getBoundingClientRect().height)", &height)
	var width int
	c.eval("innerWidth", &width)
	var picture struct{ Data string }
	c.call("Page.captureScreenshot", map[string]any{
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
	if err := os.WriteFile(fmt.Sprintf("%s/%s.png", *shots, name), data, 0o644); err != nil {
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

func (c *chromium) silent() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults[c.session] {
		c.t.Errorf("the page reports errors: %s", f)
	}
}
