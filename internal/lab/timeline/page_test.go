package timeline_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

func write(t *testing.T, p *timeline.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage has every kind of bar and mark, and texts that would be markup.
func TestPage(t *testing.T) {
	evil := `<script>alert("x")</script>`
	p := timeline.Page{Title: evil, Command: evil, Verdict: evil, Faults: []string{evil}, Remarks: []string{evil},
		Notes: []string{evil}, At: 3 * time.Second, From: time.Second, To: 4 * time.Second, Lanes: []string{evil, "b"}}
	bars := []timeline.Kind{timeline.Held, timeline.Shared, timeline.Waits, timeline.Runs, timeline.Paused,
		timeline.Leads, timeline.Cut}
	marks := []timeline.Kind{timeline.Fault, timeline.Lost, timeline.Late, timeline.Event}
	for _, k := range bars {
		p.Bars = append(p.Bars, timeline.Bar{Lane: evil, Kind: k, From: 2 * time.Second, To: 3 * time.Second, Text: evil})
	}
	for _, k := range marks {
		p.Marks = append(p.Marks, timeline.Mark{Lane: evil, To: "b", Kind: k, At: 2 * time.Second, Text: evil})
	}
	html := write(t, &p)
	for _, k := range bars {
		if strings.Count(html, fmt.Sprintf(`<rect class=%q`, k)) != 2 || !strings.Contains(html, "rect."+string(k)+" ") {
			t.Errorf("a bar of the kind %s is not in both drawings, or has no style", k)
		}
	}
	for _, k := range marks {
		if strings.Count(html, fmt.Sprintf(`<circle class=%q`, k)) != 2 || !strings.Contains(html, "circle."+string(k)) {
			t.Errorf("a mark of the kind %s is not in both drawings, or has no style", k)
		}
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "http") {
		t.Error("the page has a script, or names another page")
	}
	if strings.Count(html, `class="objection" x1=`) != 2 {
		t.Error("the objection is not in both drawings")
	}
	d := xml.NewDecoder(strings.NewReader(html[strings.Index(html, "<svg"):strings.LastIndex(html, "<h2>")]))
	d.Strict = true
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the drawings are not well formed: %v", err)
		}
	}
}

// Next to the objection a third drawing shows what is too small in the others. Of the transcript
// only the last lines are unfolded.
func TestNextToTheObjection(t *testing.T) {
	p := timeline.Page{Lanes: []string{"a"}, From: time.Second, To: 10 * time.Second, At: 9 * time.Second,
		Near: 8 * time.Second, Faults: []string{"one"}, Minimal: true}
	p.Bars = []timeline.Bar{{Lane: "a", Kind: timeline.Held, From: 8 * time.Second, To: 10 * time.Second}}
	for i := range 100 {
		p.Notes = append(p.Notes, fmt.Sprintf("note %d.", i))
	}
	html := write(t, &p)
	for text, want := range map[string]int{"<svg": 3, `<rect class="held"`: 3, `class="objection" x1=`: 3,
		"Next to the objection, from 8.000 s to 10.000 s": 1, "1 fault;": 1, "40 events before them": 1} {
		if n := strings.Count(html, text); n != want {
			t.Errorf("%q is %d times on the page, want %d", text, n, want)
		}
	}
	folded, last, _ := strings.Cut(html, "</details>")
	if !strings.Contains(folded, "note 39.\n") || !strings.Contains(last, "note 40.\n") {
		t.Error("not the last 60 lines are unfolded")
	}
}

// A page stays small, and keeps what is next to the objection.
func TestManyItems(t *testing.T) {
	p := timeline.Page{Lanes: []string{"a"}, To: time.Hour, At: time.Hour}
	for i := range 10 * timeline.MaxItems {
		at := time.Duration(i) * 90 * time.Millisecond
		p.Marks = append(p.Marks, timeline.Mark{Lane: "a", Kind: timeline.Event, At: at, Text: fmt.Sprintf("mark %d.", i)})
	}
	html := write(t, &p)
	if n := strings.Count(html, "<circle"); n != 2*timeline.MaxItems {
		t.Errorf("%d marks", n)
	}
	last := fmt.Sprintf("mark %d.", 10*timeline.MaxItems-1)
	if !strings.Contains(html, last) || !strings.Contains(html, "36000 earlier bars and marks are not shown") {
		t.Error("the page lacks its last mark, or does not say what it leaves out")
	}
}

// TestHolds has a call of each outcome and each end of a hold.
func TestHolds(t *testing.T) {
	const zero = time.Hour
	at := func(s int) int64 { return int64(zero) + int64(s)*int64(time.Second) }
	call := func(op uint64, s int, key string, permits uint32) history.Event {
		return history.Event{Kind: history.Call, Op: op, At: at(s), Key: key, Permits: permits, Node: "n", Stream: 1}
	}
	granted := func(op uint64, s int) history.Event {
		return history.Event{Kind: history.Return, Op: op, At: at(s), Outcome: history.Granted, Token: 7, Stream: 1}
	}
	of := func(kind history.Kind, op uint64, s, until int) history.Event {
		e := history.Event{Kind: kind, Op: op, At: at(s), Stream: 1}
		if until != 0 {
			e.Until = at(until)
		}
		return e
	}
	events := []history.Event{
		call(1, 0, "unlocked", 0), granted(1, 1), of(history.Unlock, 1, 3, 0),
		call(2, 0, "lost", 0), granted(2, 2), of(history.Lost, 2, 9, 5), of(history.Unlock, 2, 9, 0),
		call(3, 1, "lowered", 0), granted(3, 1), of(history.Downgrade, 3, 4, 0), of(history.Unlock, 3, 6, 0),
		call(4, 2, "failed", 0), {Kind: history.Return, Op: 4, At: at(3), Outcome: history.Failed, Stream: 1},
		call(5, 2, "waits", 1), call(6, 2, "ended", 1),
		{Kind: history.Call, Op: 1, At: at(3), Key: "left", Keys: []string{"too"}, Node: "m", Stream: 2},
		{Kind: history.Return, Op: 1, At: at(4), Outcome: history.Granted, Token: 8, Stream: 2},
	}
	events[14].Stream = 3
	keys, bars := timeline.Holds(events, map[int]time.Duration{3: 8 * time.Second}, zero, 20*time.Second)
	if got := strings.Join(keys, " "); got != "ended failed left lost lowered too unlocked waits" {
		t.Errorf("the keys are %s", got)
	}
	want := map[string]bool{"unlocked waits 0-1": true, "unlocked held 1-3": true, "lost waits 0-2": true,
		"lost held 2-5": true, "lowered waits 1-1": true, "lowered held 1-4": true, "lowered shared 4-6": true,
		"failed waits 2-3": true, "waits waits 2-20": true, "ended waits 2-8": true, "left waits 3-4": true,
		"too waits 3-4": true, "left held 4-20": true, "too held 4-20": true}
	for _, b := range bars {
		name := fmt.Sprintf("%s %s %v-%v", b.Lane, b.Kind, b.From.Seconds(), b.To.Seconds())
		if !want[name] {
			t.Errorf("unexpected: %s (%s)", name, b.Text)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
