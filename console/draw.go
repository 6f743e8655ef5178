package console

import (
	"fmt"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/plain"
)

// This file computes the layout of a tree as a picture that is narrow enough for a phone.

const (
	drawWidth  = 340
	indent     = 18
	keyHeight  = 40
	keyGap     = 8
	lineHeight = 22
	lane       = 22
	monoWidth  = 7.4
	textWidth  = 6.3
)

type drawing struct {
	Width, Height int
	Title         string
	Sentences     []string // the picture in words
	Boxes         []box
	Dots          []dot
	Lines         []line
}

type box struct {
	X, Y, W        int
	Key            string // the whole key, for a link
	Name, By, Wait string
	TextX          int
	NameY, ByY     int
	WaitX          int
	Long, Circled  bool
}

type dot struct {
	X, Y, TextX, TextY int
	Text, Whole        string
	Rest               bool // the dot stands for several waiters
	Circled            bool
}

type line struct {
	Path string
	Kind string // "waits", "holds" or "back"
	Head string // path of an arrowhead or a square at the end of the line
}

func draw(t tree) drawing {
	d := drawing{Width: drawWidth}
	right := drawWidth - 1
	if len(t.circles) > 0 {
		right -= lane
	}
	tops, mids := make([]int, len(t.rows)), make([]int, len(t.rows))
	y := 1
	for i, r := range t.rows {
		if r.key != nil {
			if i > 0 {
				y += keyGap
			}
			tops[i], mids[i] = y, y+keyHeight/2
			d.box(r, y, right)
			y += keyHeight
			continue
		}
		mids[i] = y + lineHeight/2 + 3
		d.dot(r, mids[i], right)
		y += lineHeight
	}
	d.Height = y + 5
	d.Title = "Waiters for " + plain.Text(t.rows[0].key.Name)
	d.lines(t, tops, mids, right)
	return d
}

func (d *drawing) box(r row, y, right int) {
	x := 1 + r.depth*indent
	b := box{X: x, Y: y, W: right - x, Key: r.key.Name, TextX: x + 10, NameY: y + 16, ByY: y + 32, WaitX: right - 8,
		Long: r.key.Long, Circled: r.circled}
	b.Name = clip(plain.Text(r.key.Name), int(float64(b.W-20)/monoWidth))
	b.Wait = number(r.key.Waiting, "waits", "wait")
	by := "not held"
	if r.key.Held > 0 {
		q := r.key.Queue[0]
		by = plain.Text(q.Holder)
		if r.key.Held > 1 {
			by = fmt.Sprintf("%s and %d more", by, r.key.Held-1)
		}
		if q.Kept {
			by = "kept by " + by
		}
		by += ", " + span(seconds(r.key.For))
	}
	d.Sentences = append(d.Sentences, fmt.Sprintf("%s: %s; %s.", plain.Text(r.key.Name), by, b.Wait))
	b.By = clip(by, int(float64(b.W-20)/textWidth)-len(b.Wait)-2)
	d.Boxes = append(d.Boxes, b)
}

func (d *drawing) dot(r row, y, right int) {
	o := dot{X: 13 + (r.depth-1)*indent + 14, Y: y, TextY: y + 4, Rest: r.more > 0, Circled: r.circled}
	o.TextX = o.X + 10
	o.Whole = r.label()
	if r.back >= 0 {
		d.Sentences = append(d.Sentences, plain.Text(r.waiter)+", which waits here, holds a key above: a circle.")
	}
	o.Text = clip(o.Whole, int(float64(right-o.TextX)/textWidth))
	d.Dots = append(d.Dots, o)
}

func (r *row) label() string {
	text := plain.Text(r.waiter)
	switch {
	case r.standby:
		return number(r.more, "stands by", "stand by")
	case r.more > 0:
		return fmt.Sprintf("and %d more", r.more)
	case r.again != "":
		text += ", which holds " + plain.Text(r.again)
	case r.value != "":
		text += " “" + plain.Text(r.value) + "”"
	}
	if r.calls > 1 {
		text += fmt.Sprintf(" × %d", r.calls)
	}
	return text
}

// lines adds the lines between the rows: up from waiters to the key that they wait for, down from a
// waiter to the keys that it holds, and back from a waiter to a key above it.
func (d *drawing) lines(t tree, tops, mids []int, right int) {
	lanes := 0
	for parent, p := range t.rows {
		l := line{Kind: "waits"}
		x, from, last := 13+p.depth*indent, tops[parent]+keyHeight, 0
		if p.key == nil {
			x, from, l.Kind = 13+(p.depth-1)*indent+14, mids[parent]+4, "holds"
		}
		for child, c := range t.rows {
			if c.parent != parent {
				continue
			}
			last = mids[child]
			if c.key == nil {
				l.Path += fmt.Sprintf("M%d %dH%d", x, last, x+10)
				continue
			}
			end := 1 + c.depth*indent
			l.Path += fmt.Sprintf("M%d %dH%d", x, last, end)
			l.Head += fmt.Sprintf("M%d %dh6v6h-6z", end-6, last-3)
		}
		if last != 0 {
			if l.Path += fmt.Sprintf("M%d %dV%d", x, last, from+1); p.key != nil {
				l.Head = fmt.Sprintf("M%d %dl4 7h-8z", x, from+1)
			}
			d.Lines = append(d.Lines, l)
		}
		if p.back >= 0 {
			at := min(right+10+5*lanes, drawWidth-2)
			lanes++
			begin := min(13+(p.depth-1)*indent+30+int(textWidth*float64(utf8.RuneCountInString(p.label()))), right-4)
			d.Lines = append(d.Lines, line{
				Path: fmt.Sprintf("M%d %dH%dQ%d %d %d %dV%dQ%d %d %d %dH%d", begin, mids[parent], at-6, at,
					mids[parent], at, mids[parent]-6,
					mids[p.back]+6, at, mids[p.back], at-6, mids[p.back], right+2),
				Kind: "back", Head: fmt.Sprintf("M%d %dl7 4v-8z", right+1, mids[p.back]),
			})
		}
	}
}
