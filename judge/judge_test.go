package judge_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
	"github.com/mortise-lock/mortise/judge"
)

func all(seed uint64, calls int) historytest.Options {
	return historytest.Options{Seed: seed, Calls: calls, Callers: 9, Keys: 4, Try: 0.2, Cancel: 0.2, Crash: 0.05,
		Lose: 0.05}
}

// kinds returns the options for histories with all kinds of locks.
func kinds(seed uint64, calls int) historytest.Options {
	o := all(seed, calls)
	o.Share, o.Permits, o.Several = 0.3, 0.3, 0.3
	return o
}

// stays returns the options for histories of mutexes with stays.
func downgrades(seed uint64, calls int) historytest.Options {
	o := kinds(seed, calls)
	o.Share, o.Permits, o.Downgrade = 0.5, 0.1, 0.5
	return o
}

func stays(seed uint64, calls int) historytest.Options {
	o := all(seed, calls)
	o.Sticky = 0.7
	return o
}

// mixed returns the options for histories with all kinds of locks and with stays.
func mixed(seed uint64, calls int) historytest.Options {
	o := kinds(seed, calls)
	o.Sticky = 0.5
	return o
}

// strict returns the options for a complete history with one clock.
func strict() judge.Options {
	return judge.Options{Options: history.Options{Settled: true, Settle: time.Millisecond}}
}

func TestRightHistoriesPassBoth(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 7
	}
	for seed := range seeds {
		for _, options := range []func(uint64, int) historytest.Options{all, kinds, downgrades, stays, mixed} {
			if err := judge.Judge(historytest.Make(options(seed, 1000)), strict()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	long := historytest.Options{Seed: 1, Calls: 20000, Callers: 40, Keys: 20, Try: 0.1, Cancel: 0.1, Crash: 0.01,
		Lose: 0.01}
	if err := judge.Judge(historytest.Make(long), strict()); err != nil {
		t.Fatal(err)
	}
	long.Share, long.Permits, long.Several, long.Sticky = 0.3, 0.3, 0.05, 0.3
	if err := judge.Judge(historytest.Make(long), strict()); err != nil {
		t.Fatal(err)
	}
}

// Porcupine does not notice if the state keeps a lock or a stay, if a caller is not told, or if two
// voters do not agree. It cannot see a wrong order of the requests. A token that no voter granted
// or reserved is only a violation if its lock does not fit between the others.
func TestEachViolationIsCaught(t *testing.T) {
	porcupineCatches := map[string]bool{
		"double grant": true, "duplicate token": true, "token going back": true, "stale held": true,
		"held before it was":       true,
		"belief outlives the lock": true, "granted before it was asked for": true, "a writer beside readers": true,
		"more permits than there are":                   true,
		"one of several is held by another":             true,
		"a reader beside a writer that has not lowered": true, "a downgrade that no caller asked for": true,
		"a writer beside a lowered one": true,
		"a token is reserved twice":     true, "a pass token is given twice": true,
		"a caller is given the token of a stay": true, "a pass of another instance": true, "passes overlap": true,
		"the tokens of passes go back": true, "a pass before its stay": true,
		"a pass after the end of its stay": true, "a pass outlives its stay": true,
		"held by a pass that was over": true, "held by a pass before it was": true,
	}
	for _, p := range historytest.Plants() {
		t.Run(p.Name, func(t *testing.T) {
			planted, witness, second := 0, 0, 0
			for seed := uint64(0); seed < 300 && planted < 10; seed++ {
				options := all(seed, 200)
				switch {
				case p.Kinds:
					options = kinds(seed, 200)
				case p.Downgrades:
					options = downgrades(seed, 200)
				case p.Stays:
					options = stays(seed, 200)
				}
				if seed%2 == 0 {
					options.Crash = 0
				}
				events := p.Break(historytest.Make(options))
				if events == nil {
					continue
				}
				planted++
				if judge.Witness(events, strict()) != nil {
					witness++
				}
				if err := judge.Porcupine(events, strict()); errors.Is(err, judge.ErrUnknown) {
					t.Fatalf("seed %d: %v", seed, err)
				} else if err != nil {
					second++
					if seed < 2 {
						t.Log(err)
					}
				}
			}
			t.Logf("%d histories: the witness judge catches %d, porcupine %d", planted, witness, second)
			if planted < 5 || witness != planted {
				t.Errorf("the witness judge catches %d of %d", witness, planted)
			}
			if porcupineCatches[p.Name] && second != planted {
				t.Errorf("porcupine catches %d of %d", second, planted)
			}
		})
	}
}

func TestFilesAndPicture(t *testing.T) {
	dir := t.TempDir()
	path, picture := filepath.Join(dir, "history"), filepath.Join(dir, "picture.html")
	var broken []history.Event
	for seed := uint64(0); broken == nil; seed++ {
		broken = historytest.Plants()[0].Break(historytest.Make(all(seed, 200)))
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(history.Write(f, broken), f.Close()); err != nil {
		t.Fatal(err)
	}
	events, err := judge.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	o := strict()
	o.HTML = picture
	var v *history.Violation
	if err := judge.Judge(events, o); !errors.As(err, &v) {
		t.Fatalf("Judge returned %v", err)
	}
	if st, err := os.Stat(picture); err != nil || st.Size() < 1000 {
		t.Fatalf("the picture: %v", err)
	}
}

// Without the calls of one node, the verdict must be ErrUnknown. Files must also refuse an empty
// file, and a file that is given twice.
func TestMissingFiles(t *testing.T) {
	all, err := judge.Files("testdata/storm.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"node-0", "node-1", "node-2"} {
		var others []history.Event
		for _, e := range all {
			if e.Node != node {
				others = append(others, e)
			}
		}
		err := judge.Judge(others, judge.Options{})
		if first := judge.Witness(others, judge.Options{}); !errors.Is(err, judge.ErrUnknown) || err != first &&
			err.Error() != first.Error() {
			t.Errorf("without %s: %v, and the first judge: %v", node, err, first)
		}
	}
	if _, err := judge.Files("testdata/storm.jsonl", "testdata/storm.jsonl"); err == nil {
		t.Error("the same file is accepted twice")
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := judge.Files(empty); !errors.Is(err, judge.ErrUnknown) {
		t.Errorf("an empty file: %v", err)
	}
}

// Files reads all files in their order. An error names the file.
func TestFilesReadsAll(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, text := range []string{"one", "two"} {
		paths = append(paths, filepath.Join(dir, text))
		f, err := os.Create(paths[i])
		if err == nil {
			err = errors.Join(history.Write(f, historytest.Make(all(uint64(i), 3+i))), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := judge.Files(paths[0])
	second, err2 := judge.Files(paths[1])
	both, err3 := judge.Files(paths...)
	if err := errors.Join(err, err2, err3); err != nil || len(both) != len(first)+len(second) ||
		len(first) == len(second) {
		t.Fatalf("%d and %d events, together %d: %v", len(first), len(second), len(both), err)
	}
	for i, e := range slices.Concat(first, second) {
		if both[i].Kind != e.Kind || both[i].At != e.At || both[i].Node != e.Node {
			t.Fatalf("event %d: %+v, want %+v", i, both[i], e)
		}
	}
	none, wrong := filepath.Join(dir, "none"), filepath.Join(dir, "wrong")
	if err := os.WriteFile(wrong, []byte("no history"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{none, wrong} {
		if events, err := judge.Files(paths[0], path); err == nil || events != nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d events, %v", len(events), err)
		}
	}
}

// Without a working directory a relative path of the picture has no meaning.
func TestAPictureWithoutADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Skip(err) // this system keeps a directory in which a process works
	}
	if err := judge.Porcupine(nil, judge.Options{HTML: "picture"}); err == nil ||
		!strings.Contains(err.Error(), "the picture") {
		t.Errorf("%v", err)
	}
}

// The locks that a first group held at its end do not count as held in the second group. Two groups
// at the same time are a violation.
func TestTwoGroups(t *testing.T) {
	first := historytest.Make(historytest.Options{Seed: 7, Calls: 300, Callers: 5, Keys: 3, Crash: 0.1})
	second := historytest.Make(historytest.Options{Seed: 8, Calls: 300, Callers: 5, Keys: 3})
	if err := judge.Judge(historytest.Follow(first, second, 1), strict()); err != nil {
		t.Errorf("one after the other: %v", err)
	}
	if judge.Porcupine(historytest.Follow(first, second, -int64(400*time.Millisecond)), strict()) == nil {
		t.Error("two groups at once pass")
	}
}

// The holder of a lock that was ended by force may believe for longer that it holds the lock.
func TestForceIsNoViolation(t *testing.T) {
	at := slices.IndexFunc(historytest.Plants(),
		func(p historytest.Plant) bool { return p.Name == "belief outlives the lock" })
	events := historytest.Plants()[at].Break(historytest.Make(all(1, 200)))
	if judge.Porcupine(events, strict()) == nil {
		t.Error("a belief that outlives its lock passes")
	}
	for i := range events {
		if e := &events[i]; e.Kind == history.End && e.How == history.ByExpire {
			e.How = history.ByForce
		}
	}
	if err := judge.Judge(events, strict()); err != nil {
		t.Error(err)
	}
}

// The history has one key, and most calls were canceled while their grant was sent. Without the
// field operation.after, the search takes minutes.
func TestManyUnknownGrants(t *testing.T) {
	events := historytest.Make(historytest.Options{Seed: 1, Calls: 5000, Callers: 3, Keys: 1, Cancel: 0.8,
		Crash: 0.05, Lose: 0.05})
	if err := judge.Judge(events, strict()); err != nil {
		t.Fatal(err)
	}
}

func TestTimeoutIsNoPass(t *testing.T) {
	o := strict()
	o.Timeout = 1 // nanosecond
	if err := judge.Porcupine(historytest.Make(all(1, 3000)), o); !errors.Is(err, judge.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
}

func BenchmarkPorcupine(b *testing.B) {
	const calls = 20_000
	events := historytest.Make(historytest.Options{Seed: 1, Calls: calls, Callers: 64, Keys: 200})
	b.ResetTimer()
	for b.Loop() {
		if err := judge.Porcupine(events, judge.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(calls)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// The history is of three whole nodes with many canceled calls and a crash of the leader.
// TestRecordedHistoryIsRight of the root package recorded it (go test -artifacts), with 7 rounds
// for each caller. Its files are concatenated.
func TestRecordingOfRealNodes(t *testing.T) {
	events, err := judge.Files("testdata/storm.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := judge.Judge(events, strict()); err != nil {
		t.Fatal(err)
	}
	planted := 0
	for _, p := range historytest.Plants() {
		broken := p.Break(events)
		if broken == nil {
			continue
		}
		planted++
		if err := judge.Judge(broken, strict()); err == nil || errors.Is(err, judge.ErrUnknown) {
			t.Errorf("%s: Judge returned %v", p.Name, err)
		}
	}
	if planted < 8 {
		t.Errorf("the recording has a place for only %d violations", planted)
	}
}
