package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// Config configures a Port. New copies the Config. Until Close, the Port uses the objects that
// the Config refers to. A limit of zero means the default.
type Config struct {
	// label of the cluster, required; nodes with different labels never exchange data
	Cluster string
	Self    Self // this node's identity; Key is required
	// number of times that the node has started with its directory; 1 if it has none; zero means 1
	Life     uint64
	Listener net.Listener // required; the Port owns it and closes it
	// required; must honor ctx, and return ECONNREFUSED if the connection was refused
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	TLS     Security // for accepted and dialed connections; nil means plain text
	Handler Handler  // required
	// Unable is called about once a second while no connection can be accepted, with the time since
	// the first failure. It runs on the listener's goroutine and must not block. Nil means none.
	Unable func(since time.Duration)
	// questions that this node answers; empty means none
	Services Services
	Logger   *slog.Logger // nil discards all logs
	// The fingerprints of the lock rules that this node has, from version 1 on. A peer with another
	// fingerprint for the same version is refused.
	Rules []uint64
	// fills a slice with unpredictable bytes; nil means crypto/rand
	Random func([]byte)
	Wall   func() time.Time // for the validity of certificates; nil means time.Now

	MessageBytes  int           // bytes of the largest frame and the largest Send; default 64 MiB
	QueueBytes    int           // bytes queued for one peer, except raft messages; default 64 MiB
	RaftMessages  int           // raft messages queued per peer, more are dropped; default 4,096
	RaftBytes     int           // raft bytes queued per peer, more are dropped; default 64 MiB
	SnapshotBytes int           // bytes of the largest snapshot sent or accepted; default 1 GiB
	Links         int           // open streams to peers; default 65,536
	Conns         int           // open accepted connections; default 65,536
	Strangers     int           // accepted connections without a verified hello; default 1,024
	AskConns      int           // open connections for questions and gossip; default 1,024
	DialTimeout   time.Duration // time for the handshakes after connecting; default 5 s
}

// Security makes the TLS configurations for the connections of a Port. Its methods are safe for
// concurrent use. The Port owns the returned values.
type Security interface {
	ServerTLS() *tls.Config   // called once: callbacks must look up what may change later
	ClientTLS() *tls.Config   // called for each dial
	Explain(err error) string // says in one sentence why a handshake failed, and what to do

	// Peer returns the rights that the verified certificates of a finished handshake grant the
	// peer. An error ends the connection.
	Peer(tls.ConnectionState) (capability.Peer, error)
	// Recheck returns an error if a connection would no longer be accepted. The error ends the
	// connection. The port calls Recheck about once a minute for each connection.
	Recheck(tls.ConnectionState) error
}

func or[T int | time.Duration](value, standard T) T {
	if value > 0 {
		return value
	}
	return standard
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	c.Life = max(c.Life, 1)
	c.MessageBytes = or(c.MessageBytes, 64<<20)
	c.QueueBytes = or(c.QueueBytes, 64<<20)
	c.RaftMessages = or(c.RaftMessages, 4096)
	c.RaftBytes = or(c.RaftBytes, 64<<20)
	c.SnapshotBytes = or(c.SnapshotBytes, 1<<30)
	c.Links = or(c.Links, 65536)
	c.Conns = or(c.Conns, 65536)
	c.Strangers = or(c.Strangers, 1024)
	c.AskConns = or(c.AskConns, 1024)
	c.DialTimeout = or(c.DialTimeout, 5*time.Second)
	return c
}

func (c Config) validate() error {
	var errs []error
	missing := func(bad bool, what string) {
		if bad {
			errs = append(errs, errors.New("transport: Config."+what))
		}
	}
	missing(c.Cluster == "", "Cluster is empty: give the cluster a label")
	missing(len(c.Cluster) > maxLabel, "Cluster is longer than 255 bytes")
	missing(c.Self.Key.ID().IsZero(), "Self.Key is not set: make a new key for each incarnation")
	missing(c.Listener == nil, "Listener is nil")
	missing(c.Dial == nil, "Dial is nil")
	missing(c.Handler == nil, "Handler is nil")
	missing(len(c.Services.List) > 0 && c.Services.Intercept == nil,
		"Services.Intercept is nil: nothing decides who may ask what")
	return errors.Join(errs...)
}

const maxLabel = 255 // bytes; the limit of the gossip library
