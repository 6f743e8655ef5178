package console

import (
	"fmt"
	"slices"
	"strings"
)

// The size of a sparkline in its own units. The browser stretches it to the width of its column.
const (
	sparkWidth  = 2 * slotsKept
	sparkHeight = 28
)

// spark is the picture of a line of figures. Its right edge is now, and its left edge is an hour
// ago.
type spark struct {
	Width, Height int
	Path          string // of the figures
	Lower         string // of a second line below the first one; empty means none
	Words         string // the picture in words
}

// sparkOf draws a line, and a second one that is nowhere above it. A negative point is a gap.
func sparkOf(name string, say func(float64) string, line, lower []float64) spark {
	s := spark{Width: sparkWidth, Height: sparkHeight}
	known := slices.DeleteFunc(slices.Clone(line), func(v float64) bool { return v < 0 })
	if len(known) == 0 {
		s.Words = name + ": no figures yet."
		return s
	}
	most := slices.Max(known)
	s.Path, s.Lower = pathOf(line, most), pathOf(lower, most)
	s.Words = fmt.Sprintf("%s in the last hour: lowest %s, highest %s, last %s.",
		name, say(slices.Min(known)), say(most), say(known[len(known)-1]))
	return s
}

func pathOf(line []float64, most float64) string {
	var b strings.Builder
	left := sparkWidth - 2*len(line)
	for i, v := range line {
		if v < 0 {
			continue
		}
		y := float64(sparkHeight - 1)
		if most > 0 {
			y -= v / most * (sparkHeight - 2)
		}
		x := left + 2*i
		if i == 0 || line[i-1] < 0 { // a dash, so that a point between two gaps can be seen
			fmt.Fprintf(&b, "M%d %.1fh1", max(x, 0), y)
			continue
		}
		fmt.Fprintf(&b, "L%d %.1f", x+1, y)
	}
	return b.String()
}
