package console

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// nowTime is the time whose figures the page calls those of the last minute. It begins with a slot,
// so it is up to slotTime longer.
const nowTime = time.Minute

// past is what happened on this instance in the last hour.
type past struct {
	Recorded float64 `json:"recorded_seconds"` // an hour, or less after the start of the instance
	Grants   rate    `json:"grants"`
	Waits    rate    `json:"waits"` // calls that stood in a queue
	Losses   rate    `json:"losses"`
	Wait     times   `json:"wait"` // of calls that were granted a lock or stood in a queue
	Hold     times   `json:"hold"` // of locks that were unlocked or lost
	Lease    margin  `json:"lease"`
}

type rate struct {
	Now   float64 `json:"per_second"` // in the last minute
	Most  float64 `json:"highest_per_second"`
	Total uint64  `json:"total"`
	line  []float64
}

type times struct {
	Count   uint64  `json:"count"`
	NowP50  float64 `json:"p50_seconds"` // of the last minute; 0 means that there were none
	NowP99  float64 `json:"p99_seconds"`
	P50     float64 `json:"hour_p50_seconds"`
	P99     float64 `json:"hour_p99_seconds"`
	p50line []float64
	p99line []float64
}

type margin struct {
	Known  bool    `json:"known"`
	Now    float64 `json:"left_seconds"`
	Lowest float64 `json:"lowest_seconds"`
	line   []float64
}

// pastOf computes the figures. Each line has a point for each slot that is remembered, the oldest
// first. A point is negative if the slot has no figure.
func pastOf(h *hour, now time.Time) *past {
	p := &past{Recorded: inSeconds(min(now.Sub(h.began), time.Hour))}
	var wait, hold, waitNow, holdNow totals
	var grants, waits, losses uint64 // in the last minute
	var minute time.Duration
	h.slots(now, func(s *slot, ago, lasted time.Duration) {
		p.Grants.add(s.grants, lasted)
		p.Waits.add(s.waits, lasted)
		p.Losses.add(s.losses, lasted)
		p.Wait.add(&s.wait)
		p.Hold.add(&s.hold)
		p.Lease.add(s.lease)
		wait.add(&s.wait)
		hold.add(&s.hold)
		if ago < nowTime+slotTime {
			grants, waits, losses = grants+uint64(s.grants), waits+uint64(s.waits), losses+uint64(s.losses)
			waitNow.add(&s.wait)
			holdNow.add(&s.hold)
			minute += lasted
		}
	})
	each := max(minute, time.Second).Seconds()
	p.Grants.Now, p.Waits.Now, p.Losses.Now = float64(grants)/each, float64(waits)/each, float64(losses)/each
	p.Wait.sum(&wait, &waitNow)
	p.Hold.sum(&hold, &holdNow)
	p.Lease.Now = inSeconds(h.lapses.Sub(now)) // 0 if the lease is not known
	return p
}

// add adds the count of a slot. A slot that has hardly begun has no rate yet.
func (r *rate) add(n uint32, lasted time.Duration) {
	r.Total += uint64(n)
	if lasted < slotTime {
		return
	}
	one := float64(n) / lasted.Seconds()
	r.Most = max(r.Most, one)
	r.line = append(r.line, one)
}

func (t *times) add(h *histogram) {
	var one totals
	p50, p99 := -1.0, -1.0
	if one.add(h); one.count > 0 {
		p50, p99 = one.percentile(0.5).Seconds(), one.percentile(0.99).Seconds()
	}
	t.Count += one.count
	t.p50line, t.p99line = append(t.p50line, p50), append(t.p99line, p99)
}

func (t *times) sum(hour, minute *totals) {
	t.P50, t.P99 = hour.percentile(0.5).Seconds(), hour.percentile(0.99).Seconds()
	t.NowP50, t.NowP99 = minute.percentile(0.5).Seconds(), minute.percentile(0.99).Seconds()
}

func (m *margin) add(left time.Duration) {
	if left == unknown {
		m.line = append(m.line, -1)
		return
	}
	one := inSeconds(left)
	if !m.Known || one < m.Lowest {
		m.Lowest = one
	}
	m.Known = true
	m.line = append(m.line, one)
}

// chart is one figure on the page: its value, its line, and the whole hour in words.
type chart struct {
	ID, Name string
	Now      string // in the last minute
	Hour     string
	Spark    spark
	Bad      bool // something happened that should not
}

// Charts returns the figures in the order of the page.
func (p *past) Charts() []chart {
	return []chart{
		p.Grants.chart("grants", "Grants", false), p.Waits.chart("waits", "Waits", false),
		p.Losses.chart("losses", "Losses", true),
		p.Wait.chart("wait", "Wait", "waited"), p.Hold.chart("hold", "Hold", "held"), p.Lease.chart(),
	}
}

// Whole reports whether the figures cover a whole hour.
func (p *past) Whole() bool { return p.Recorded >= time.Hour.Seconds() }

func (r *rate) chart(id, name string, bad bool) chart {
	c := chart{ID: id, Name: name, Now: perSecond(r.Now), Hour: grouped(r.Total) + " in all"}
	c.Bad = bad && r.Total > 0
	if r.Most > 0 {
		c.Hour += ", at most " + perSecond(r.Most)
	}
	c.Spark = sparkOf(name+" a second", perSecond, r.line, nil)
	return c
}

func (t *times) chart(id, name, done string) chart {
	c := chart{ID: id, Name: name + " p50 · p99", Now: "none", Hour: "no call has " + done}
	if t.NowP99 > 0 {
		c.Now = short(t.NowP50) + " · " + short(t.NowP99)
	}
	if t.Count > 0 {
		c.Hour = "p99 in all " + short(t.P99) + ", peak " + short(slices.Max(t.p99line))
	}
	c.Spark = sparkOf(name+", p99", short, t.p99line, t.p50line)
	return c
}

func (m *margin) chart() chart {
	c := chart{ID: "lease", Name: "Lease margin", Now: "not known yet", Hour: "known after the next renewal"}
	if m.Known {
		c.Now, c.Hour, c.Bad = short(m.Now), "lowest "+short(m.Lowest), m.Lowest == 0
	}
	c.Spark = sparkOf("Lease margin", short, m.line, nil)
	return c
}

func perSecond(n float64) string {
	switch {
	case n == 0:
		return "0 /s"
	case n < 0.01:
		return "<0.01 /s"
	case n < 10:
		return fmt.Sprintf("%.2f /s", n)
	case n < 100:
		return fmt.Sprintf("%.1f /s", n)
	}
	return grouped(uint64(n+0.5)) + " /s"
}

// grouped returns a number with a comma before each group of three digits.
func grouped(n uint64) string {
	if n < 1000 {
		return strconv.FormatUint(n, 10)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// short returns a time that a histogram may have measured, in its unit.
func short(s float64) string {
	switch d := seconds(s); {
	case d > 0 && d <= shortest:
		return "<32 µs"
	case d >= longest:
		return ">2 h 23 min"
	case d > 0 && d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d > 0 && d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", s*1000)
	case d > 0 && d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return span(d)
	}
}
