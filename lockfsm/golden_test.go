package lockfsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoldenLogs replays the command logs of earlier builds in testdata/golden. This build must
// have the same results and the same snapshot.
//
// The log of a released version is never rewritten. Before the first release, delete the file and
// run the test with -rewrite.
func TestGoldenLogs(t *testing.T) {
	current := fmt.Sprintf("testdata/golden/rules%d.log", RulesVersion)
	if _, err := os.Stat(current); errors.Is(err, fs.ErrNotExist) && rewriting() {
		if err := os.WriteFile(current, writeGolden(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("testdata/golden/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			readGolden(t, b)
		})
	}
}

// The lines of a golden log:
//
//	start <snapshot>              hexadecimal, as is everything in angle brackets
//	entry <index> <term> <batch>  index and term decimal
//	results <SHA-256 of all results, as resultLine writes them>
//	snapshot <snapshot> <SHA-256 of it>

func readGolden(t *testing.T, log []byte) {
	var m *Machine
	results := sha256.New()
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		last, err := hex.DecodeString(words[len(words)-1])
		if err != nil {
			t.Fatal(err)
		}
		switch words[0] {
		case "start":
			if m, err = Restore(last); err != nil {
				t.Fatal(err)
			}
		case "entry":
			var index, term uint64
			if _, err := fmt.Sscan(words[1], &index); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(words[2], &term); err != nil {
				t.Fatal(err)
			}
			m.ApplyEntry(index, term, last, func(r *Result) { results.Write(resultLine(*r)) })
			if err := m.Check(); err != nil {
				t.Fatalf("after entry %d: %v", index, err)
			}
		case "results":
			if got := results.Sum(nil); !bytes.Equal(got, last) {
				t.Errorf("the results have the hash %x, want %x", got, last)
			}
		case "snapshot":
			if got := sha256.Sum256(m.Snapshot(nil)); !bytes.Equal(got[:], last) {
				t.Errorf("the snapshot has the hash %x, want %x\n%s", got, last, m.picture())
			}
			stored, _ := hex.DecodeString(words[1])
			if then, err := Restore(stored); err != nil || !then.picture().equal(m.picture()) {
				t.Errorf("the stored snapshot does not give the same state: %v", err)
			}
		}
	}
}

func resultLine(r Result) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %d %d %d %d %x %d %d %d", r.Kind, r.Code, r.Session, r.Epoch, r.Number, r.Nonce, r.Token,
		r.Watch, int64(r.TTL))
	if h := r.Holder; h != nil {
		fmt.Fprintf(&b, " holder %d %x %d %d %d", h.Session, h.Record, h.Token, h.SinceUnixMS, h.Waiters)
	}
	for _, c := range r.States {
		fmt.Fprintf(&b, " state %d %d %d %d", c.Session, c.Number, c.Token, c.Watch)
		if c.Last != 0 {
			fmt.Fprintf(&b, " stays %d %d", c.Last, c.Asked)
		}
		b.WriteString(included(c.Grant))
	}
	for _, c := range r.Fired {
		fmt.Fprintf(&b, " fired %d %d %d %d", c.Session, c.Number, c.Token, c.Watch)
		if c.Last != 0 {
			fmt.Fprintf(&b, " stays %d %d", c.Last, c.Asked)
		}
		if h := c.Held; h != nil {
			fmt.Fprintf(&b, " held %d %d %d %d", h.Session, h.Token, h.SinceUnixMS, h.Waiters)
		}
	}
	if r.Last != 0 {
		fmt.Fprintf(&b, " last %d", r.Last)
	}
	b.WriteString(included(r.Grant))
	b.WriteByte('\n')
	return b.Bytes()
}

func writeGolden(t *testing.T) []byte {
	r := rand.New(rand.NewPCG(goldenSeed, 1))
	charter := staysCharter(r)
	m, err := New(charter)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	results := sha256.New()
	seen := map[outcome]int{}
	fmt.Fprintf(&log, "start %x\n", m.Snapshot(nil))
	w := &workload{rand: r, t: newTwin(charter, RulesVersion), term: 5, stays: true, guests: true}
	for index := range 600 {
		var batch []byte
		for range 1 + r.IntN(3) {
			c := w.next()
			if c.Kind == Raise && c.Version > RulesVersion {
				continue // a Raise to an unknown version would end the log
			}
			batch = c.Append(batch)
			if c.Rules == 0 {
				c.Rules = 1
			}
			w.t.apply(w.term, c)
		}
		if r.IntN(40) == 0 {
			batch = append(batch, 9, 1, 2)
		}
		if len(batch) == 0 {
			continue
		}
		fmt.Fprintf(&log, "entry %d %d %x\n", index+1, w.term, batch)
		m.ApplyEntry(uint64(index+1), w.term, batch, func(r *Result) {
			results.Write(resultLine(*r))
			seen[outcome{r.Kind, r.Code}]++
		})
	}
	snapshot := m.Snapshot(nil)
	fmt.Fprintf(&log, "results %x\nsnapshot %x %x\n", results.Sum(nil), snapshot, sha256.Sum256(snapshot))
	t.Logf("%d different outcomes, at the end %+v", len(seen), m.Counts())
	return log.Bytes()
}

// goldenSeed gives a log with many different results, and with queues that are not empty at its
// end.
const goldenSeed = 159
