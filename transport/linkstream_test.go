package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// said is a connection on which the given data arrives, and which discards all data that is
// written.
type said struct {
	net.Conn
	io.Reader
}

func (c said) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c said) Write(b []byte) (int, error) { return len(b), nil }

// aGreeting passes all checks that do not involve the other side.
var aGreeting = &wire.Greeting{Hello: []byte("a hello"), Signature: make([]byte, 64)}

func hears(r io.Reader, limit int) *stream {
	p := &base{config: Config{MessageBytes: limit}.withDefaults()}
	return newStream(p, said{Reader: r}, nil, func() {})
}

// speech returns the bytes that a stream writes.
func speech(t testing.TB, say func(*stream) error) []byte {
	t.Helper()
	out := &sink{}
	s := newStream(&base{config: Config{}.withDefaults()}, out, nil, func() {})
	if err := say(s); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFramesOfAllSizes(t *testing.T) {
	slow.UnderRace(t)
	sizes := []int{1, 100, restBytes - 20, restBytes - lengthBytes, restBytes, restBytes + 1, 1, readBytes - 20,
		readBytes - lengthBytes, readBytes - 3, readBytes, readBytes + 1, 3 * readBytes, 100, frameBytes, 5 << 20, 1}
	words := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, sizes[i]) }
	text := speech(t, func(s *stream) error {
		err := s.greet(aGreeting)
		for i := range sizes {
			err = errors.Join(err, s.mark(kindKeepalive), s.send(&wire.Frame{Commands: words(i), Renewals: []byte("now")}))
		}
		return errors.Join(err, s.mark(kindClose))
	})
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "bytes": iotest.OneByteReader,
		"with the error": iotest.DataErrReader,
	} {
		s := hears(cut(bytes.NewReader(text)), 0)
		if g, err := s.hearGreeting(); err != nil || !proto.Equal(g, aGreeting) {
			t.Fatalf("%s: %+v, %v", name, g, err)
		}
		for i := range sizes {
			f, err := s.recv()
			if err != nil || !bytes.Equal(f.words[1], words(i)) || string(f.words[0]) != "now" {
				t.Fatalf("%s: the frame of %d bytes: %v", name, sizes[i], err)
			}
		}
		if f, err := s.recv(); err != io.EOF {
			t.Fatalf("%s: the goodbye is %v, %v", name, f, err)
		}
	}
}

// Each kind of incorrect data causes its own error. A broken connection is not a normal end.
func TestWhatEndsAStream(t *testing.T) {
	hello := speech(t, func(s *stream) error {
		return s.greet(aGreeting)
	})
	frame := hello[len(linkPreface):]
	then := func(more string) string { return string(hello) + more }
	large := string(binary.BigEndian.AppendUint32(nil, helloBytes+1))
	for text, want := range map[string]error{
		"":                                       io.ErrUnexpectedEOF,
		linkPreface[:3]:                          io.ErrUnexpectedEOF,
		"HTTP/1.1 400 Bad Request\r\n":           ErrForeign,
		"mortise and tenon":                      ErrForeign,
		linkPreface + "\x00":                     io.ErrUnexpectedEOF,
		linkPreface + "\xff\xff\xff\xff":         ErrGarbage,
		then("\xff\xff\xff\xff"):                 io.EOF,
		linkPreface + large + "x":                ErrGarbage,
		linkPreface + "\x00\x00\x00\x02\xff\xff": ErrGarbage,
		then("") + string(frame[:9]):             io.ErrUnexpectedEOF,
		then(large) + "x":                        io.ErrUnexpectedEOF,
		then("\x00\x10\x00\x01") + "x":           ErrGarbage, // above the limit
		then("\x00\x00\x00\x02\xff\xff"):         ErrGarbage,
	} {
		s := hears(strings.NewReader(text), 1<<20)
		_, err := s.hearGreeting()
		for err == nil {
			_, err = s.recv()
		}
		if !errors.Is(err, want) || want == io.ErrUnexpectedEOF && errors.Is(err, ErrGarbage) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
}

func TestAnnouncedFramesReserveNothing(t *testing.T) {
	text := speech(t, func(s *stream) error {
		return s.greet(aGreeting)
	})
	text = append(binary.BigEndian.AppendUint32(text, 60<<20), make([]byte, 1000)...)
	s := hears(bytes.NewReader(text), 0)
	if _, err := s.hearGreeting(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.recv(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were reserved for 1,000", n)
	}
}

// Strangers may open many connections.
func TestAConnectionBeforeItsGreetingHoldsLittle(t *testing.T) {
	const conns = 100
	p := &base{config: Config{}.withDefaults()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range conns {
		newStream(p, &sink{}, nil, func() {})
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / conns; n > 4<<10 {
		t.Errorf("%d bytes each", n)
	}
}

// FuzzStream checks that arbitrary data on a link causes no panic, and that reading ends.
func FuzzStream(f *testing.F) {
	f.Add([]byte(linkPreface + "\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Add(speech(f, func(s *stream) error {
		return errors.Join(s.greet(aGreeting), s.send(&wire.Frame{Raft: [][]byte{{0x18, 102}}}), s.mark(kindClose))
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := hears(bytes.NewReader(b), 1<<20)
		_, err := s.hearGreeting()
		for err == nil {
			_, err = s.recv()
		}
	})
}
