package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

var writeWords = flag.Bool("words", false, "add the texts that are seen to "+wordsFile)

// wordsFile contains every text that an operator can see in the scenarios below.
const wordsFile = "testdata/words.txt"

// statesFile contains a table with the facts of each scenario. docs/OPERATION.md links to it.
const statesFile = "testdata/states.md"

// scenario is a state that a cluster can get into. The flag normal means that no warning may be
// logged, because operators cause this state every day.
type scenario struct {
	name   string
	normal bool
	play   func(t *testing.T, w *words)
}

func scenarios() []scenario {
	return []scenario{
		{"restart in memory", true, restarts(false)},
		{"restart with Dir", true, restarts(true)},
		{"restart of all with Dir", true, func(t *testing.T, w *words) {
			w.found(3, true)
			for i := range 3 {
				w.close(i)
			}
			for i := range 3 {
				w.start(i, w.setup(i, 3))
			}
			w.ready()
			w.settle()
		}},
		{"rolling deploy in memory", true, rolls(false)},
		{"rolling deploy with Dir", true, rolls(true)},
		{"scaling from three to five and back", true, func(t *testing.T, w *words) {
			w.founders = true // with Replicas, five instances would be a surplus
			w.found(3, false)
			for i := 3; i < 5; i++ {
				w.start(i, w.setup(i, 3))
				w.ready()
				w.settle()
			}
			for i := 4; i >= 3; i-- {
				w.depart(i, true)
				w.settle()
			}
		}},
		{"a voter leaves and another takes its place", true, func(t *testing.T, w *words) {
			w.found(5, false)
			w.depart(w.votingFollower(), true)
			w.settle()
			w.depart(w.leader(), true)
			w.settle()
		}},
		{"the leader is killed", false, func(t *testing.T, w *words) {
			w.found(3, false)
			old := w.leader()
			w.crash(old)
			time.Sleep(20 * time.Second)
			w.start(old, w.setup(old, 3))
			w.ready()
			w.settle()
		}},
		{"the leader is killed, with Dir", false, func(t *testing.T, w *words) {
			w.found(3, true)
			old := w.leader()
			w.crash(old)
			time.Sleep(20 * time.Second)
			w.start(old, w.setup(old, 3))
			w.ready()
			w.settle()
		}},
		{"all links are cut and heal", false, cutsOfAll(false)},
		{"all links are cut and heal, with Dir", false, cutsOfAll(true)},
		{"one disk fails", false, func(t *testing.T, w *words) {
			w.found(3, true)
			w.disks[w.follower()].broken.Store(true)
			for i := range 3 {
				unlock(t, w.lock(i, "k"))
			}
			time.Sleep(20 * time.Second)
		}},
		{"a second instance has the name of a founder", false, secondName(true)},
		{"a second instance has the name of another", false, secondName(false)},
	}
}

func restarts(durable bool) func(*testing.T, *words) {
	return func(t *testing.T, w *words) {
		w.found(3, durable)
		for _, i := range []int{w.follower(), w.leader()} {
			unlock(t, w.lock(i, "k"))
			w.close(i)
			time.Sleep(time.Second)
			w.start(i, w.setup(i, 3))
			w.ready()
			w.settle()
		}
	}
}

func rolls(durable bool) func(*testing.T, *words) {
	return func(t *testing.T, w *words) {
		w.found(3, durable)
		for i := range 3 {
			unlock(t, w.lock(i, "k"))
			w.depart(i, true)
			time.Sleep(500 * time.Millisecond)
			w.start(i, w.setup(i, 3))
			w.ready()
			w.settle()
		}
	}
}

func cutsOfAll(durable bool) func(*testing.T, *words) {
	return func(t *testing.T, w *words) {
		w.found(3, durable)
		mine := w.lock(w.follower(), "k")
		for i := range 3 {
			w.isolate(i)
		}
		time.Sleep(30 * time.Second)
		for i := range 3 {
			w.rejoin(i)
		}
		w.ready()
		w.settle()
		_ = mine.Unlock(t.Context()) // another test checks whether the lock is lost
	}
}

// secondName starts a fourth instance, first with the name of a voter that does not lead, and then
// with the name of the leader.
func secondName(founders bool) func(*testing.T, *words) {
	return func(t *testing.T, w *words) {
		w.founders = founders
		w.found(3, false)
		for _, i := range []int{w.follower(), w.leader()} {
			c := w.setup(3, 3)
			c.Name = w.config(i, 3).Name
			w.start(3, c)
			time.Sleep(time.Minute)
			if s := w.nodes[3].Status(); s.Votes {
				t.Errorf("a second instance called %s votes:\n%v", c.Name, s)
			}
			for _, n := range w.nodes {
				if n == w.nodes[3] || n == w.nodes[i] {
					if s := n.Status(); !strings.Contains(s.String(), "is the name of another instance too") {
						t.Errorf("%s does not say that its name is used twice:\n%v", n.Address, s)
					}
				}
			}
			w.close(3)
			time.Sleep(20 * time.Second)
		}
	}
}

// words is a fleet that records all texts that its nodes show to operators.
type words struct {
	*fleet
	durable, founders bool
	root              string
	last              *disk
	disks             map[int]*disk
	starts            map[string]int
	gone              map[int]*atomic.Bool

	watchers sync.WaitGroup

	mu    sync.Mutex
	texts map[string]bool // a key consists of a kind and a masked text
}

func (w *words) found(n int, durable bool) {
	w.durable = durable
	for i := range n {
		w.start(i, w.setup(i, n))
		w.disks[i] = w.last
	}
	w.ready()
	w.settle()
}

func (w *words) setup(i, n int) mortise.Config {
	c := w.config(i, n)
	if w.founders {
		c.Replicas = 0
		for j := range n {
			c.Founders = append(c.Founders, w.config(j, n).Name)
		}
	}
	if w.durable {
		inDir(w.root)(&c)
	}
	w.starts[c.Name]++
	again := w.durable && w.starts[c.Name] > 1
	if w.durable {
		withSecret(secretA)(&c)
	}
	gone := new(atomic.Bool)
	w.gone[i] = gone
	c.Logger = slog.New(slog.NewTextHandler(lineWriter(func(line string) {
		if !gone.Load() {
			w.line(line, again)
		}
	}), &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	return c
}

type lineWriter func(string)

func (w lineWriter) Write(b []byte) (int, error) {
	w(string(bytes.TrimSpace(b)))
	return len(b), nil
}

// crash stops node i as if its process had ended. Later log lines of the node are ignored.
func (w *words) crash(i int) {
	w.gone[i].Store(true)
	w.fleet.crash(i)
}

// line records a log line. The argument again means that the instance has started before with the
// same directory. A line that is certainly false gets the kind FALSE.
func (w *words) line(line string, again bool) {
	if again && strings.Contains(line, "the group is founded") || strings.HasPrefix(line, "level=WARN") &&
		strings.Contains(line, "locks=0") {
		w.add("FALSE", line)
	}
	level, text, _ := strings.Cut(strings.TrimPrefix(line, "level="), " ")
	w.add(level, strings.TrimPrefix(text, "msg="))
}

func (w *words) add(kind, text string) {
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts[kind+" "+masked(text)] = true
}

func (w *words) watch(n *node) {
	for ; n.Err() == nil; time.Sleep(50 * time.Millisecond) {
		s := n.Status()
		w.add("Status.Waiting", s.Waiting)
		if h := s.Health; h != nil {
			w.add("Health.Change", h.Change)
			w.add("Health.Advice", h.Advice)
			for _, d := range h.Differs {
				w.add("Health.Differs", d)
			}
		}
	}
}

var masks = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\\?"?\bnode-\d+\b\\?"?`), "NAME"},
	{regexp.MustCompile(`\b10\.0\.0\.\d+(:\d+)?`), "ADDR"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}\b`), "ID"},
	{regexp.MustCompile(`/tmp/[^ "]*`), "PATH"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(h|ms|µs|ns|m|s))+\b`), "TIME"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(`NAME at ADDR( \([^)]*\))?(, NAME at ADDR( \([^)]*\))?)+`), "NAME at ADDR ..."},
	{regexp.MustCompile(`NAME \(silent for TIME\)(, NAME \(silent for TIME\))+`), "NAME (silent for TIME) ..."},
	{regexp.MustCompile(`NAME \(ADDR\)(, NAME \(ADDR\))+`), "NAME (ADDR) ..."},
	{regexp.MustCompile(`(NAME \(ADDR\) \([^)]*\))(, NAME \(ADDR\) \([^)]*\))+`), "$1 ..."},
	{regexp.MustCompile(`\bNAME(, (or of )?NAME)+`), "NAME ..."},
	{regexp.MustCompile(`\bADDR(, ADDR)+`), "ADDR ..."},
}

var marks = regexp.MustCompile(`[;:,()]+`)

// clauses returns the clauses of a text, each behind the kind of the text.
func clauses(text string) (all []string) {
	kind, text, _ := strings.Cut(text, " ")
	for _, c := range marks.Split(text, -1) {
		if c = strings.TrimSpace(c); c != "" {
			all = append(all, kind+" "+c)
		}
	}
	return all
}

// masked replaces the parts of a text that differ between runs.
func masked(text string) string {
	for _, m := range masks {
		text = m.find.ReplaceAllString(text, m.with)
	}
	return text
}

// TestWords plays all scenarios and checks that wordsFile contains each clause of each text. After
// a change, run the test several times with the flag -words, and review the texts that it adds to
// the file.
func TestWords(t *testing.T) {
	slow.UnderRace(t)
	// read contains the clauses of the known texts of all scenarios. A text of known clauses is
	// accepted in every scenario: in which order things happen decides which of them it has.
	known, read := readWords(t), map[string]bool{}
	for _, texts := range known {
		for text := range texts {
			for _, c := range clauses(text) {
				read[c] = true
			}
		}
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			w := &words{texts: map[string]bool{}, disks: map[int]*disk{}, starts: map[string]int{},
				gone: map[int]*atomic.Bool{}, root: t.TempDir()}
			bubble(t, func(t *testing.T) {
				t.Cleanup(w.watchers.Wait) // runs after the Cleanup of the fleet, which closes the nodes
				w.fleet = newFleet(t)
				w.begun = func(n *node) { w.watchers.Go(func() { w.watch(n) }) }
				w.alter = func(e *outside.World) {
					w.last = &disk{FS: storage.OSFS()}
					e.Files = w.last
				}
				s.play(t, w)
			})
			if known[s.name] == nil {
				known[s.name] = map[string]bool{}
			}
			for _, text := range slices.Sorted(maps.Keys(w.texts)) {
				if s.normal && (strings.HasPrefix(text, "WARN") || strings.HasPrefix(text, "ERROR")) {
					t.Errorf("in normal operation: %s", text)
				}
				if strings.HasPrefix(text, "FALSE") {
					t.Errorf("not true where it is said: %s", text)
				}
				if s.normal && strings.Contains(text, "does not reach") {
					t.Errorf("nothing is cut off in normal operation: %s", text)
				}
				if strings.Contains(text, "raft: ") {
					t.Errorf("a line of raft itself, with IDs that mean nothing to an operator: %s", text)
				}
				for _, c := range clauses(text) {
					if !read[c] && !*writeWords && !underRace { // the race detector changes the timing
						t.Errorf("%s does not have %q of: %s", wordsFile, c, text)
					}
				}
				known[s.name][text] = true
			}
		})
	}
	if *writeWords {
		saveWords(t, known)
	}
}

func TestStatesOfThePage(t *testing.T) {
	table, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	known, quoted := readWords(t), regexp.MustCompile("`([^`]+)`")
	var rows []string
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, " | ")
		name := strings.TrimPrefix(cells[0], "| ")
		if known[name] == nil || len(cells) != 5 {
			continue
		}
		rows = append(rows, name)
		for i, cell := range cells[2:4] {
			for _, q := range quoted.FindAllStringSubmatch(cell, -1) {
				if !said(known[name], q[1], i == 1) {
					t.Errorf("in %q %q is not said", name, q[1])
				}
			}
		}
	}
	var want []string
	for _, s := range scenarios() {
		want = append(want, s.name)
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the page has the states\n%q\nand these are played:\n%q", rows, want)
	}
}

// said reports whether one of the texts contains part. If log is set, it searches only log lines,
// and otherwise only the other texts.
func said(texts map[string]bool, part string, log bool) bool {
	for text := range texts {
		kind, _, _ := strings.Cut(text, " ")
		if strings.Contains(text, part) && log == (kind == strings.ToUpper(kind)) {
			return true
		}
	}
	return false
}

func readWords(t *testing.T) map[string]map[string]bool {
	t.Helper()
	known := map[string]map[string]bool{}
	b, err := os.ReadFile(wordsFile)
	if err != nil && !*writeWords {
		t.Fatal(err)
	}
	name := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if after, ok := strings.CutPrefix(line, "## "); ok {
			name = after
			known[name] = map[string]bool{}
		} else if name != "" && line != "" {
			known[name][line] = true
		}
	}
	return known
}

func saveWords(t *testing.T, known map[string]map[string]bool) {
	t.Helper()
	var b strings.Builder
	b.WriteString("What an operator can see: log lines from INFO on, Status.Waiting, and the sentences of Health, " +
		"by scenario.\ngo test -run TestWords ./internal/lab/e2e wants every text here; with -words it adds those that " +
		"are new. Figures and names are masked.\n")
	for _, s := range scenarios() {
		fmt.Fprintf(&b, "\n## %s\n", s.name)
		for _, text := range slices.Sorted(maps.Keys(known[s.name])) {
			b.WriteString(text + "\n")
		}
	}
	if err := os.WriteFile(wordsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
