package transport

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// After a burst, an idle link uses no more memory than a link that had no burst. A link that
// regularly has large frames keeps its buffers.
func TestABurstIsForgotten(t *testing.T) {
	large, small := bytes.Repeat([]byte("x"), 200<<10), []byte("a renewal")
	out := &sink{}
	sender := &stream{conn: out, opens: true}
	q := newQueue(new(Config{}.withDefaults()))
	pass := func(words []byte) {
		t.Helper()
		raft := append1()
		raft.Entries[0].Data = words
		if _, err := q.push(&Frame{Commands: words, Raft: append(Frame{}.Raft, raft)}); err != nil {
			t.Fatal(err)
		}
		f, _, _ := q.next()
		if err := sender.send(f); err != nil {
			t.Fatal(err)
		}
		q.next()
	}
	receiver := hears(out, 0)
	receiver.begun = true
	hear := func() {
		t.Helper()
		if _, err := receiver.recv(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		for range 5 {
			pass(large[:3000]) // fits into the large read buffer
			hear()
			pass(large)
			hear()
		}
		for range habitUses / 2 {
			pass(small)
			hear()
		}
		if receiver.in.Size() != readBytes || cap(q.kinds[1].spare) < len(large) || cap(q.arena) < len(large) {
			t.Errorf("round %d: the buffers of a busy link are given back", round)
		}
	}
	for range 2 * habitUses {
		pass(small)
		hear()
	}
	held := receiver.in.Size() + cap(sender.out) + cap(q.arena) + cap(q.kinds[1].data) + cap(q.kinds[1].spare) +
		cap(q.kinds[1].lent)
	if held > 6*restBytes {
		t.Errorf("a link at rest holds %d bytes after a burst", held)
	}
}

func TestSignsOfLifeAreRest(t *testing.T) {
	text := speech(t, func(s *stream) error {
		s.opens = true
		_ = s.send(&wire.Frame{Commands: make([]byte, 5000)})
		for range 2 * habitUses {
			_ = s.mark(kindKeepalive)
		}
		return s.mark(kindClose)
	})
	s := hears(iotest.OneByteReader(bytes.NewReader(text)), 0)
	s.begun = true
	if _, err := s.recv(); err != nil || s.in.Size() != readBytes {
		t.Fatal(err, s.in.Size())
	}
	if _, err := s.recv(); err != io.EOF || s.in.Size() != restBytes {
		t.Fatalf("%v, and the buffer has %d bytes", err, s.in.Size())
	}
}
