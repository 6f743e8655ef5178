package console

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The size of a sparkline in its own units. The browser stretches it to the width of its column.
const (
	sparkPoint  = 2 // width of one figure
	sparkHeight = 28
)

// spark is the picture of a line of figures. Its right edge is now, and its left edge is an hour
// ago, or the start of the instance if that is later.
type spark struct {
	Width, Height int
	Path          string // of the figures
	Lower         string // of a second line below the first one; empty means none
	Words         string // the picture in words
}

// sparkOf draws a line, and a second one that is nowhere above it. A negative point is a gap.
func sparkOf(name string, say func(float64) string, line, lower []float64) spark {
	s := spark{Width: sparkPoint * max(len(line), 1), Height: sparkHeight}
	known := slices.DeleteFunc(slices.Clone(line), func(v float64) bool { return v < 0 })
	if len(known) == 0 {
		s.Words = name + ": no figures yet."
		return s
	}
	most := slices.Max(known)
	s.Path, s.Lower = pathOf(line, most), pathOf(lower, most)
	when := "the last hour"
	if len(line) < slotsKept {
		when = "the " + span(time.Duration(len(line))*slotTime) + " since the start"
	}
	s.Words = fmt.Sprintf("%s in %s: lowest %s, highest %s, last %s.", name, when, say(slices.Min(known)), say(most),
		say(known[len(known)-1]))
	return s
}

func pathOf(line []float64, most float64) string {
	var b strings.Builder
	for i, v := range line {
		if v < 0 {
			continue
		}
		y := float64(sparkHeight - 1)
		if most > 0 {
			y -= v / most * (sparkHeight - 2)
		}
		x := sparkPoint * i
		if i == 0 || line[i-1] < 0 { // a dash, so that a point between two gaps can be seen
			fmt.Fprintf(&b, "M%d %.1fh1", x, y)
			continue
		}
		fmt.Fprintf(&b, "L%d %.1f", x+1, y)
	}
	return b.String()
}
