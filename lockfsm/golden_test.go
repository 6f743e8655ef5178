package lockfsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestGoldenLogs replays the command logs of testdata/golden, one for each version of the rules.
// This build must have the same results and the same snapshots, and the fingerprints of these logs.
//
// The log of a released version is never rewritten. Before the release, run this test with -rewrite
// after a change of the rules, without and with the tag nextrules, and then the others again.
func TestGoldenLogs(t *testing.T) {
	if rewriting() {
		rewriteGolden(t)
		return // the constant in this process is the old one
	}
	for i, print := range Fingerprints() {
		file := goldenFile(uint32(i + 1))
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := goldenPrint(b); got != print {
				t.Errorf("the log has the fingerprint %016x, and the constant is %016x. If no release has these rules: "+
					"go test -run GoldenLogs -rewrite", got, print)
			}
			readGolden(t, b)
		})
	}
}

// The lines of a golden log:
//
//	start <snapshot>              hexadecimal, as is everything in angle brackets
//	entry <index> <term> <batch>  index and term decimal
//	fill <number of commands that put data>
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
		case "fill":
			g := &golden{t: t, m: m, index: 1, results: results, seen: map[outcome]int{}}
			g.fill(binary.BigEndian.Uint32(last))
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

func writeGolden(t *testing.T, seed uint64) []byte {
	g := &golden{t: t, results: sha256.New(), seen: map[outcome]int{}}
	r := rand.New(rand.NewPCG(seed, 1))
	wide := staysCharter(r)
	wide.Limits = DefaultLimits()
	g.start(wide)
	g.entry(5, Command{Kind: Born}, Command{Kind: Reserve, Count: 1}, // no Stamp has come
		Command{Kind: Put, Key: "d", Value: []byte("v"), Revision: 1, Nonce: Nonce{1}})
	g.line("fill %x", binary.BigEndian.AppendUint32(nil, MaxData+1))
	g.fill(MaxData + 1)
	g.line("results %x", g.results.Sum(nil))
	g.random(r, staysCharter(r), 500, func(w *workload) { w.stays, w.guests = true, true })
	narrow := charterFor(r)
	narrow.Grace, narrow.Limits.EntriesPerSession = time.Second, 2
	g.random(r, narrow, 200, func(*workload) {})
	g.later(r)
	t.Logf("%d different outcomes, %d bytes", len(g.seen), g.log.Len())
	return g.log.Bytes()
}

// golden writes a golden log.
type golden struct {
	t       *testing.T
	log     bytes.Buffer
	results hash.Hash
	seen    map[outcome]int
	m       *Machine
	index   uint64
}

func (g *golden) line(format string, args ...any) { fmt.Fprintf(&g.log, format+"\n", args...) }

func (g *golden) start(charter Charter) {
	var err error
	if g.m, err = New(charter); err != nil {
		g.t.Fatal(err)
	}
	g.index = 0
	g.line("start %x", g.m.Snapshot(nil))
}

func (g *golden) entry(term uint64, commands ...Command) {
	var batch []byte
	for _, c := range commands {
		batch = c.Append(batch)
	}
	g.batch(term, batch)
}

func (g *golden) batch(term uint64, batch []byte) {
	g.index++
	g.line("entry %d %d %x", g.index, term, batch)
	g.m.ApplyEntry(g.index, term, batch, g.result)
}

func (g *golden) result(r *Result) {
	g.results.Write(resultLine(*r))
	g.seen[outcome{r.Kind, r.Code}]++
}

// fill applies n commands that put data under n keys. A log with these commands would be too large.
func (g *golden) fill(n uint32) {
	for i := range n {
		c := Command{Kind: Put, Key: fmt.Sprintf("d%05d", i), Value: []byte("v"), Nonce: Nonce{1}}
		command, _, _ := Next(c.Append(nil))
		r := g.m.Apply(g.index, 5, command)
		g.result(&r)
	}
}

func (g *golden) end() {
	snapshot := g.m.Snapshot(nil)
	g.line("results %x", g.results.Sum(nil))
	g.line("snapshot %x %x", snapshot, sha256.Sum256(snapshot))
}

// random appends a part with random commands.
func (g *golden) random(r *rand.Rand, charter Charter, entries int, change func(*workload)) {
	g.start(charter)
	w := &workload{rand: r, t: newTwin(charter, RulesVersion), term: 5}
	change(w)
	for range entries {
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
		if len(batch) > 0 {
			g.batch(w.term, batch)
		}
	}
	g.end()
}

// The fingerprint is at a fixed place of a snapshot, and the checksum is at its end.
const printAt = len(snapshotMagic) + 1

// goldenPrint returns the fingerprint of the rules with this golden log, whose snapshots may have
// any fingerprint.
func goldenPrint(log []byte) uint64 {
	h := sha256.New()
	for line := range bytes.Lines(log) {
		words := bytes.Fields(line)
		if kind := string(words[0]); kind == "start" || kind == "snapshot" {
			words[1] = words[1][2*(printAt+8) : len(words[1])-2*checksumBytes]
			words = words[:2]
		}
		fmt.Fprintf(h, "%s\n", bytes.Join(words, []byte(" ")))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// stamped returns the golden log with a fingerprint in its snapshots under the newest version.
func stamped(t *testing.T, log []byte, print uint64) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(log) {
		words := strings.Fields(string(line))
		if words[0] == "start" || words[0] == "snapshot" {
			b, err := hex.DecodeString(words[1])
			if err != nil {
				t.Fatal(err)
			}
			r := reader{b: b[printAt+8:]}
			if r.charter().Rules != RulesVersion {
				out.Write(line)
				continue
			}
			binary.LittleEndian.PutUint64(b[printAt:], print)
			b = binary.LittleEndian.AppendUint32(b[:len(b)-checksumBytes], checksum(b[:len(b)-checksumBytes]))
			words[1] = hex.EncodeToString(b)
			if words[0] == "snapshot" {
				words[2] = fmt.Sprintf("%x", sha256.Sum256(b))
			}
		}
		fmt.Fprintln(&out, strings.Join(words, " "))
	}
	return out.Bytes()
}

// rewriteGolden writes the golden log of this build and its fingerprint.
func rewriteGolden(t *testing.T) {
	var log []byte
	for seed := uint64(1); log == nil; seed++ { // the random parts of many seeds lack something
		if b := writeGolden(t, seed); len(missing(t, b)) == 0 {
			log = b
		} else if seed == 100 {
			t.Fatalf("none of %d seeds has everything; this one lacks %q: extend writeGolden", seed, missing(t, b))
		}
	}
	print := goldenPrint(log)
	write(t, goldenFile(RulesVersion), stamped(t, log, print))
	file := "fingerprint.go"
	if RulesVersion > 1 {
		file = "rules_nextrules.go"
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(fmt.Sprintf(`const fingerprint%d uint64 = \w+`, RulesVersion))
	if len(constant.FindAll(source, -1)) != 1 {
		t.Fatalf("%s does not declare the fingerprint", file)
	}
	write(t, file, constant.ReplaceAll(source,
		fmt.Appendf(nil, "const fingerprint%d uint64 = 0x%016x", RulesVersion, print)))
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// goldenFile returns the golden log of a version. That of the simulated next version has another
// name, because no release contains it.
func goldenFile(version uint32) string {
	if version >= marksVersion {
		return fmt.Sprintf("testdata/golden/next%d.log", version)
	}
	return fmt.Sprintf("testdata/golden/rules%d.log", version)
}
