package transport

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// linkTo opens a link without using the Port that dials, and waits until it is accepted.
func (n *node) linkTo(to *node) *stream {
	n.t.Helper()
	s, _ := n.link(to.identity.Addr, to.identity.Instance, 1)
	n.t.Cleanup(s.kill)
	return s
}

func TestAFrameHasADeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		s := b.linkTo(a)
		if _, err := s.conn.Write(binary.BigEndian.AppendUint32(nil, 1<<20)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for a.Linked(id(2)) && time.Since(began) < 10*time.Minute {
			_, _ = s.conn.Write([]byte("x"))
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > allowance(frameGrace, 1<<20)+2*time.Second {
			t.Errorf("the link was ended after %v", took)
		}
		if n := a.holds.frames.total(); n != 0 {
			t.Errorf("%d bytes are still expected", n)
		}
		c.send(a, strings.Repeat("x", 5<<20))
		synctest.Wait()
		if text, _ := commands(a.seen(), id(3)); len(text) != 5<<20 {
			t.Errorf("another link's frame: %d bytes", len(text))
		}
	})
}

func TestUnfinishedFramesHoldNoMemory(t *testing.T) {
	slow.UnderRace(t)
	authority := newAuthority(t)
	use := func(c *Config) { authority.use(c) }
	a := realTLS(t, 1, use)
	a.holds.frames.soft, a.holds.frames.hard = 20<<20, 40<<20
	const each = 16 << 20
	half := make([]byte, each/2)
	before := heap()
	for i := range 20 {
		s := realTLS(t, 10+i, use).linkTo(a)
		_, _ = s.conn.Write(binary.BigEndian.AppendUint32(nil, each))
		_, _ = s.conn.Write(half)
	}
	held := int64(heap()) - int64(before)
	t.Logf("%d KiB held", held>>10)
	if held > 80<<20 {
		t.Errorf("%d MiB are held", held>>20)
	}
	if n := a.holds.frames.total(); n > 40<<20 {
		t.Errorf("%d bytes are expected", n)
	}
	b := realTLS(t, 2, use)
	b.send(a, strings.Repeat("x", each))
	eventually(t, "a correct frame does not arrive",
		func() bool { text, _ := commands(a.seen(), id(2)); return len(text) == each })
}

func TestABurstOfFrames(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		f := frames{soft: 100, hard: 200}
		var killed atomic.Int64
		kill := func() { killed.Add(1) }
		var leaves []func()
		for range 20 {
			leaves = append(leaves, f.enter(10, kill))
		}
		if killed.Load() != 0 {
			t.Fatalf("%d of a burst are given up", killed.Load())
		}
		f.enter(10, kill)()
		if killed.Load() != 1 {
			t.Errorf("%d are given up beyond the hard limit", killed.Load())
		}
		time.Sleep(frameSlow)
		f.enter(10, kill)()
		if n := killed.Load(); n != 11 {
			t.Errorf("%d are given up once they are slow", n)
		}
		for _, leave := range leaves {
			leave()
		}
		if f.total() != 0 || f.list.Len() != 0 {
			t.Errorf("%d bytes are left", f.total())
		}
		for range 2 * maxSpares {
			f.giveBack(make([]byte, 1, keptBytes))
		}
		f.giveBack(make([]byte, 1, keptBytes+1))
		if len(f.spares) != maxSpares {
			t.Errorf("%d buffers are kept", len(f.spares))
		}
		if b := f.buffer(); len(b) != 0 || cap(b) != keptBytes || len(f.spares) != maxSpares-1 {
			t.Errorf("%d of %d", len(b), cap(b))
		}
	})
}

// A message of two bytes takes hundreds of bytes when it is decoded, so a frame with very many
// small messages or entries is refused.
func TestFramesDoNotGrowInDecoding(t *testing.T) {
	const many = 2 << 20
	empty := func(tag uint64, n int) (b []byte) {
		for range n {
			b = append(b, byte(tag), 0)
		}
		return b
	}
	const tagResponses = 14<<3 | uint64(protowire.BytesType)
	standing := protowire.AppendBytes([]byte{8<<3 | byte(protowire.BytesType)}, nil)
	for name, b := range map[string][]byte{
		"messages":             empty(tagRaft, many),
		"messages, a standing": append(empty(tagRaft, many), standing...),
		"entries":              protowire.AppendBytes([]byte{byte(tagRaft)}, empty(tagEntries, many)),
		"entries of a stranger": protowire.AppendBytes([]byte{byte(tagRaft)}, append(empty(tagEntries, many), 0x0d, 1,
			2, 3, 4)),
		"responses": protowire.AppendBytes([]byte{byte(tagRaft)}, empty(tagResponses, many)),
	} {
		in := &received{}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := in.decode(b)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 || err == nil && !in.malformed {
			t.Errorf("%s: %d MiB taken, %v, malformed: %v", name, took>>20, err, in.malformed)
		}
	}
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		s := b.linkTo(a)
		frame := empty(tagRaft, many)
		_, _ = s.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		synctest.Wait()
		time.Sleep(2 * linger)
		if events := a.seen(); len(events) != 1 || !errors.Is(events[0].down, ErrGarbage) {
			t.Errorf("%+v", events)
		}
	})
}
