package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/capability"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Frames follow the greetings on a link. A length in four bytes, big endian, precedes each frame.
// Two values are not lengths: kindKeepalive, and kindClose, which is sent after all data.
const (
	kindKeepalive = 0
	kindClose     = math.MaxUint32

	lengthBytes = 4
	helloBytes  = 4 << 10 // bytes
)

// stream is a connection that begins with hellos. One goroutine sends, and one receives.
type stream struct {
	conn   net.Conn
	kill   func() // closes the connection immediately; safe for concurrent use
	random func([]byte)
	secure *tls.ConnectionState // nil means plain text
	peer   capability.Peer      // rights from the peer's certificates; set before the hellos
	limit  int                  // largest frame, in bytes
	said   atomic.Bool          // data was sent since the last check by the keepalive
	heard  atomic.Bool          // data arrived since the last check by the keepalive
	waits  atomic.Bool          // the receiver waits for bytes
	broke  atomic.Bool

	out    []byte
	sends  habit
	opens  bool  // the sender has sent the preface
	failed error // error of the first failed write; set before broke

	in    *bufio.Reader
	reads habit
	last  int    // length of the last frame
	ahead []byte // unread bytes of the previous buffer, read first
	frame *received
	large *frames // buffers of the port, for frames larger than the read buffer
	begun bool    // the receiver has read the preface
}

// newStream returns a stream on conn. The function kill must close the connection.
func newStream(p *base, conn net.Conn, secure *tls.ConnectionState, kill func()) *stream {
	s := &stream{conn: conn, secure: secure, kill: kill, random: p.config.Random, limit: p.config.MessageBytes,
		frame: &received{}, large: &p.holds.frames}
	s.in = bufio.NewReaderSize(countingReader{s}, restBytes)
	return s
}

func (s *stream) widen() {
	s.ahead, _ = s.in.Peek(s.in.Buffered())
	s.in = s.large.reader()
	s.in.Reset(countingReader{s})
}

// narrow returns the large read buffer to the pool. The buffer must be empty.
func (s *stream) narrow() {
	s.large.giveReader(s.in)
	s.in = bufio.NewReaderSize(countingReader{s}, restBytes)
}

// countingReader records for the keepalive that bytes have arrived.
type countingReader struct{ *stream }

func (h countingReader) Read(b []byte) (int, error) {
	if len(h.ahead) > 0 {
		n := copy(b, h.ahead)
		if h.ahead = h.ahead[n:]; len(h.ahead) == 0 {
			h.ahead = nil // also releases the small buffer
		}
		return n, nil
	}
	h.waits.Store(true)
	if h.broke.Load() {
		h.limitLinger()
	}
	n, err := h.conn.Read(b)
	h.waits.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) && h.broke.Load() {
		err = h.failed
	}
	if n > 0 && !h.heard.Load() {
		h.heard.Store(true)
	}
	return n, err
}

func (s *stream) send(f *wire.Frame) error {
	b, start := s.begin()
	b = append(b, 0, 0, 0, 0)
	if f.Standing != nil || f.Refusal != nil {
		var err error
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, f); err != nil {
			s.kill() // the sender goroutine stops, so the link must end
			return err
		}
	} else {
		b = appendFrame(slices.Grow(b, frameSize(f)), f)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthBytes))
	return s.write(b)
}

func (s *stream) mark(length uint32) error {
	b, _ := s.begin()
	return s.write(binary.BigEndian.AppendUint32(b, length))
}

// begin returns the buffer for the next write, and the offset at which the data starts.
func (s *stream) begin() (b []byte, start int) {
	b = s.out[:0]
	if !s.opens {
		s.opens = true
		b = append(b, linkPreface...)
	}
	return b, len(b)
}

// write writes b. After an error, the receiver goroutine reads the data that has arrived, which
// may include the peer's reason, and then ends.
func (s *stream) write(b []byte) error {
	s.out = nil
	if cap(b) <= keptBytes && s.sends.keeps(cap(b), len(b)) {
		s.out = b
	}
	s.said.Store(true)
	_, err := s.conn.Write(b)
	if err != nil && !s.broke.Load() {
		s.failed = err
		s.broke.Store(true)
		s.limitLinger()
	}
	return err
}

func (s *stream) limitLinger() { _ = s.conn.SetReadDeadline(time.Now().Add(maxLinger)) }

// recv returns the next frame, which is valid until the next call. It returns io.EOF when the peer
// has sent everything.
func (s *stream) recv() (*received, error) {
	for {
		if had := s.in.Buffered(); had == 0 && s.in.Size() > restBytes && !s.reads.keeps(s.in.Size(), s.last) {
			s.narrow()
		} else if had == restBytes && s.in.Size() == restBytes {
			s.widen() // more has arrived than the small buffer can hold
		}
		head, err := s.in.Peek(lengthBytes)
		if err != nil {
			return nil, broken(err)
		}
		length := binary.BigEndian.Uint32(head)
		_, _ = s.in.Discard(lengthBytes)
		switch {
		case length == kindKeepalive:
			s.last = 0
		case length == kindClose:
			return nil, io.EOF
		case int64(length) > int64(s.limit):
			return nil, fmt.Errorf("%w: a frame of %d bytes, the limit here is %d", ErrGarbage, length, s.limit)
		default:
			return s.frame, s.read(int(length))
		}
	}
}

func (s *stream) read(length int) error {
	if s.last = length; length > s.in.Size() && s.in.Size() < readBytes {
		s.widen()
	}
	if length <= readBytes {
		b, err := s.in.Peek(length)
		if err != nil {
			return broken(err)
		}
		err = s.decode(b)
		_, _ = s.in.Discard(length)
		return err
	}
	defer s.large.enter(length, s.kill)()
	b := s.large.buffer()
	for len(b) < length { // allocate memory only as bytes arrive
		start := len(b)
		b = slices.Grow(b, min(length-start, max(start, readBytes)))
		b = b[:min(length, cap(b))]
		if _, err := io.ReadFull(s.in, b[start:]); err != nil {
			return broken(err)
		}
	}
	err := s.decode(b)
	s.large.giveBack(b)
	return err
}

func (s *stream) decode(b []byte) error {
	if err := s.frame.decode(b); err != nil {
		return fmt.Errorf("%w: a frame that cannot be decoded: %w", ErrGarbage, err)
	}
	return nil
}

func (s *stream) greet(g *wire.Greeting) error {
	b, start := s.begin()
	b, err := proto.MarshalOptions{}.MarshalAppend(append(b, 0, 0, 0, 0), g)
	if err != nil {
		s.kill()
		return err
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthBytes))
	return s.write(b)
}

func (s *stream) hearGreeting() (*wire.Greeting, error) {
	if err := s.hearPreface(); err != nil {
		return nil, err
	}
	head, err := s.in.Peek(lengthBytes)
	if err != nil {
		return nil, broken(err)
	}
	length := binary.BigEndian.Uint32(head)
	if length > helloBytes {
		return nil, fmt.Errorf("%w: a greeting of %d bytes", ErrGarbage, length)
	}
	b := make([]byte, lengthBytes+length)
	if _, err := io.ReadFull(s.in, b); err != nil {
		return nil, broken(err)
	}
	g := &wire.Greeting{}
	if err := proto.Unmarshal(b[lengthBytes:], g); err != nil {
		return nil, fmt.Errorf("%w: a greeting that cannot be decoded: %w", ErrGarbage, err)
	}
	return g, nil
}

func (s *stream) hearPreface() error {
	if s.begun {
		return nil
	}
	s.begun = true
	const preface = linkPreface
	for i := range len(preface) {
		b, err := s.in.ReadByte()
		if err != nil {
			return broken(err)
		}
		if i == 0 && (b == tlsAlert || b == tlsHandshake) && s.secure == nil {
			return ErrSecured
		}
		if b != preface[i] {
			return fmt.Errorf("%w: it does not speak the mortise protocol", ErrForeign)
		}
	}
	return nil
}

// broken replaces io.EOF by io.ErrUnexpectedEOF, because the peer has not sent kindClose.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) explain(ctx context.Context, addr string, err error) error {
	switch {
	case errors.Is(err, ErrForeign), errors.Is(err, ErrGarbage):
		return fmt.Errorf("%w (%s)", err, addr)
	case refusedTLS(err):
		return fmt.Errorf("%w: %s refuses our TLS: %w", ErrForeign, addr, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s: %w", ErrSilent, addr, err) // also for ErrSecured
}

type unread struct {
	net.Conn
	in *bufio.Reader // nil once its buffer is empty; only the reading goroutine uses it
}

func (c *unread) Read(b []byte) (int, error) {
	if c.in != nil {
		if c.in.Buffered() > 0 {
			return c.in.Read(b)
		}
		c.in = nil
	}
	return c.Conn.Read(b)
}
