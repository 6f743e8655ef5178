package limits

import (
	"maps"
	"slices"
	"testing"
)

// Places are what a limit allows at the same time: sessions, questions, connections.
type Places struct {
	// Limit is the number of places. Zero means as many as can be taken at first.
	Limit int
	// Endings are the ways in which a place is given back: closed, canceled, lost, failed. Each
	// function takes one place, and returns the function that gives it back in this way. It fails
	// if there is no place.
	Endings map[string]func() (end func(), err error)
	// Used returns the number of places that are taken. Nil means that nothing shows it.
	Used func() int
}

// GivenBack fails the test unless each place is given back, whatever its end: three times the limit
// are taken and end in each way, one after the other and all at once. There are exactly as many
// places as the limit allows, and in the end one more is taken, and none counts.
func GivenBack(t *testing.T, p Places) {
	t.Helper()
	ways := slices.Sorted(maps.Keys(p.Endings))
	if p.Limit == 0 {
		ends := fill(t, p, ways[:1], 1<<16)
		p.Limit = len(ends)
		all(ends)
	}
	for _, way := range ways {
		for i := range 3 * p.Limit {
			end, err := p.Endings[way]()
			if err != nil {
				t.Fatalf("no place is left after %d that were %s one after the other, and the limit is %d: %v", i, way,
					p.Limit, err)
			}
			end()
		}
		p.count(t, 0, "all were "+way)
	}
	for i := range 3 {
		ends := fill(t, p, ways[i%len(ways):], p.Limit+1)
		if len(ends) != p.Limit {
			t.Fatalf("%d places were taken at once in round %d, and the limit is %d", len(ends), i, p.Limit)
		}
		p.count(t, p.Limit, "all were taken")
		all(ends)
	}
	end, err := p.Endings[ways[0]]()
	if err != nil {
		t.Fatalf("no place is left after all were given back: %v", err)
	}
	end()
	p.count(t, 0, "all were given back")
}

// fill takes at most most places, until one is refused.
func fill(t *testing.T, p Places, ways []string, most int) (ends []func()) {
	t.Helper()
	for len(ends) < most {
		end, err := p.Endings[ways[len(ends)%len(ways)]]()
		if err != nil {
			break
		}
		ends = append(ends, end)
	}
	return ends
}

func all(ends []func()) {
	for _, end := range ends {
		end()
	}
}

func (p *Places) count(t *testing.T, want int, when string) {
	t.Helper()
	if p.Used == nil {
		return
	}
	if used := p.Used(); used != want {
		t.Fatalf("%d places count as taken when %s; want %d", used, when, want)
	}
}
