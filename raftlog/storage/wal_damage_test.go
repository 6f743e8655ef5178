package storage

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
)

// damaged returns the files of a log with several segments, a snapshot and spares. If killed is
// set, there are no marks after the last frame.
func damaged(t *testing.T, seed uint64, killed bool) (files map[string][]byte, want raftlog.State) {
	t.Helper()
	h := newHistory(seed, nil, raftlog.State{})
	if err := h.run(60); err != nil {
		t.Fatal(err)
	}
	if !killed {
		if err := h.w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return h.fs.live(), h.promises[len(h.promises)-1].state
}

// harmless opens damaged files. They must be refused, or contain exactly the state `want`.
func harmless(files map[string][]byte, want raftlog.State) error {
	_, got, err := openCrash(newCrashFS(files), 5)
	if err != nil {
		if !errors.Is(err, raftlog.ErrCorrupt) {
			return fmt.Errorf("refused with another kind: %w", err)
		}
		return nil
	}
	if err := sameState(got, want); err != nil {
		return fmt.Errorf("misread: %w", err)
	}
	return nil
}

// damageRounds returns how many damages a test tries: n times MORTISE_DAMAGE if that is set.
// Otherwise it is n, or fewer under the race detector.
func damageRounds(n int) int {
	if m, err := strconv.Atoi(os.Getenv("MORTISE_DAMAGE")); err == nil {
		return n * m
	}
	return max(n/coarse(), 1)
}

func TestBitFlips(t *testing.T) {
	slow.UnderRace(t)
	r := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for round := range damageRounds(6) {
		files, want := damaged(t, uint64(round/2), round%2 == 0)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			data := files[name]
			for range 250 / coarse() {
				bit := r.IntN(len(data) * 8)
				data[bit/8] ^= 1 << (bit % 8)
				if err := harmless(files, want); err != nil {
					t.Fatalf("round %d, bit %d of byte %d of %s: %v", round, bit%8, bit/8, name, err)
				}
				if _, _, err := openCrash(newCrashFS(files), 5); err != nil {
					refused++
				}
				data[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
	if refused == 0 {
		t.Error("no flip was refused: the test sees nothing")
	}
}

func TestBitFlipsInHeaders(t *testing.T) {
	slow.UnderRace(t)
	for round := range damageRounds(1) {
		files, want := damaged(t, uint64(round), round%2 == 0)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if _, _, ok := parseName(segmentPrefix, name); !ok {
				continue
			}
			data := files[name]
			for bit := round % 5; bit < 160*8; bit += 5 { // each byte of the header's fields
				data[bit/8] ^= 1 << (bit % 8)
				if _, _, err := openCrash(newCrashFS(files), 5); !errors.Is(err, raftlog.ErrCorrupt) {
					t.Fatalf("round %d, bit %d of byte %d of %s: %v, want it refused", round, bit%8, bit/8, name, err)
				}
				data[bit/8] ^= 1 << (bit % 8)
			}
		}
		if err := harmless(files, want); err != nil {
			t.Fatal(err)
		}
	}
}

// A killed process has written no marks after the last frame, so the flip itself must be detected.
func TestBitFlipsInLastFrame(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(4) {
		h := newHistory(seed, nil, raftlog.State{})
		if err := h.run(20); err != nil {
			t.Fatal(err)
		}
		last := h.promises[len(h.promises)-1].state
		index := max(last.Snapshot.GetMetadata().GetIndex(), 0)
		if n := len(last.Entries); n > 0 {
			index = last.Entries[n-1].GetIndex()
		}
		from := h.w.at
		if err := h.save(raftlog.Batch{Entries: testEntries(index+1, 99, 1, 50),
			HardState: testHard(99, 0, 0)}); err != nil {
			t.Fatal(err)
		}
		if from > h.w.at {
			from = headerBytes
		}
		files, want := h.fs.live(), h.promises[len(h.promises)-1].state
		data := files[h.w.segmentName(h.w.header.sequence)]
		for bit := from * 8; bit < h.w.at*8; bit++ {
			data[bit/8] ^= 1 << (bit % 8)
			if _, _, err := openCrash(newCrashFS(files), 5); !errors.Is(err, raftlog.ErrCorrupt) {
				t.Fatalf("seed %d: bit %d of byte %d of the last frame: %v, want it refused", seed, bit%8, bit/8-from,
					err)
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
		if err := harmless(files, want); err != nil {
			t.Fatal(err)
		}
	}
}

// The test overwrites bytes of a closed log. The marks after the last frame must show that those
// bytes were acknowledged.
func TestGarbage(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for round := range damageRounds(4) {
		files, want := damaged(t, uint64(100+round), false)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			for range 150 {
				whole := files[name]
				data := slices.Clone(whole)
				at := r.IntN(len(data))
				for i := range data[at:min(len(data), at+1+r.IntN(600))] {
					data[at+i] = byte(r.Uint32()) & byte(-(round & 1)) // random bytes or zeros
				}
				files[name] = data
				if err := harmless(files, want); err != nil {
					t.Fatalf("round %d, from byte %d of %s: %v", round, at, name, err)
				}
				files[name] = whole
			}
		}
	}
}

func TestTruncatedAndMissing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for round := range damageRounds(6) {
		files, want := damaged(t, uint64(200+round), round%2 == 0)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			whole := files[name]
			for _, size := range []int{0, 1, headerBytes, len(whole) - 1, r.IntN(len(whole)), r.IntN(len(whole))} {
				files[name] = whole[:min(size, len(whole))]
				if err := harmless(files, want); err != nil {
					t.Errorf("round %d, %s cut to %d of %d bytes: %v", round, name, size, len(whole), err)
				}
			}
			delete(files, name)
			// Only the Dir can detect that all segments are missing (TestMissingLog).
			if l, _ := list(newCrashFS(files), ""); len(l.segments) > 0 {
				if err := harmless(files, want); err != nil {
					t.Errorf("round %d, without %s: %v", round, name, err)
				}
			}
			files[name] = whole
		}
	}
}

// The test replaces the newest segment by an older version of it. The log must be refused if data
// was lost.
func TestOlderSegments(t *testing.T) {
	caught := 0
	for seed := range uint64(20) {
		h := newHistory(seed, nil, raftlog.State{})
		if err := h.run(30); err != nil {
			t.Fatal(err)
		}
		before := h.fs.live()
		for range 30 {
			if err := h.save(h.batch()); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.w.Close(); err != nil {
			t.Fatal(err)
		}
		current := h.w.segmentName(h.w.header.sequence)
		for name, old := range before {
			files := h.fs.live()
			if now, ok := files[name]; !ok || name == current || slices.Equal(now, old) {
				continue
			}
			files[name] = old
			if err := harmless(files, h.promises[len(h.promises)-1].state); err != nil {
				t.Errorf("seed %d, %s put back: %v", seed, name, err)
			}
			caught++
		}
	}
	if caught == 0 {
		t.Error("no file was put back: the test sees nothing")
	}
}

func TestForeignVersion(t *testing.T) {
	files, _ := damaged(t, 1, false)
	for name, data := range files {
		if _, _, ok := parseName(segmentPrefix, name); ok {
			h, err := decodeHeader(data)
			if err != nil {
				t.Fatal(err)
			}
			b := h.encode()
			b[8] = formatVersion + 1
			putChecksum(b)
			copy(data, b)
		}
	}
	_, _, err := openCrash(newCrashFS(files), 5)
	if !errors.Is(err, raftlog.ErrCorrupt) {
		t.Fatalf("%v, want ErrCorrupt", err)
	}
	t.Log(err)
}

func putChecksum(b []byte) {
	sum := checksum(b[:len(b)-4])
	for i := range 4 {
		b[len(b)-4+i] = byte(sum >> (8 * i))
	}
}

// lastSegment returns the files of a log whose last segment has no frames, and the name and the
// header of that segment. The log can be opened.
func lastSegment(t *testing.T) (files map[string][]byte, last string, h header) {
	t.Helper()
	for seed := range uint64(100) {
		files, _ = damaged(t, seed, false)
		names := slices.DeleteFunc(slices.Collect(maps.Keys(files)),
			func(name string) bool { return !strings.HasPrefix(name, segmentPrefix) })
		if len(names) < 2 {
			continue
		}
		last = slices.Max(names)
		h, err := decodeHeader(files[last])
		if err != nil {
			t.Fatal(err)
		}
		files[last] = extend(h.encode(), int64(h.size))
		if _, _, err := openCrash(newCrashFS(files), 5); err == nil {
			return files, last, h
		}
	}
	t.Fatal("no log is fit for this test")
	return nil, "", header{}
}

// The last segment gets valid headers that do not follow the previous segment.
func TestSegmentsMustFit(t *testing.T) {
	files, last, h := lastSegment(t)
	for name, change := range map[string]func(*header){
		"as it is":         func(*header) {},
		"frames missing":   func(h *header) { h.first++ },
		"frames twice":     func(h *header) { h.first-- },
		"another sequence": func(h *header) { h.sequence++ },
		"another replica":  func(h *header) { h.id.ID++ },
		"another group":    func(h *header) { h.id.Group++ },
		"another end":      func(h *header) { h.begins.lastIndex++ },
		"another term":     func(h *header) { h.begins.hard = testHard(h.begins.hard.GetTerm()+1, 0, 0) },
		"no snapshot":      func(h *header) { h.begins.snapshot = nil },
	} {
		h := h
		change(&h)
		// The file has no frames, because frames would be refused anyway.
		files[last] = extend(h.encode(), int64(h.size))
		_, _, err := openCrash(newCrashFS(files), 5)
		if good := name == "as it is"; good != (err == nil) || !good && !errors.Is(err, raftlog.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
