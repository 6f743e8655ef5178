package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// view shows which worker holds the lock: on a terminal in one line that changes in place,
// elsewhere in a new line from time to time.
type view struct {
	out      *os.File
	terminal bool
	began    time.Time
	last     time.Time
	held     map[string]int // the number of turns by worker
	leader   string
}

func newView(out *os.File) *view {
	info, err := out.Stat()
	v := &view{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, began: time.Now(),
		held: map[string]int{}}
	say(out, "three processes, one lock: each in turn locks \"number\" and adds one to it\n")
	return v
}

func (v *view) show(e event, number int) {
	if e.Kind != granted {
		return
	}
	v.held[e.Worker]++
	if e.Leading {
		v.leader = e.Worker
	}
	var workers []string
	for _, name := range names {
		mark := "   "
		if name == e.Worker {
			mark = "[*]"
		}
		leads := ""
		if name == v.leader {
			leads = " (leads)"
		}
		workers = append(workers, fmt.Sprintf("%s %s %d%s", mark, name, v.held[name], leads))
	}
	line := fmt.Sprintf("%5.1fs  %-52s number %-4d token %d", time.Since(v.began).Seconds(),
		strings.Join(workers, "  "), number, e.Token)
	switch {
	case v.terminal:
		say(v.out, "\r\x1b[K%s", line)
	case time.Since(v.last) >= time.Second:
		v.last = time.Now()
		say(v.out, "%s\n", line)
	}
}

func (v *view) note(format string, args ...any) {
	if v.terminal {
		say(v.out, "\r\x1b[K")
	}
	say(v.out, "%5.1fs  %s\n", time.Since(v.began).Seconds(), fmt.Sprintf(format, args...))
}

// say writes a text for a person. A terminal that is gone does not end the demonstration.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
