package console

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The figures of the last minute, of the best slot and of the hour must be those of the events.
func TestRatesOfThePast(t *testing.T) {
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	var h hour
	h.begin(began)
	for s := range 2 * 3600 { // two grants a second; in one slot ten
		at := began.Add(time.Duration(s) * time.Second)
		h.at(at).grants += 2
		if s/30 == 200 {
			h.at(at).grants += 8
		}
		h.at(at).wait.add(100 * time.Millisecond)
	}
	h.at(began.Add(2*time.Hour-time.Second)).losses++
	p := pastOf(&h, began.Add(2*time.Hour))
	if p.Grants.Now < 1.9 || p.Grants.Now > 2.1 || p.Grants.Most != 10 || p.Grants.Total != 7200+240 {
		t.Errorf("%v a second, at most %v, %d in all", p.Grants.Now, p.Grants.Most, p.Grants.Total)
	}
	if p.Losses.Total != 1 || p.Losses.Now < 1.0/91 || p.Losses.Now > 1.0/59 || p.Waits.Now != 0 {
		t.Errorf("losses %+v, waits %+v", p.Losses, p.Waits)
	}
	if p.Wait.P99 < 0.0875 || p.Wait.P99 > 0.1125 || p.Wait.Count != 3600 || p.Hold.Count != 0 || p.Hold.P99 != 0 {
		t.Errorf("waits %v, holds %v", p.Wait.P99, p.Hold.P99)
	}
	if len(p.Grants.line) != slotsKept || p.Recorded != 3600 || p.Lease.Known {
		t.Errorf("%d points, %v s, lease %+v", len(p.Grants.line), p.Recorded, p.Lease)
	}
	h.at(began.Add(5 * time.Hour))
	if p := pastOf(&h, began.Add(5*time.Hour)); p.Grants.Total != 0 || p.Wait.Count != 0 {
		t.Errorf("after three quiet hours %d grants are left", p.Grants.Total)
	}
}

// Right after the start there is hardly any time to divide by.
func TestRatesAtTheStart(t *testing.T) {
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	var h hour
	h.begin(began)
	h.at(began).grants = 5
	if p := pastOf(&h, began); p.Grants.Now != 5 || p.Grants.Total != 5 || len(p.Grants.line) != 0 {
		t.Errorf("%+v", p.Grants)
	}
	if p := pastOf(&h, began.Add(10*time.Second)); p.Grants.Now != 0.5 || p.Recorded != 10 {
		t.Errorf("%+v", p.Grants)
	}
}

// The lowest lease is what was left directly before a renewal, not directly after it.
func TestLeaseMargin(t *testing.T) {
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	var h hour
	h.begin(began)
	for s := 0; s < 600; s += 3 {
		h.leased(began.Add(time.Duration(s)*time.Second), 8*time.Second)
	}
	now := began.Add(600 * time.Second)
	if p := pastOf(&h, now); !p.Lease.Known || p.Lease.Lowest != 5 || p.Lease.Now != 5 {
		t.Errorf("%+v", p.Lease)
	}
	if p := pastOf(&h, now.Add(time.Minute)); p.Lease.Lowest != 0 || p.Lease.Now != 0 {
		t.Errorf("without a renewal for a minute: %+v", p.Lease)
	}
}

func TestSparkline(t *testing.T) {
	s := sparkOf("Grants a second", perSecond, []float64{0, 4, -1, 2, -1, -1, 1, 3}, nil)
	if s.Words != "Grants a second in the 4 min 00 s since the start: lowest 0 /s, highest 4.00 /s, last 3.00 /s." {
		t.Error(s.Words)
	}
	if moves := strings.Count(s.Path, "M"); moves != 3 { // one for each run of known points
		t.Errorf("%d runs in %s", moves, s.Path)
	}
	if s := sparkOf("Waits", perSecond, []float64{-1, -1}, nil); s.Path != "" || s.Words != "Waits: no figures yet." {
		t.Errorf("%+v", s)
	}
	if s.Width != 8*sparkPoint || !strings.HasPrefix(s.Path, "M0 ") { // the line fills its picture at every age
		t.Errorf("%d wide: %s", s.Width, s.Path)
	}
	full := make([]float64, slotsKept+1)
	for i := range full {
		full[i] = float64(i)
	}
	point := regexp.MustCompile(`^(M\d+ [\d.]+h1|L\d+ [\d.]+)+$`)
	s = sparkOf("x", perSecond, full, full)
	if !point.MatchString(s.Path) || s.Lower != s.Path || !strings.HasSuffix(s.Path, "L241 1.0") {
		t.Error(s.Path)
	}
	if flat := sparkOf("x", perSecond, []float64{0, 0}, nil); !strings.HasSuffix(flat.Path, "L3 27.0") {
		t.Error(flat.Path)
	}
}

func TestFiguresAreShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0 /s", 0.001: "<0.01 /s", 0.25: "0.25 /s", 12.34: "12.3 /s",
		123.6: "124 /s", 1234567: "1,234,567 /s"} {
		if got := perSecond(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.0 s", shortest: "<32 µs", 250 * time.Microsecond: "250 µs",
		2300 * time.Microsecond: "2.3 ms", 45 * time.Millisecond: "45 ms", 3 * time.Second: "3.0 s",
		longest: ">2 h 23 min"} {
		if got := short(d.Seconds()); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// The page and the JSON show the last hour if there is a History, and nothing of it otherwise.
func TestThePastIsShown(t *testing.T) {
	node := newPastNode()
	h := New(node, Options{History: anHour()})
	page := mustPage(t, h, "/")
	wantText(t, page, "The last hour", "calls of this instance only", "2 in all, at most 0.03 /s",
		`aria-label="Losses a second in the last hour: lowest 0 /s, highest 0.03 /s, last 0 /s."`, "p99 in all ")
	var v struct {
		Past struct {
			Recorded float64 `json:"recorded_seconds"`
			Losses   struct{ Total int }
			Wait     struct {
				P99 float64 `json:"hour_p99_seconds"`
			}
		} `json:"last_hour"`
	}
	if _, body, _ := get(t, h, "/status.json"); json.Unmarshal([]byte(body), &v) != nil || v.Past.Recorded != 3600 ||
		v.Past.Losses.Total != 2 || v.Past.Wait.P99 < 0.002 || v.Past.Wait.P99 > 0.1 {
		t.Errorf("%+v", v)
	}
	h = New(node, Options{})
	if _, body, _ := get(t, h, "/status.json"); strings.Contains(body, "last_hour") {
		t.Error("the JSON has an hour that is not recorded")
	}
	if page := mustPage(t, h, "/"); strings.Contains(page, `id="past"`) {
		t.Error("the page has an hour that is not recorded")
	}
	wantText(t, mustPage(t, New(node, Options{History: NewHistory()}), "/"), " since the start", "not known yet")
}
