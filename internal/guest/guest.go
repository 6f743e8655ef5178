package guest

import (
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
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// askWithin bounds one question to one instance that needs no leader.
const askWithin = time.Second

// Guest asks the instances of a cluster. Make one with Open and end it with Close.
type Guest struct {
	config   mortise.Config
	source   *credentials.Source // nil: plain text
	key      nodeid.Key
	port     *transport.Port
	sessions atomic.Pointer[client.Client] // of the Session; nil: none
	asking   sync.WaitGroup                // questions whose answer nobody waits for any more
}

// Open makes a guest of the cluster that config describes. Of config count Name, Cluster, Join,
// JoinFunc, Secret, OldSecrets, TLS, TLSFiles, TLSPeers, Insecure and SessionTTL, by the rules of
// mortise.Config; nobody is asked yet. An error names every mistake by its field.
func Open(config mortise.Config) (*Guest, error) {
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
	config.Secret, config.OldSecrets, config.TLS = "", nil, nil // source has what is needed of them
	g := &Guest{config: config, source: source, key: nodeid.NewKey(random)}
	settings := transport.Config{
		Cluster: config.Cluster, Self: transport.Self{Key: g.key},
		Listener: transport.Deaf(), Dial: g.dial, Handler: inbound{g}, Logger: slog.New(slog.DiscardHandler),
	}
	if source != nil {
		settings.TLS = source
	}
	g.port, err = transport.New(settings)
	return g, err
}

// Close ends the guest. Its Session has to be closed before.
func (g *Guest) Close() error {
	err := g.port.Close() // which ends questions
	g.asking.Wait()
	return err
}

// check names what is wrong with the fields that only matter here.
func check(c mortise.Config) error {
	var errs []error
	if len(c.Join) == 0 && c.JoinFunc == nil {
		errs = append(errs, errors.New("Config.Join: is empty: say where an instance of the cluster is"))
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

// secure makes what the configured kind of security stands on, as every instance does; nil for
// plain text.
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
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA,
			ServerName: c.TLSFiles.ServerName, Names: names,
		})
	}
	return nil, nil
}

// errOpen is why an address is not dialed.
var errOpen = errors.New("it is on another machine and nothing protects the connection: give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on), or -insecure if it has neither")

// What a program says of an instance that does not talk to it, most likely because only one of the
// two has a secret or certificates.
const (
	needsSecret   = "the instance has a secret, and this program was given none: give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on)"
	needsNoSecret = "the instance has no secret, and this program was given one: leave it out (with -insecure if the instance is on another machine)"
	hungUp        = "it ended the connection without an answer, and nothing protects that: if the cluster has a secret, give it (-secret-file, or MORTISE_SECRET)"
)

// open reports whether nothing protects connections, and Insecure is not set.
func (g *Guest) open() bool { return g.source == nil && !g.config.Insecure }

// elsewhere reports whether an address is known to be on another machine.
func elsewhere(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback()
}

// dial refuses plain text to other machines unless that is wanted.
func (g *Guest) dial(ctx context.Context, address string) (net.Conn, error) {
	open := g.open()
	if open && elsewhere(address) {
		return nil, errOpen
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || !open {
		return conn, err
	}
	if there, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !there.IP.IsLoopback() {
		return nil, errors.Join(errOpen, conn.Close())
	}
	return conn, nil
}

// Method is a question that a program may put: a method of query.AdminClient.
type Method[Q, A any] = queries.Method[query.AdminClient, Q, A]

// Ask puts one question to the instance at addr. An error says why there is no answer, in a
// sentence. What the instance could not do is a *queries.Failed with its text, escaped, and a
// *mortise.NotAllowedError if a right is missing.
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

// failed returns the failure that an instance has answered, or nil.
func failed(err error) *queries.Failed {
	f, _ := errors.AsType[*queries.Failed](err)
	return f
}

// notAllowed is the error of a right that is missing, by the word of an instance.
func notAllowed(verb, key, by string) error {
	return &mortise.NotAllowedError{Verb: verb, Key: plain.Text(key), For: plain.Text(by)}
}

// strangerError says in a sentence why the instance at an address does not talk to this program. It
// is a transport.ErrForeign.
type strangerError struct{ addr, why string }

func (e *strangerError) Error() string        { return e.addr + ": " + e.why }
func (e *strangerError) Is(target error) bool { return target == transport.ErrForeign }

// explain says what a failed handshake with addr means.
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

// random fills b from the system's source, which never fails: it ends the process rather than
// return bad bytes.
func random(b []byte) { _, _ = rand.Read(b) }

// inbound implements transport.Handler: a guest hears replies to its session, and nothing else.
type inbound struct{ g *Guest }

var errGuest = errors.New("guest: a guest answers nothing")

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
