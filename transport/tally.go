package transport

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
)

// A frame of HTTP/2 has a header of 9 bytes: 3 bytes of length, the kind, the flags and the stream.
// A client sends 24 bytes before its first frame (RFC 9113).
const (
	http2Preface = 24
	http2Header  = 9
	http2Data    = 0
)

var errFlood = errors.New("transport: the connection was closed: too many frames")

// frameCounter finds the headers of frames in the bytes of a connection.
type frameCounter struct {
	skip   int // bytes until the next header
	have   int // bytes of header that have arrived
	header [http2Header]byte
}

// count returns how many frames begin in b and do not pay for themselves: all except data of at
// least smallData bytes.
func (f *frameCounter) count(b []byte) (unpaid int) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have, b = f.have+n, b[n:]
		if f.have < http2Header {
			break
		}
		f.have, f.skip = 0, int(f.header[0])<<16|int(f.header[1])<<8|int(f.header[2])
		if f.header[3] != http2Data || f.skip < smallData {
			unpaid++
		}
	}
	return unpaid
}

// Limits on the frames that cost their sender almost nothing. Answers pay for the frames of their
// questions.
const (
	unpaidBurst    = 16 << 10 // on one connection
	unpaidEvery    = time.Second / 1024
	unpaidOfSecret = 4        // times as many for all connections of one derived secret
	smallData      = 256      // bytes; a frame with more data pays for itself
	paidByAnswer   = 4        // frames: headers, data, the end of the question and a reset
	paidByBytes    = 32 << 10 // bytes of a question and its answer for which it pays one more frame
)

// tallied is a connection for calls. It ends when the peer sends more unpaid frames than its rate
// allows, or than that of its derived secret. gRPC has no limit for them: a peer could begin and
// reset tens of thousands of calls in a second.
type tallied struct {
	net.Conn
	secret  string       // the peer's derived secret; empty for the root secret
	secrets *fair.Rates  // unpaid frames of the peers with a derived secret
	flooded func()       // must close the connection
	frames  frameCounter // used only by the reading goroutine

	mu   sync.Mutex
	rate fair.Rate
}

func newSecretRates() *fair.Rates {
	return fair.NewRates(fair.Rate{Every: unpaidEvery / unpaidOfSecret, Burst: unpaidBurst * unpaidOfSecret})
}

func newTally(conn net.Conn, secret string, secrets *fair.Rates, flooded func()) *tallied {
	return &tallied{Conn: conn, secret: secret, secrets: secrets, flooded: flooded,
		frames: frameCounter{skip: http2Preface}, rate: fair.Rate{Every: unpaidEvery, Burst: unpaidBurst}}
}

func (t *tallied) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if unpaid := t.frames.count(b[:n]); unpaid > 0 && !t.spend(unpaid) {
		t.flooded()
		return 0, errFlood
	}
	return n, err
}

func (t *tallied) spend(n int) bool {
	now := time.Now()
	t.mu.Lock()
	allowed := t.rate.Spend(now, n)
	t.mu.Unlock()
	return allowed && (t.secret == "" || t.secrets.Spend(t.secret, now, n))
}

// answered pays for the frames of a question that, with its answer, has the given number of bytes.
func (t *tallied) answered(bytes int) {
	paid := paidByAnswer + bytes/paidByBytes
	t.mu.Lock()
	t.rate.Refund(paid)
	t.mu.Unlock()
	if t.secret != "" {
		t.secrets.Refund(t.secret, paid)
	}
}
