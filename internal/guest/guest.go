package guest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// askWithin is the time limit of a question that needs no leader.
const askWithin = time.Second

// answerLate is the time by which an answer can be later than the time limit of its question at the
// leader. An instance that has not answered then hangs.
const answerLate = 2 * time.Second

// Guest asks the instances of a cluster. Open makes one, and Close ends it.
type Guest struct {
	config   mortise.Config
	world    outside.World
	source   *credentials.Source // nil means plain text
	key      nodeid.Key
	port     *transport.Port
	sessions atomic.Pointer[client.Client] // client of the Session; nil means none
	answered atomic.Pointer[string]        // address of the instance that has answered the last Put
	asking   sync.WaitGroup                // questions whose answers are no longer needed
}

// Open makes a guest of the cluster that config describes. It uses the fields Name, Cluster, Join,
// JoinFunc, Secret, OldSecrets, TLS, TLSFiles, TLSPeers, TLSGuests, Insecure and SessionTTL, with
// the same rules as mortise.Config. Open contacts no instance. The error names each mistake by its
// field.
func Open(config mortise.Config) (*Guest, error) { return OpenIn(outside.World{}, config) }

// OpenIn is Open in the environment w. A guest uses its fields Dial, Clock and Random.
func OpenIn(w outside.World, config mortise.Config) (*Guest, error) {
	w.Clock = cmp.Or(w.Clock, clock.Boot())
	if w.Dial == nil {
		var dialer net.Dialer
		w.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	if w.Random == nil {
		w.Random = random
	}
	if config.Cluster == "" {
		config.Cluster = "mortise"
	}
	if config.SessionTTL == 0 {
		config.SessionTTL = 10 * time.Second
	}
	source, err := secure(config)
	if err = errors.Join(check(config), err); err != nil {
		return nil, err
	}
	config.Secret, config.OldSecrets, config.TLS = "", nil, nil // source now contains these credentials
	g := &Guest{config: config, world: w, source: source, key: nodeid.NewKey(w.Random)}
	settings := transport.Config{
		Cluster: config.Cluster, Self: transport.Self{Key: g.key},
		Listener: transport.Deaf(), Dial: g.dial, Handler: inbound{g}, Logger: slog.New(slog.DiscardHandler),
		Random: w.Random,
		Rules:  lockfsm.Fingerprints(),
	}
	if source != nil {
		settings.TLS = source
	}
	g.port, err = transport.New(settings)
	return g, err
}

// Close ends the guest. The caller must close its Session first.
func (g *Guest) Close() error {
	err := g.port.Close() // also ends questions
	g.asking.Wait()
	return err
}

func check(c mortise.Config) error {
	var errs []error
	if len(c.Join) == 0 && c.JoinFunc == nil {
		errs = append(errs, errors.New("Config.Join: is empty: give the address of an instance of the cluster"))
	}
	for i, entry := range c.Join {
		if err := discovery.Check(entry); err != nil {
			errs = append(errs, fmt.Errorf("Config.Join[%d]: %w", i, err))
		}
	}
	if c.SessionTTL < time.Second || c.SessionTTL > 10*time.Minute {
		errs = append(errs, fmt.Errorf("Config.SessionTTL: %v is not between 1s and 10m", c.SessionTTL))
	}
	return errors.Join(errs...)
}

// secure makes the same credentials as an instance with this configuration, or nil for plain text.
func secure(c mortise.Config) (*credentials.Source, error) {
	chosen := 0
	for _, set := range [...]bool{c.Secret != "", c.TLS != nil, c.TLSFiles != mortise.TLSFiles{}, c.Insecure} {
		if set {
			chosen++
		}
	}
	names := credentials.Names{Peers: c.TLSPeers, Guests: c.TLSGuests}
	switch {
	case chosen > 1:
		return nil, errors.New("Config.Secret: set one of Secret, TLS, TLSFiles and Insecure, not several")
	case c.Secret != "":
		return credentials.FromSecret(credentials.SecretConfig{Secret: c.Secret, Old: c.OldSecrets, Cluster: c.Cluster})
	case c.TLS != nil:
		return credentials.FromTLS(c.TLS, names)
	case c.TLSFiles != mortise.TLSFiles{}:
		return credentials.FromFiles(credentials.FilesConfig{
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA, Names: names,
		})
	}
	return nil, nil
}

var errOpen = errors.New("it is on another machine and nothing protects the connection: " +
	"give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on), " +
	"or -insecure if it has neither")

// Texts for errors that suggest that only one side has a secret or certificates.
const (
	needsSecret = "the instance has a secret, and this program was given none: " +
		"give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on)"
	needsNoSecret = "the instance has no secret, and this program was given one: " +
		"leave it out (and set -insecure if the instance is on another machine)"
	hungUp = "it ended the connection without an answer, and nothing protects that connection: " +
		"if the cluster has a secret, give it (-secret-file, or MORTISE_SECRET)"
)

// open reports whether connections are unprotected and Insecure is not set.
func (g *Guest) open() bool { return g.source == nil && !g.config.Insecure }

func elsewhere(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback()
}

// dial refuses plain text to other machines unless Insecure allows it.
func (g *Guest) dial(ctx context.Context, address string) (net.Conn, error) {
	open := g.open()
	if open && elsewhere(address) {
		return nil, errOpen
	}
	conn, err := g.world.Dial(ctx, address)
	if err != nil || !open {
		return conn, err
	}
	if there, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !there.IP.IsLoopback() {
		return nil, errors.Join(errOpen, conn.Close())
	}
	return conn, nil
}

// Method is a question that a program may ask: a method of query.AdminClient.
type Method[Q, A any] = queries.Method[query.AdminClient, Q, A]

// Ask sends one question to the instance at addr. If the instance could not do what the question
// asks for, the error is a *queries.Failed with the instance's text, escaped. If a right is
// missing, the error is a *mortise.NotAllowedError. Any other error explains why there is no
// answer.
func Ask[Q, A any](ctx context.Context, g *Guest, addr string, method Method[Q, A], q *Q) (*A, error) {
	if g.open() && elsewhere(addr) {
		return nil, fmt.Errorf("%s: %w", addr, errOpen)
	}
	a, err := queries.Ask(ctx, query.NewAdminClient(g.port.To(addr, nodeid.ID{})), method, q)
	var denied *session.NotAllowedError
	switch {
	case errors.As(err, &denied):
		return nil, notAllowed(denied.Verb, denied.Key, denied.For)
	case err == nil, failed(err) != nil:
		return a, err
	}
	return nil, g.explain(addr, err)
}

func failed(err error) *queries.Failed {
	f, _ := errors.AsType[*queries.Failed](err)
	return f
}

func notAllowed(verb, key, by string) error {
	return &mortise.NotAllowedError{Verb: verb, Key: plain.Text(key), For: plain.Text(by)}
}

// strangerError explains why the instance at an address rejects this program.
type strangerError struct{ addr, why string }

func (e *strangerError) Error() string        { return e.addr + ": " + e.why }
func (e *strangerError) Is(target error) bool { return target == transport.ErrForeign }

func (g *Guest) explain(addr string, err error) error {
	switch {
	case errors.Is(err, transport.ErrSecured):
		return &strangerError{addr, needsSecret}
	case errors.Is(err, transport.ErrPlain):
		return &strangerError{addr, needsNoSecret}
	case g.open() && !errors.Is(err, errOpen) && strings.Contains(err.Error(), "EOF"):
		return &strangerError{addr, hungUp}
	case g.source == nil || !errors.Is(err, transport.ErrForeign):
		return err
	}
	if text := g.source.Explain(err); text != "" {
		return &strangerError{addr, text}
	}
	return err
}

func random(b []byte) { _, _ = rand.Read(b) }

// inbound implements transport.Handler. A guest accepts only replies for its session.
type inbound struct{ g *Guest }

var errGuest = errors.New("guest: this program is no instance and answers no queries")

func (in inbound) Frame(from transport.Identity, f transport.Frame) {
	if c := in.g.sessions.Load(); c != nil && len(f.Replies) > 0 {
		c.Receive(from.Instance, f.Replies)
	}
}

func (in inbound) Down(peer transport.Identity, _ error) {
	if c := in.g.sessions.Load(); c != nil {
		c.Down(peer.Instance)
	}
}

func (in inbound) MaySendSnapshot(transport.Identity, *raftpb.Message) error { return errGuest }
func (in inbound) Snapshot(transport.Identity, *raftpb.Message) error        { return errGuest }
