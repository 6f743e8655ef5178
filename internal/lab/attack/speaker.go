package attack

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const within = 5 * time.Second // time limit for connecting and for each greeting

// Speaker is a process that may connect to the cluster. It has no identity of its own: the caller
// chooses one for each greeting.
type Speaker struct {
	Label string                                                   // the label of the cluster
	Dial  func(ctx context.Context, addr string) (net.Conn, error) // required
	TLS   func() *tls.Config                                       // nil means plain text
}

// Conn is a connection to an instance. Open and Accept send no greeting on it.
type Conn struct {
	net.Conn
	Binding []byte // the binding of the greetings on this connection
	in      *bufio.Reader
}

// Read implements net.Conn. It begins behind the greetings.
func (c *Conn) Read(b []byte) (int, error) { return c.in.Read(b) }

// Open connects to addr. The caller can then send a greeting.
func (s *Speaker) Open(ctx context.Context, addr string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	raw, err := s.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Now().Add(within))
	c, err := s.begin(ctx, raw, addr)
	if err != nil {
		raw.Close()
		return nil, err
	}
	return c, nil
}

func (s *Speaker) begin(ctx context.Context, raw net.Conn, addr string) (*Conn, error) {
	if s.TLS == nil {
		c := &Conn{Conn: raw, in: bufio.NewReader(raw)}
		var err error
		c.Binding, err = c.nonces()
		return c, err
	}
	config := s.TLS()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	binding, err := state.ExportKeyingMaterial(formats.Exporter, nil, formats.BindingBytes)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(secure, formats.Preface)
	return &Conn{Conn: secure, Binding: binding, in: bufio.NewReader(secure)}, err
}

func (c *Conn) nonces() ([]byte, error) {
	var own, other [formats.BindingBytes]byte
	_, _ = rand.Read(own[:])
	if _, err := c.Write(append([]byte(formats.Preface), own[:]...)); err != nil {
		return nil, err
	}
	if err := c.hearPreface(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c.in, other[:]); err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write([]byte(formats.PlainContext))
	sum.Write(own[:])
	sum.Write(other[:])
	return sum.Sum(nil), nil
}

func (c *Conn) hearPreface() error {
	var b [len(formats.Preface)]byte
	if _, err := io.ReadFull(c.in, b[:]); err != nil {
		return err
	}
	if string(b[:]) != formats.Preface {
		return fmt.Errorf("attack: the other side begins with %q", b[:])
	}
	return nil
}

// Hello encodes a hello with the given key, modified by the function change unless it is nil.
func (s *Speaker) Hello(key nodeid.Key, kind wire.Hello_Kind, change func(*wire.Hello)) []byte {
	h := &wire.Hello{
		Version: formats.Hello, Cluster: s.Label, Key: key.Public(), Kind: kind, Addr: "192.0.2.66:7947", Number: 1, Life: 1,
		Boot: make([]byte, 16),
	}
	_, _ = rand.Read(h.Boot)
	if change != nil {
		change(h)
	}
	b, err := proto.Marshal(h)
	if err != nil {
		panic(err) // only for a field with invalid UTF-8
	}
	return b
}

// Sign returns the greeting of a dialer with the given key, on a connection with the given binding.
func Sign(key nodeid.Key, binding, hello []byte) *wire.Greeting {
	sum := sha256.Sum256(hello)
	b := append([]byte(formats.HelloContext), 1)
	b = append(append(b, binding...), sum[:]...)
	return &wire.Greeting{Hello: hello, Signature: key.Sign(b)}
}

// Greet sends a greeting and returns the answer. A refusal is not an error.
func (c *Conn) Greet(g *wire.Greeting) (*wire.Greeting, error) {
	if err := c.Say(g); err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	if _, secure := c.Conn.(*tls.Conn); secure {
		if err := c.hearPreface(); err != nil {
			return nil, err
		}
	}
	answer, err := c.hearGreeting()
	_ = c.SetDeadline(time.Time{})
	return answer, err
}

// Ended reports whether the other side ends the connection within d. It discards all earlier data.
func (c *Conn) Ended(d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, c.in)
	var late net.Error
	return !errors.As(err, &late) || !late.Timeout()
}

// Accept accepts a connection, with TLS if server is not nil, and returns the first greeting of the
// dialer. It sends only the preface.
func Accept(raw net.Conn, server *tls.Config) (*Conn, *wire.Greeting, error) {
	_ = raw.SetDeadline(time.Now().Add(within))
	c := &Conn{Conn: raw}
	if server != nil {
		if choose := server.GetConfigForClient; choose != nil {
			chosen, err := choose(&tls.ClientHelloInfo{}) // the hello does not matter
			if err != nil {
				return nil, nil, err
			}
			if chosen != nil {
				server = chosen
			}
		}
		server.NextProtos = []string{"h2"}
		c.Conn = tls.Server(raw, server)
	}
	c.in = bufio.NewReader(c.Conn)
	if err := c.hearPreface(); err != nil {
		return nil, nil, err
	}
	var nonce [formats.BindingBytes]byte
	begin := []byte(formats.Preface)
	if server == nil {
		if _, err := io.ReadFull(c.in, nonce[:]); err != nil {
			return nil, nil, err
		}
		begin = append(begin, nonce[:]...)
	}
	if _, err := c.Write(begin); err != nil {
		return nil, nil, err
	}
	g, err := c.hearGreeting()
	return c, g, err
}

// Say sends a greeting without waiting for an answer.
func (c *Conn) Say(g *wire.Greeting) error {
	b, err := proto.Marshal(g)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func (c *Conn) hearGreeting() (*wire.Greeting, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > 1<<20 {
		return nil, errors.New("attack: a greeting that is too long")
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return nil, err
	}
	g := &wire.Greeting{}
	return g, proto.Unmarshal(b, g)
}
