package timeline

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

// MaxItems is the largest number of bars, and of marks, that a page shows.
const MaxItems = 4000

// Kind is what a bar or a mark shows. It is a class of the page's style sheet.
type Kind string

// These are the kinds of bars and of marks.
const (
	Held   Kind = "held"   // bar: a caller believes that it holds the key
	Shared Kind = "shared" // bar: the same, beside others
	Waits  Kind = "waits"  // bar: a call for the key has not returned
	Runs   Kind = "runs"   // bar: the process runs
	Paused Kind = "paused" // bar: the process runs and is not scheduled
	Leads  Kind = "leads"  // bar: the replica of the process leads
	Cut    Kind = "cut"    // bar: the process is cut from another
	Fault  Kind = "fault"  // mark
	Lost   Kind = "lost"   // mark: a message was lost
	Late   Kind = "late"   // mark: a message or a turn is late, or comes twice
	Event  Kind = "event"  // mark: anything else
)

// Bar is a span of time in a lane.
type Bar struct {
	Lane     string
	Kind     Kind
	From, To time.Duration
	Text     string
}

// Mark is a moment in a lane. If To names another lane, the mark is an arrow to it.
type Mark struct {
	Lane, To string
	Kind     Kind
	At       time.Duration
	Text     string
}

// Page is a failed run. Write does not change it.
type Page struct {
	Title    string
	Command  string // repeats the run
	Verdict  string // what the judge has found
	Faults   []string
	Minimal  bool // without any one of the faults the run passes
	Remarks  []string
	At       time.Duration // when the judge objected
	From, To time.Duration // the window that is drawn large; the whole run is drawn small above it
	Near     time.Duration // if after From, a third drawing is from here to To
	Lanes    []string      // in this order; bars and marks of other lanes are not drawn
	Bars     []Bar
	Marks    []Mark
	Notes    []string // the transcript, its last lines
}

//go:embed page.html
var files embed.FS

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	page, err := template.New("page.html").Funcs(template.FuncMap{
		"seconds": func(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) },
	}).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	begin, end := p.From, max(p.To, p.At)
	for _, b := range p.Bars {
		begin, end = min(begin, b.From), max(end, b.To)
	}
	to := max(p.To, p.From+time.Millisecond)
	large := []*drawing{p.draw(p.From, to, 16, true)}
	if p.Near > p.From && p.Near < p.To {
		large = append(large, p.draw(p.Near, p.To, 16, true))
	}
	earlier := max(0, len(p.Notes)-lastNotes)
	return page.Execute(w, struct {
		*Page
		Whole         *drawing
		Large         []*drawing
		Earlier, Last []string
	}{p, p.draw(begin, end, 3, false), large, p.Notes[:earlier], p.Notes[earlier:]})
}

const (
	width  = 1500 // of a drawing, in pixels
	labels = 120  // width of the names of the lanes
	right  = 30   // for the half of the last tick's text
	least  = 13   // height of the lowest lane, for its name
	axis   = 18   // height of the axis
	digits = 6.5  // width of a character of a bar's text

	lastNotes = 60 // lines of the transcript that are not folded away
)

// drawing is an SVG: everything has its position in pixels.
type drawing struct {
	Width, Height int
	From, To      time.Duration
	Lanes         []lane
	Bars          []box
	Marks         []sign
	Ticks         []tick
	Objection     float64 // zero means outside
	Omitted       int
	large         bool
}

type lane struct {
	Name             string
	Y, Height, Label int
	Odd              bool
}

type box struct {
	Kind          Kind
	X, Width      float64
	Y, Height     int
	Text, Tooltip string
	Baseline      int
}

type sign struct {
	Kind    Kind
	X       float64
	Y, To   int
	Tooltip string
	Arrow   bool
	Size    int
}

type tick struct {
	X    float64
	Text string
}

func (p *Page) draw(from, to time.Duration, row int, large bool) *drawing {
	d := &drawing{Width: width, From: from, To: to, large: large}
	scale := float64(width-labels-right) / float64(max(to-from, 1))
	x := func(t time.Duration) float64 { return labels + float64(min(max(t, from), to)-from)*scale }
	bars := shown(p.Bars, d, func(b *Bar) bool { return b.To >= from && b.From <= to && slices.Contains(p.Lanes, b.Lane) })
	marks := shown(p.Marks, d, func(m *Mark) bool {
		return m.At >= from && m.At <= to && slices.Contains(p.Lanes, m.Lane)
	})
	slices.SortStableFunc(bars, func(a, b Bar) int { return int(a.From - b.From) })
	y, middle := axis, map[string]int{}
	for i, name := range p.Lanes {
		top := y + 2
		rows := d.stack(bars, name, top, row, x)
		height := max(max(rows, 1)*row+4, least)
		d.Lanes = append(d.Lanes, lane{Name: name, Y: y, Height: height, Label: y + height/2 + 4, Odd: i%2 == 1})
		middle[name] = y + height/2
		y += height
	}
	for _, m := range marks {
		s := sign{Kind: m.Kind, X: x(m.At), Y: middle[m.Lane], Tooltip: fmt.Sprintf("%.6f s %s: %s", m.At.Seconds(), m.Lane,
			m.Text), Size: 2 + row/5}
		if to, known := middle[m.To]; known && large {
			s.To, s.Arrow = to, true
		}
		d.Marks = append(d.Marks, s)
	}
	d.Height = y + 4
	if p.At >= from && p.At <= to {
		d.Objection = x(p.At)
	}
	d.scale(x)
	return d
}

// shown returns the last items that match, at most MaxItems.
func shown[T any](all []T, d *drawing, match func(*T) bool) (some []T) {
	for i := range all {
		if match(&all[i]) {
			some = append(some, all[i])
		}
	}
	if more := len(some) - MaxItems; more > 0 {
		d.Omitted += more
		some = some[more:]
	}
	return some
}

// stack draws the bars of a lane, and puts bars of one time below each other. It returns the number
// of rows.
func (d *drawing) stack(bars []Bar, name string, top, row int, x func(time.Duration) float64) (rows int) {
	var ends []time.Duration
	for _, b := range bars {
		if b.Lane != name {
			continue
		}
		at := slices.IndexFunc(ends, func(end time.Duration) bool { return end <= b.From })
		if at < 0 {
			ends = append(ends, 0)
			at = len(ends) - 1
		}
		ends[at] = b.To
		o := box{Kind: b.Kind, X: x(b.From), Width: max(x(b.To)-x(b.From), 1), Y: top + at*row, Height: row - 1,
			Baseline: top + at*row + row - 5,
			Tooltip:  fmt.Sprintf("%.6f s to %.6f s: %s", b.From.Seconds(), b.To.Seconds(), b.Text)}
		if room := int(o.Width / digits); d.large && room >= 3 {
			o.Text = clip(b.Text, room)
		}
		d.Bars = append(d.Bars, o)
	}
	return len(ends)
}

func clip(text string, room int) string {
	if r := []rune(text); len(r) > room {
		return string(r[:room-1]) + "…"
	}
	return text
}

// scale draws the axis, with at most 15 ticks.
func (d *drawing) scale(x func(time.Duration) float64) {
	step := time.Millisecond
	for (d.To-d.From)/step > 15 {
		step *= 2
		if (d.To-d.From)/step > 15 {
			step *= 5
		}
	}
	for t := (d.From + step - 1) / step * step; t <= d.To; t += step {
		d.Ticks = append(d.Ticks, tick{x(t), strings.TrimSuffix(fmt.Sprintf("%.3f", t.Seconds()), ".000") + " s"})
	}
}
