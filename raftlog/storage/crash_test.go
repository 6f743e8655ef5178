package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
)

var crashID = raftlog.Identity{Group: 7, ID: 9}

// crashSegment is small, so that a short run has many segments.
const crashSegment = 16 << 10

func openCrash(c *crashFS, seed uint64) (*wal, raftlog.State, error) {
	r := rand.New(rand.NewPCG(seed, 3))
	w := &wal{fs: c, dir: "d", id: crashID, segment: crashSegment, logger: slog.New(slog.DiscardHandler),
		random: func(b []byte) { binary.LittleEndian.PutUint64(b, r.Uint64()) },
		busy:   make(timedMutex, 1), preparing: make(timedMutex, 1)}
	l, err := list(c, "d")
	if err != nil {
		return nil, raftlog.State{}, err
	}
	w.spares = l.spares
	if err := w.open(l); err != nil {
		return nil, raftlog.State{}, err
	}
	st, err := w.Load()
	return w, st, err
}

// promise is the acknowledged state of a store after a number of recorded operations.
type promise struct {
	ops   int           // number of recorded operations when Save returned
	state raftlog.State // the state that must be durable
}

type history struct {
	fs       *crashFS
	promises []promise // promises[0] is the empty store
	r        *rand.Rand
	model    *raftlog.MemoryStore
	w        *wal
	seed     uint64
	own      *raftpb.Snapshot // a snapshot that is being prepared, or is prepared and not yet saved
	ready    *raftpb.Snapshot // the same snapshot as own once it is prepared; before that nil
	failed   error            // error of a Save that ran during a Prepare
}

func newHistory(seed uint64, base map[string][]byte, st raftlog.State) *history {
	h := &history{fs: newCrashFS(base), r: rand.New(rand.NewPCG(seed, 1)), model: raftlog.NewMemoryStore(), seed: seed}
	h.promises = []promise{{0, st}}
	if !st.Empty() {
		h.teach(raftlog.Batch{Identity: &st.Identity, HardState: st.HardState, Snapshot: st.Snapshot,
			Entries: st.Entries})
	}
	return h
}

func (h *history) state() raftlog.State {
	st, _ := h.model.Load() // never fails
	return st
}

func (h *history) teach(b raftlog.Batch) {
	if err := h.model.Save(b); err != nil {
		panic(err)
	}
}

// batch returns a random batch, of any kind that raft makes.
func (h *history) batch() raftlog.Batch {
	r, st := h.r, h.state()
	if st.Empty() {
		b := raftlog.Batch{Identity: &crashID}
		if r.IntN(4) > 0 {
			b.HardState, b.Snapshot = testHard(1, 0, 1), testSnapshot(1, 1, 10)
		}
		return b
	}
	base := st.Snapshot.GetMetadata().GetIndex()
	last, term := base, max(1, st.HardState.GetTerm())
	if n := len(st.Entries); n > 0 {
		last = st.Entries[n-1].GetIndex()
	}
	size := []int{0, 40, 256, 600, 3000}[r.IntN(5)]
	var b raftlog.Batch
	switch k := r.IntN(20); {
	case k == 0: // a snapshot of another replica
		term++
		last += 1 + r.Uint64N(50)
		b.Snapshot = testSnapshot(last, term, r.IntN(6000))
		if r.IntN(2) == 0 {
			b.Entries = testEntries(last+1, term, 2, size)
		}
	case k <= 5 && h.ready.GetMetadata().GetIndex() > base: // a snapshot of this replica
		b.Snapshot, b.Prepared = h.ready, true
		if r.IntN(2) == 0 {
			b.Entries = testEntries(last+1, term, 1, size)
		}
	case k <= 7: // entries of a new leader
		term++
		applied := max(base, h.own.GetMetadata().GetIndex()) // committed entries are never replaced
		b.Entries = testEntries(applied+1+r.Uint64N(last-applied+1), term, 1+r.IntN(4), size)
	case k == 8:
		return raftlog.Batch{HardState: testHard(term+1, r.Uint64N(5), last)}
	case k == 9 && st.HardState != nil: // only a commit index
		return raftlog.Batch{HardState: testHard(st.HardState.GetTerm(), st.HardState.GetVote(), last)}
	case k == 10:
		b.Entries = testEntries(last+1, term, 2, crashSegment)
	default:
		b.Entries = testEntries(last+1, term, 1+r.IntN(6), size)
	}
	if st.HardState.GetTerm() != term || r.IntN(2) == 0 {
		b.HardState = testHard(term, r.Uint64N(5), last)
	}
	return b
}

// prepare calls Prepare with a snapshot of this replica. Sometimes a Save runs at the same time.
func (h *history) prepare() error {
	st := h.state()
	if len(st.Entries) == 0 {
		return nil
	}
	e := st.Entries[h.r.IntN(len(st.Entries))]
	s := testSnapshot(e.GetIndex(), e.GetTerm(), h.r.IntN(6000))
	h.own, h.ready, h.failed = s, nil, nil
	busy := false
	h.fs.beside = func() {
		if busy || h.failed != nil || h.r.IntN(3) == 0 || !h.w.busy.tryLock() {
			return
		}
		h.w.busy.unlock()
		busy = true
		h.failed = h.save(h.batch())
		busy = false
	}
	err := h.w.Prepare(context.Background(), s)
	h.fs.beside = nil
	h.ready = h.own // nil if another snapshot was saved during the Prepare
	return cmp.Or(h.failed, err)
}

func (h *history) save(b raftlog.Batch) error {
	if b.Snapshot != nil {
		h.own, h.ready = nil, nil
	}
	if err := h.w.Save(b); err != nil {
		// The failed batch may or may not be durable.
		h.promises = append(h.promises, promise{math.MaxInt, h.after(b)})
		return err
	}
	h.promises = append(h.promises, promise{len(h.fs.ops), h.after(b)})
	return nil
}

func (h *history) after(b raftlog.Batch) raftlog.State {
	h.teach(b)
	return h.state()
}

// run opens the store and saves batches. Sometimes it closes or kills the store and reopens it.
func (h *history) run(saves int) error {
	var err error
	if h.w, _, err = openCrash(h.fs, h.seed); err != nil {
		return err
	}
	for i := range saves {
		if h.r.IntN(12) == 0 {
			if h.r.IntN(2) == 0 {
				if err := h.w.Close(); err != nil {
					return err
				}
			}
			if h.w, _, err = openCrash(h.fs, h.seed+uint64(i)+1000); err != nil {
				return err
			}
			h.own, h.ready = nil, nil
		}
		if h.r.IntN(8) == 0 {
			if err := h.prepare(); err != nil {
				return err
			}
		}
		if err := h.save(h.batch()); err != nil {
			return err
		}
	}
	return nil
}

// check compares a store after a crash with its promises. ops is the number of operations before
// the crash. The store must hold the last promised state, with all or nothing of an unfinished
// batch.
func (h *history) check(ops int, got raftlog.State) error {
	k := 0
	for k+1 < len(h.promises) && h.promises[k+1].ops <= ops {
		k++
	}
	err := sameState(got, h.promises[k].state)
	if err == nil || k+1 == len(h.promises) {
		return err
	}
	if sameState(got, h.promises[k+1].state) == nil {
		return nil
	}
	return fmt.Errorf("neither promise %d nor the next: %w", k, err)
}

func sameState(got, want raftlog.State) error {
	if got.Identity != want.Identity {
		return fmt.Errorf("identity %v, want %v", got.Identity, want.Identity)
	}
	if g, w := got.HardState, want.HardState; (g == nil) != (w == nil) || g.GetTerm() != w.GetTerm() ||
		g.GetVote() != w.GetVote() || g.GetCommit() != w.GetCommit() {
		return fmt.Errorf("hard state %v, want %v", g, w)
	}
	if g, w := got.Snapshot, want.Snapshot; !proto.Equal(g.GetMetadata(), w.GetMetadata()) ||
		!bytes.Equal(g.GetData(), w.GetData()) {
		return fmt.Errorf("snapshot %v, want %v", g.GetMetadata(), w.GetMetadata())
	}
	if len(got.Entries) != len(want.Entries) {
		return fmt.Errorf("%d entries, want %d", len(got.Entries), len(want.Entries))
	}
	for i, e := range got.Entries {
		if w := want.Entries[i]; e.GetIndex() != w.GetIndex() || e.GetTerm() != w.GetTerm() ||
			e.GetType() != w.GetType() || !bytes.Equal(e.GetData(), w.GetData()) {
			return fmt.Errorf("entry %d of term %d, want %d of term %d (or their data differ)", e.GetIndex(),
				e.GetTerm(), w.GetIndex(), w.GetTerm())
		}
	}
	return nil
}

// tryImage opens one image and checks it. The store must then continue to work, even after a second
// crash.
func (h *history) tryImage(ops int, image map[string][]byte, seed uint64, deep bool) error {
	fs := newCrashFS(image)
	w, got, err := openCrash(fs, seed)
	if err != nil {
		return fmt.Errorf("refused: %w", err)
	}
	if err := h.check(ops, got); err != nil {
		return err
	}
	if err := noneLeft(fs, w); err != nil || !deep {
		return err
	}
	w.finished = true
	next := newHistory(seed, image, got)
	if err := next.run(4); err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	at := next.r.IntN(len(next.fs.ops) + 1)
	image = next.fs.image(at, sometimes(next.r, next.r.Float64()))
	if _, got, err = openCrash(newCrashFS(image), seed+1); err != nil {
		return fmt.Errorf("after a second crash: refused: %w", err)
	}
	if err := next.check(at, got); err != nil {
		return fmt.Errorf("after a second crash: %w", err)
	}
	return nil
}

func noneLeft(fs *crashFS, w *wal) error {
	for name := range fs.names {
		if _, n, ok := parseName(snapPrefix, name); ok && w.replay.begun && (w.snapshot == nil || n != w.snapshot.file) {
			return fmt.Errorf("%s is left, and no frame names it", name)
		}
	}
	return nil
}

// campaign makes random runs until it has opened the given number of images, and crashes each run
// after every operation. Operations of the kinds in lies are lost, as if the disk ignored them.
func campaign(images int, seed uint64, lies ...opKind) (opened int, err error) {
	for ; opened < images; seed++ {
		h := newHistory(seed, nil, raftlog.State{})
		h.fs.lies = lies
		if err := h.run(40); err != nil {
			return opened, fmt.Errorf("seed %d: %w", seed, err)
		}
		for at := range len(h.fs.ops) + 1 {
			for i, on := range []chance{never, always, sometimes(h.r, 0.5), sometimes(h.r, h.r.Float64())} {
				opened++
				if err := h.tryImage(at, h.fs.image(at, on), seed*1000+uint64(at), i >= 2); err != nil {
					return opened, fmt.Errorf("seed %d, after %d operations, image %d: %w", seed, at, i, err)
				}
			}
		}
	}
	return opened, nil
}

// coarse is the divisor of exhaustive tests. A merge tries a fifth of what every night tries.
func coarse() int {
	if testing.Short() {
		return max(slowly, 5)
	}
	return slowly
}

// TestCrashImages opens logs as a power loss can leave them. The full campaign:
//
//	MORTISE_CRASH_IMAGES=200000 go test ./raftlog/storage -run TestCrashImages -v
//
// MORTISE_CRASH_SEED sets the first seed.
func TestCrashImages(t *testing.T) {
	slow.UnderRace(t)
	images, seed := 4000/coarse(), uint64(1)
	if s := os.Getenv("MORTISE_CRASH_IMAGES"); s != "" {
		images, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("MORTISE_CRASH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	opened, err := campaign(images, seed)
	t.Logf("%d images opened", opened)
	if err != nil {
		t.Error(err)
	}
}

// TestCrashImagesCatch checks that the campaign detects an FS that omits syncs.
func TestCrashImagesCatch(t *testing.T) {
	for _, lie := range []opKind{opSync, opSyncDir} {
		opened, err := campaign(4000, 1, lie)
		if err == nil {
			t.Errorf("without %s all %d images are good: the test sees nothing", lie, opened)
		}
		t.Logf("without %s, image %d: %v", lie, opened, err)
	}
}

func testHard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

func testSnapshot(index, term uint64, size int) *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: testData(index, term, size), Metadata: &raftpb.SnapshotMetadata{Index: &index,
		Term:      &term,
		ConfState: &raftpb.ConfState{Voters: []uint64{1, 5, 9}, AutoLeave: new(false)}}}
}

func testEntries(first, term uint64, n, size int) (out []*raftpb.Entry) {
	for i := range uint64(n) {
		e := &raftpb.Entry{Index: new(first + i), Term: new(term), Data: testData(first+i, term, size)}
		if i == 1 {
			e.Type = raftpb.EntryConfChangeV2.Enum()
		}
		out = append(out, e)
	}
	return out
}

// testData returns bytes that no other entry has.
func testData(index, term uint64, size int) []byte {
	if size == 0 {
		return nil
	}
	return slices.Repeat(fmt.Appendf(nil, "%d/%d;", index, term), size/4+1)[:size]
}
