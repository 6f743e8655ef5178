package policy

import (
	"fmt"
	"strings"
	"testing"
)

// measured maps the name of each row in docs/CHOOSING.md to the row in docs/SPEED.md.
func measured() map[string]string {
	return map[string]string{
		"mortise, memory": "mortise-tls", "mortise, `Dir`": "mortise-dir-tls", "etcd `concurrency`, synced": "etcd",
		"ZooKeeper, Curator, synced": "zookeeper",
		"Redis, `SET NX PX`":         "redis", "Redlock (redsync), synced": "redlock", "PostgreSQL advisory": "postgres",
	}
}

// figureFaults returns the figures in the table of CHOOSING.md that SPEED.md does not have. The
// parameters are the texts of these pages.
func figureFaults(choosing, speed string) (faults []string, figures int) {
	const what, pairs, handOvers = 1, 8, 9
	for line := range strings.Lines(choosing) {
		cells := strings.Split(line, "|")
		if len(cells) != 11 || strings.Contains(line, "---") {
			continue
		}
		name := strings.TrimSpace(cells[what])
		for cell, column := range map[int]int{pairs: 4, handOvers: 2} {
			figure := strings.TrimSpace(cells[cell])
			if figure == "" || figure == "pairs" || figure == "hand-over" {
				continue
			}
			figures++
			if !stands(speed, measured()[name], column, figure, cell == handOvers) {
				faults = append(faults, fmt.Sprintf("%s: SPEED.md does not have %s", name, figure))
			}
		}
	}
	return faults, figures
}

// stands reports whether the cell of the given row and column begins with the figure. It searches
// the tables of hand-overs, which have five columns, or the tables of pairs, which have seven.
func stands(speed, name string, column int, figure string, handOvers bool) bool {
	for line := range strings.Lines(speed) {
		cells := strings.Split(line, "|")
		wide := len(cells) == 9
		if handOvers {
			wide = len(cells) == 7
		}
		if wide && strings.TrimSpace(cells[1]) == name && strings.HasPrefix(strings.TrimSpace(cells[column]),
			figure+" (") {
			return true
		}
	}
	return false
}

// The figures of docs/CHOOSING.md must be in docs/SPEED.md, which a program writes.
func TestFiguresAreMeasured(t *testing.T) {
	choosing, speed := readPage(t, "CHOOSING.md"), readPage(t, "SPEED.md")
	faults, figures := figureFaults(choosing, speed)
	for _, fault := range faults {
		t.Errorf("docs/CHOOSING.md: %s", fault)
	}
	if want := 2 * len(measured()); figures != want {
		t.Errorf("docs/CHOOSING.md has %d figures in its table, want %d", figures, want)
	}
	row := rowOf(choosing, "mortise, memory")
	pairs, handOvers := row[8], row[9]
	for what, other := range map[string]string{"another figure": " 1 |" +
		handOvers, "a figure of another table": handOvers + "|" + pairs} {
		changed := strings.Replace(choosing, pairs+"|"+handOvers, other, 1)
		if faults, _ := figureFaults(changed, speed); len(faults) == 0 {
			t.Errorf("the rule does not see %s", what)
		}
	}
}

func rowOf(page, name string) []string {
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) == 11 && strings.TrimSpace(cells[1]) == name {
			return cells
		}
	}
	return make([]string, 11)
}
