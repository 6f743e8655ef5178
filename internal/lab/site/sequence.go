package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// sequence is a sequence diagram of Mermaid: participants, and what happens between them from top
// to bottom. It has the part of the notation that the documents use: participants, arrows, notes
// and loops.
type sequence struct {
	names, titles []string
	events        []event
}

// event is an arrow or a note. The columns from and to are equal for a note over one participant
// and for an arrow to itself.
type event struct {
	note, dashed bool
	from, to     int
	lines        []string
}

var (
	participant = regexp.MustCompile(`^participant (\w+)(?: as (.*))?$`)
	arrow       = regexp.MustCompile(`^(\w+)(-?->>)(\w+): (.*)$`)
	noteOver    = regexp.MustCompile(`^Note (?:over|right of|left of) (\w+)(?:,(\w+))?: (.*)$`)
	loopOf      = regexp.MustCompile(`^loop (.*)$`)
)

// parseSequence reads a diagram. It returns false if the diagram is of another kind, or has a line
// that this package does not know.
func parseSequence(code string) (s sequence, ok bool) {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	if strings.TrimSpace(lines[0]) != "sequenceDiagram" {
		return s, false
	}
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "end":
		case participant.MatchString(line):
			m := participant.FindStringSubmatch(line)
			s.names = append(s.names, m[1])
			if m[2] == "" {
				m[2] = m[1]
			}
			s.titles = append(s.titles, m[2])
		case loopOf.MatchString(line):
			s.events = append(s.events, event{note: true, from: 0, to: len(s.names) - 1,
				lines: []string{"repeated: " + loopOf.FindStringSubmatch(line)[1]}})
		case arrow.MatchString(line):
			m := arrow.FindStringSubmatch(line)
			from, to := s.column(m[1]), s.column(m[3])
			if from < 0 || to < 0 {
				return s, false
			}
			s.events = append(s.events, event{dashed: m[2] == "-->>", from: from, to: to, lines: broken(m[4])})
		case noteOver.MatchString(line):
			m := noteOver.FindStringSubmatch(line)
			if m[2] == "" {
				m[2] = m[1]
			}
			from, to := s.column(m[1]), s.column(m[2])
			if from < 0 || to < 0 {
				return s, false
			}
			s.events = append(s.events, event{note: true, from: min(from, to), to: max(from, to), lines: broken(m[3])})
		default:
			return s, false
		}
	}
	return s, len(s.names) > 0
}

func (s *sequence) column(name string) int {
	for i, other := range s.names {
		if other == name {
			return i
		}
	}
	return -1
}

// widest is the number of characters of a line in a diagram.
const widest = 46

// broken breaks a text into short lines, also at its line breaks.
func broken(text string) []string {
	var lines []string
	for part := range strings.SplitSeq(text, "<br>") {
		line := ""
		for _, word := range strings.Fields(part) {
			if line != "" && utf8.RuneCountInString(line+" "+word) > widest {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		lines = append(lines, line)
	}
	return lines
}

// Measures of a drawn sequence, in pixels.
const (
	columnWidth = 190
	narrow      = 150 // the width of a column if there are over four
	lineHeight  = 17
	letterWidth = 7
)

// drawSequence returns a sequence diagram as an SVG, with a text of all its steps for readers that
// do not see it. It returns false for other diagrams.
func drawSequence(code string) (string, bool) {
	s, ok := parseSequence(code)
	if !ok {
		return "", false
	}
	var b, steps strings.Builder
	column := columnWidth
	if len(s.names) > 4 {
		column = narrow
	}
	x := func(number int) int { return column/2 + number*column }
	width, y := len(s.names)*column, 0
	for i, title := range s.titles {
		lines := broken(strings.ReplaceAll(title, ", ", ",<br>"))
		for j, line := range lines {
			fmt.Fprintf(&b, `<text class="who" x="%d" y="%d">%s</text>`, x(i), 16+j*lineHeight, html.EscapeString(line))
		}
		y = max(y, 16+len(lines)*lineHeight)
	}
	top := y
	for _, e := range s.events {
		drawn := max(width, e.right(x))
		width = drawn
		y = e.draw(&b, x, y)
		steps.WriteString(s.told(e) + " ")
	}
	var lifelines strings.Builder
	for i := range s.names {
		fmt.Fprintf(&lifelines, `<line class="life" x1="%d" y1="%d" x2="%d" y2="%d"/>`, x(i), top-8, x(i), y+8)
	}
	return fmt.Sprintf(`<figure class="sequence"><svg viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+
		"<title>%s</title>%s%s</svg></figure>\n", width, y+14, width, y+14,
		html.EscapeString(strings.TrimSpace(steps.String())), lifelines.String(), b.String()), true
}

// right returns the right end of what the event draws.
func (e event) right(x func(int) int) int {
	longest := 0
	for _, line := range e.lines {
		longest = max(longest, utf8.RuneCountInString(line)*letterWidth)
	}
	switch {
	case e.note:
		return (x(e.from)+x(e.to)+longest)/2 + 20
	case e.from == e.to:
		return x(e.from) + 40 + longest
	}
	return (x(e.from)+x(e.to)+longest)/2 + 10
}

// draw draws the event below y, and returns the y below it.
func (e event) draw(b *strings.Builder, x func(int) int, y int) int {
	y += 10
	class := "arrow"
	if e.dashed {
		class += " answer"
	}
	text := func(at int, anchor, line string) {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`, at, y+12, anchor, html.EscapeString(line))
		y += lineHeight
	}
	middle := (x(e.from) + x(e.to)) / 2
	switch {
	case e.note:
		longest := 0
		for _, line := range e.lines {
			longest = max(longest, utf8.RuneCountInString(line)*letterWidth)
		}
		half := max(longest, x(e.to)-x(e.from))/2 + 10
		left := max(middle-half, 2)
		fmt.Fprintf(b, `<rect class="note" x="%d" y="%d" width="%d" height="%d"/>`, left, y-2, 2*half,
			len(e.lines)*lineHeight+6)
		for _, line := range e.lines {
			text(left+half, "middle", line)
		}
		return y + 4
	case e.from == e.to:
		at := x(e.from)
		fmt.Fprintf(b, `<path class="%s" d="M%d %d h24 v14 h-22"/>`, class, at, y+2)
		head(b, at, y+16, true)
		for _, line := range e.lines {
			text(at+32, "start", line)
		}
		return max(y, y+2)
	}
	for _, line := range e.lines {
		text(middle, "middle", line)
	}
	fmt.Fprintf(b, `<path class="%s" d="M%d %d H%d"/>`, class, x(e.from), y+2, x(e.to))
	head(b, x(e.to), y+2, e.to < e.from)
	return y + 6
}

// head draws the head of an arrow that ends at the point.
func head(b *strings.Builder, x, y int, left bool) {
	back := -9
	if left {
		back = 9
	}
	fmt.Fprintf(b, `<path class="head" d="M%d %d l%d -4 v8 z"/>`, x, y, back)
}

// told returns the event as a sentence.
func (s *sequence) told(e event) string {
	text := strings.Join(e.lines, " ")
	if e.note {
		return text + "."
	}
	return s.titles[e.from] + " to " + s.titles[e.to] + ": " + text + "."
}
