package history_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

type gated struct {
	bytes.Buffer
	open chan struct{}
}

func (g *gated) Write(b []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(b)
}

func clock() func() int64 {
	var now atomic.Int64
	return func() int64 { return now.Add(1) }
}

func TestRecorderWritesWhatItIsTold(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(`{"k":"header","cut o`) // an incomplete line, as after a crash
	r := history.NewRecorder(history.RecorderConfig{Writer: &file, Node: "n", Now: clock()})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 100 {
				op := r.Call(history.Event{Key: "a key", Try: true})
				r.Granted(op, 7)
				r.Unlock(op)
				r.Unlocked(op, "")
			}
		})
	}
	callers.Wait()
	r.Held(r.Call(history.Event{Key: strings.Repeat("x", 10000), Try: true}), 9)
	r.Failed(r.Call(history.Event{Key: "a key"}), "context")
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	events, err := history.Read(nil, &file)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1+8*100*4+4 {
		t.Fatalf("%d events", len(events))
	}
	ops, last := map[uint64]int{}, int64(0)
	for _, e := range events {
		if e.At <= last || e.Node != "n" || e.Stream != 1 {
			t.Fatalf("after time %d: %+v", last, e)
		}
		last = e.At
		ops[e.Op]++
	}
	if len(ops) != 1+802 {
		t.Fatalf("%d calls have distinct numbers", len(ops)-1)
	}
}

func TestRecorderDropsAndSaysSo(t *testing.T) {
	synctest.Test(t, dropAndSaySo)
}

func dropAndSaySo(t *testing.T) {
	slow := &gated{open: make(chan struct{})}
	r := history.NewRecorder(history.RecorderConfig{Writer: slow, Node: "n", Now: clock(), Buffer: 1000})
	for range 1000 {
		r.Call(history.Event{Key: "k"})
	}
	if r.Dropped() == 0 {
		t.Fatal("the writer blocks, and nothing is dropped")
	}
	close(slow.open)
	for range 100 { // events are recorded again, after a Dropped event
		r.Call(history.Event{Key: "k"})
		synctest.Wait()
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "dropped") {
		t.Fatalf("Close returned %v", err)
	}
	events, err := history.Read(nil, &slow.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	told := uint64(0)
	for _, e := range events {
		told += e.Count
	}
	if told != r.Dropped() {
		t.Errorf("%d events were dropped, the history reports %d", r.Dropped(), told)
	}
	if err := history.Judge(events, history.Options{}); !errors.Is(err, history.ErrUnknown) {
		t.Errorf("a history with holes is judged %v", err)
	}
}

// TestRecorderHasAnEnd checks that a Return after Close does not count as a dropped event.
func TestRecorderHasAnEnd(t *testing.T) {
	var out bytes.Buffer
	r := history.NewRecorder(history.RecorderConfig{Writer: &out, Node: "n", Now: clock()})
	op := r.Call(history.Event{Key: "k"})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	written := out.Len()
	r.Failed(op, "closed")
	if err := r.Close(); err != nil || r.Dropped() != 0 || out.Len() != written {
		t.Errorf("it recorded after Close: %v, %d dropped, %d bytes more", err, r.Dropped(),
			out.Len()-written)
	}
}

func TestRecorderOutlivesItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe() // no reader, so writes block
		r := history.NewRecorder(history.RecorderConfig{Writer: out, Node: "n", Now: clock()})
		r.Call(history.Event{Key: "k"})
		began := time.Now()
		if err := r.Close(); err == nil || time.Since(began) > 6*time.Second {
			t.Errorf("Close took %v and returned %v", time.Since(began), err)
		}
		full := errors.New("disk full")
		in.CloseWithError(full)
		synctest.Wait()
		if err := r.Close(); !errors.Is(err, full) {
			t.Errorf("Close returned %v", err)
		}
	})
	var off *history.Recorder
	if off.Call(history.Event{Key: "k", Try: true}) != 0 || off.Close() != nil {
		t.Error("a nil recorder records something")
	}
}

func TestReadRefuses(t *testing.T) {
	const header = `{"k":"history","at":1,"v":1,"node":"n"}` + "\n"
	for name, text := range map[string]string{
		"no header":    `{"k":"call","at":1,"op":1,"key":"a"}` + "\n",
		"version":      `{"k":"history","at":1,"v":2,"node":"n"}` + "\n",
		"kind":         header + `{"k":"dance","at":1}` + "\n",
		"garbage":      header + "garbage\n" + `{"k":"call","at":1,"op":1,"key":"a"}` + "\n",
		"garbage last": header + "garbage\n",
		"long line":    header + `{"k":"call","key":"` + strings.Repeat("x", 1<<22) + `"}` + "\n",
	} {
		if _, err := history.Read(nil, strings.NewReader(text)); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
	cut := header + `{"k":"call","at":1,"op":1,"key":"a"}` + "\n" + `{"k":"retu` + "\n" + header +
		`{"k":"call","at":1,"op":1,"key":"a"}` + "\n" + `{"k":"ret`
	events, err := history.Read(nil, strings.NewReader(cut))
	if err != nil || len(events) != 4 || events[1].Stream == events[3].Stream {
		t.Errorf("two incarnations, both cut off: %v, %v", events, err)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := history.NewRecorder(history.RecorderConfig{Writer: io.Discard, Node: "n",
		Now: func() int64 { return time.Now().UnixNano() }, Buffer: 1 << 26})
	for b.Loop() {
		r.Granted(1, 3565158400000000028)
	}
	_ = r.Close()
}
